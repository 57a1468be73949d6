#!/usr/bin/env python3
"""guide.py [--stranger] BUILD|PREFIX PAGE.md: what the page says is true.

Installs kiln to a directory of its own, or takes it as it is installed in PREFIX, and works through the page as a reader would, in one shell:
    ```c NAME.c         (or any other language and a name) writes the file
    ```c from FILE      stands in FILE of this tree, line for line
    ```console          runs each line after "$ " and compares what it prints; … stands for anything
    ```dockerfile       does what COPY, RUN and ENV say, below this directory
    ```sh run           is run as one script; what a comment # prints "TEXT" names is in the output
    ```text, ```sh      is not looked at
--stranger: a machine without kiln, whose user may call sudo. Every ```sh block is run, too, but for lines that other tests
run (ELSEWHERE), and PREFIX is where the page's own commands install kiln.
Words behind console or a name: `needs=opencl,redis-server` skips that block where something is not
there. Ports and the hosts of the examples become this machine's. Every C program of a page has fewer
than 60 lines."""
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BACKENDS = ("cpu", "opencl", "vulkan", "opengl", "cuda")
FENCE = re.compile(r"^```(\S+)(?: +(.*))?$")
# Lines of ```sh blocks by their beginning, and what runs them.
ELSEWHERE = {
    "./dev demo": ".ci/run", "./dev test": ".ci/run", "./dev package wheel": "./dev nightly wheel",
    "cmake -S . -B build/install": "installed", "sudo cmake --install build/install": "installed",
    "cmake --install build/install --strip --prefix": "installed_prefix", 'export PATH="$HOME/kiln/bin': "installed_prefix"}
PRINTS = re.compile(r'# prints "([^"]*)"')
FAILED = []


def blocks(page):
    """(line, language, words, text) of each fenced block."""
    language, start, lines = None, 0, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if language is None:
            found = FENCE.match(line)
            if found:
                language, words = found[1], (found[2] or "").split()
                start, lines = number, []
            elif line.startswith("```"):
                fail(page, number, "a block without a language")
        elif line == "```":
            yield start, language, words, "\n".join(lines) + "\n"
            language = None
        else:
            lines.append(line)
    if language is not None:
        fail(page, start, "a block without an end")


def fail(page, number, why):
    FAILED.append(f"{page.name}:{number}: {why}")
    print(f"{page.relative_to(ROOT)}:{number}: {why}", flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def wait_for(port):
    """Until a server that was just started listens."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)


class Reader:
    """One shell in a directory of its own, with kiln installed beside it."""

    def __init__(self, build, folder, stranger):
        self.folder, self.prefix = folder, folder / "usr"
        self.work, self.home = folder / "work", folder / "home"
        self.words = {"6379": free_port(), "cache.example": "127.0.0.1", "/opt/app": f"{folder}/app",
                      "/tmp/my-engine": f"{folder}/my-engine"}
        self.exports, self.there = {}, {}
        for made in (self.work, self.home, folder / "app"):
            made.mkdir()
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("KILN_", "AWS_", "XDG_"))}
        self.environment.update(
            HOME=str(self.home), TMPDIR=str(folder), LC_ALL="C.UTF-8", TERM="dumb",
            CMAKE_GENERATOR="Ninja", CFLAGS="-Wall -Wextra -Werror", CXXFLAGS="-Wall -Wextra -Werror")
        if stranger:
            (self.work / "build").symlink_to(ROOT / "build") # with the packages
            (self.work / "train.py").write_text("print('trained')\n")
            self.words.update({"./dev package deb && ": "", "python train.py": "python3 train.py"})
        if stranger or (build / "bin/kiln").exists():
            self.prefix = build
        else:
            subprocess.run(["cmake", "--install", build, "--prefix", self.prefix], check=True,
                           stdout=subprocess.DEVNULL)
        if self.prefix == Path("/usr"):
            return  # where compilers and the loader look
        library = next(self.prefix.rglob("libkiln.so")).parent
        self.environment.update(
            PATH=f"{self.prefix}/bin:{os.environ['PATH']}", LD_LIBRARY_PATH=str(library),
            PKG_CONFIG_PATH=str(library / "pkgconfig"), CMAKE_PREFIX_PATH=str(self.prefix),
            PKG_CONFIG_SYSTEM_INCLUDE_PATH="/none", PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1")

    def close(self):
        for pid in self.folder.rglob("*.pid"):
            try:
                os.kill(int(pid.read_text()), signal.SIGTERM)
            except (OSError, ValueError):
                pass

    def local(self, text):
        for word, ours in self.words.items():
            text = text.replace(word, ours)
        return text

    def has(self, need):
        if need not in self.there:
            if need in BACKENDS:
                done = subprocess.run([self.prefix / "bin/kiln", "devices", "-b", need, "--json"],
                                      env=self.environment, stdin=subprocess.DEVNULL,
                                      capture_output=True, check=False)
                self.there[need] = done.returncode == 0
                if not self.there[need] and need in os.environ.get("KILN_REQUIRE", "").split(","):
                    sys.exit(f"REQUIRED {need}: kiln devices -b {need} finds nothing: "
                             f"{done.stderr.decode(errors='replace')}")
            elif need == "python3-kiln":
                self.there[need] = subprocess.run(["python3", "-c", "import kiln"], env=self.environment,
                                                  capture_output=True, check=False).returncode == 0
            elif need.endswith(".h"):
                self.there[need] = subprocess.run(
                    ["cc", "-E", "-x", "c", "-"], input=f"#include <{need}>\n", text=True,
                    capture_output=True, check=False).returncode == 0
            else:
                self.there[need] = shutil.which(need) is not None
        return self.there[need]

    def shell(self, command):
        """Runs one command with what earlier ones exported; (output, status)."""
        exports = "".join(f"export {name}={shlex.quote(value)}\n"
                          for name, value in self.exports.items())
        after = f'\nstatus=$?; env -0 >"{self.folder}/env"; exit $status'
        done = subprocess.run(["bash", "-c", exports + self.local(command) + after], cwd=self.work,
                              env=self.environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        try:
            now = dict(row.split("=", 1) for row in
                       (self.folder / "env").read_text().split("\0") if "=" in row)
            self.exports.update({key: value for key, value in now.items()
                                 if value != self.environment.get(key)
                                 and key not in ("_", "SHLVL", "PWD", "OLDPWD")})
            self.exports = {key: value for key, value in self.exports.items() if key in now}
        except OSError:
            pass
        return done.stdout, done.returncode


def commands(text):
    """(offset, command, expected) of a console block."""
    found, going_on = [], False
    for offset, line in enumerate(text.splitlines(), 1):
        if going_on:
            found[-1][1] += "\n" + line
        elif line.startswith("$ "):
            found.append([offset, line[2:], ""])
        elif found:
            found[-1][2] += line + "\n"
        going_on = going_on and line.endswith("\\") or line.startswith("$ ") and line.endswith("\\")
    return found


def matches(expected, got):
    """Line for line, blanks taken together; … is anything, alone on a line any number of lines."""
    pattern = ""
    for line in expected.splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*"
            continue
        words = [re.escape(" ".join(part.split())) for part in line.split("…")]
        blank = [" ?" if part[-1:] == " " else "" for part in line.split("…")]
        pattern += "".join(word + (gap + ".*" if i + 1 < len(words) else "")
                           for i, (word, gap) in enumerate(zip(words, blank))) + "\n"
    lines = "".join(" ".join(line.split()) + "\n" for line in got.splitlines())
    return re.fullmatch(pattern, lines) is not None


def console(reader, page, number, text):
    for offset, command, expected in commands(text):
        got, status = reader.shell(command)
        if command.startswith("redis-server") and status == 0:
            wait_for(int(reader.words["6379"]))
        if status != 0:
            fail(page, number + offset, f"{command}\n  ended with {status}:\n{got}")
        elif not matches(reader.local(expected), got):
            fail(page, number + offset, f"{command}\n  should print\n{expected}  and printed\n{got}")
        else:
            print(f"ok  {command.splitlines()[0]}", flush=True)


def dockerfile(reader, page, number, text):
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word == "RUN" and not rest.startswith("apt-get"):
            console(reader, page, number, f"$ {rest}\n…\n")
        elif word == "ENV":
            console(reader, page, number, f"$ export {rest}\n")
        elif word == "COPY" and "--from" not in rest:
            names = rest.split()
            console(reader, page, number, f"$ mkdir -p {names[-1]} && cp {' '.join(names)}\n"
                    if names[-1] != "./" else f"$ ls {' '.join(names[:-1])}\n…\n")
        elif word not in ("FROM", "RUN", "COPY", "WORKDIR", "CMD", ""):
            fail(page, number, f"nobody knows what to do with: {line}")


def write(reader, page, number, name, text):
    if name.endswith((".c", ".cpp")) and text.count("\n") >= 60 and "main(" in text:
        fail(page, number, f"{name} has {text.count(chr(10))} lines, and 60 is too many")
    path = reader.work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(reader.local(text), encoding="utf-8")


def quoted(page, number, name, text):
    """The block's lines stand in the file in this order, whatever their indentation."""
    def squeezed(whole):
        return "\n".join(line.strip() for line in whole.splitlines() if line.strip())
    if squeezed(text) not in squeezed((ROOT / name).read_text(encoding="utf-8")):
        fail(page, number, f"this does not stand in {name}")


def script(reader, page, number, text):
    lines = []
    for line in text.splitlines():
        where = next((ELSEWHERE[start] for start in ELSEWHERE if line.startswith(start)), None)
        if where:
            print(f"{where} runs  {line}")
        else:
            lines.append(line)
    if not any(line and not line.startswith("#") for line in lines):
        return
    text = "\n".join(lines)
    got, status = reader.shell(f"set -e\n{text}")
    if status != 0:
        fail(page, number, f"{text}\n  ended with {status}:\n{got}")
    for words in PRINTS.findall(text):
        if words not in got:
            fail(page, number, f"{text}\n  should print {words}, and printed\n{got}")
    print(f"ok  {text}", flush=True)


def work_through(reader, page, stranger):
    skipped = []
    for number, language, words, text in blocks(page):
        needs = [need for word in words if word.startswith("needs=")
                 for need in word[6:].split(",")]
        words = [word for word in words if not word.startswith("needs=")]
        missing = [need for need in needs if not reader.has(need)]
        if missing and stranger:
            fail(page, number, f"the page did not install {', '.join(missing)}")
        if language == "sh" and ("run" in words or stranger) and not missing:
            script(reader, page, number, text)
        elif language in ("text", "sh"):
            skipped += [f"line {number} ({', '.join(missing)})"] if missing else []
        elif words[:1] == ["from"]:
            quoted(page, number, words[1], text)
        elif missing:
            skipped.append(f"line {number} ({', '.join(missing)})")
        elif language == "console":
            console(reader, page, number, text)
        elif language == "dockerfile":
            dockerfile(reader, page, number, text)
        elif words:
            write(reader, page, number, words[0], text)
        else:
            fail(page, number, f"a block in {language} that nothing tests: give it a name")
    if skipped:
        print(f"left out: {', '.join(skipped)}")


def main():
    stranger = sys.argv[1] == "--stranger"
    build, page = (Path(argument).resolve() for argument in sys.argv[-2:])
    with tempfile.TemporaryDirectory(prefix="kiln-guide-") as folder:
        reader = Reader(build, Path(folder), stranger)
        try:
            work_through(reader, page, stranger)
        finally:
            reader.close()
    sys.exit(1 if FAILED else 0)


main()
