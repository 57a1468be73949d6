#!/usr/bin/env python3
"""unsigned.py KILN: what a machine that has no keys takes from a remote that nobody signs. What drivers made, and what runs
on the host, is compiled again, however it was asked for; SPIR-V, which no driver made, is taken. Drivers are PoCL's and
Mesa's, as far as they are here."""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

KILN = sys.argv[1]
SKIP = 77
OPENCL = "kernel void add(global float *a) { a[get_global_id(0)] += 41.0f; }\n"
GLSL = """#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer B { float y[]; };
void main() { y[gl_GlobalInvocationID.x] += 41.0; }
"""
CPU = """#include <kiln_kernel.h>
KILN_KERNEL(add, KILN_INOUT(float, y))
{
    KILN_ITEMS_X(i)
    {
        y[i] += 41.0f;
    }
}
"""
#: What is compiled, and whether another machine takes the unsigned entry.
CASES = [
    (("-t", "opencl:0", "a.cl"), False),
    (("--drop-in", "-t", "opencl:0", "a.cl"), False),
    (("-t", "vulkan:0", "a.comp"), False),
    (("--drop-in", "-t", "vulkan:0", "a.comp"), False),
    (("-t", "opengl:0", "a.comp"), False),
    (("--drop-in", "-t", "opengl:0", "a.comp"), False),
    (("-b", "cpu", "a.c"), False),
    (("-t", "vulkan:spirv", "a.comp"), True),
]


class Store(http.server.BaseHTTPRequestHandler):
    kept = {}

    def log_message(self, *_):
        pass

    def answer(self, code, body=b""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        self.answer(200 if self.path in self.kept else 404, self.kept.get(self.path, b""))

    do_HEAD = do_GET

    def do_PUT(self):
        self.kept[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(201)


class Machine:
    def __init__(self, root, remote, name):
        self.root, self.cache = root, root / name
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_") or k == "KILN_LIBEXEC"}
        self.env.update(KILN_CACHE_DIR=str(self.cache), KILN_REMOTE=remote, KILN_LOG="warn",
                        POCL_CACHE_DIR=str(root / f"{name}-pocl"), MESA_SHADER_CACHE_DISABLE="true")

    def run(self, *words):
        return subprocess.run([KILN, *words], cwd=self.root, env=self.env, capture_output=True, text=True, timeout=250)

    def compile(self, words):
        """None where there is no such device, else where the result came from, and the lines of the log."""
        done = self.run("compile", *words, "--json")
        if done.returncode != 0:
            assert done.returncode == 3, (words, done.stdout, done.stderr)
            return None, ""
        told = json.loads(done.stdout)
        return (told["files"][0] if "files" in told else told)["origin"], done.stderr

    def counters(self):
        return json.loads(self.run("stats", "--json").stdout)["counters"]


def check_case(root, url, number, words, taken):
    Store.kept.clear()
    origin, _ = Machine(root, url, f"maker{number}").compile(words)
    if origin is None:
        return False
    assert origin == "compiled" and Store.kept, (words, origin, len(Store.kept))
    taker = Machine(root, url, f"taker{number}")
    origin, log = taker.compile(words)
    assert (origin == "remote") == taken, (words, origin, log)
    counters = taker.counters()
    if taken:
        assert counters["remote_refused"] == 0 and "refused" not in log, (words, counters, log)
        return True
    assert counters["remote_refused"] > 0 and counters["compiles"] > 0, (words, counters)
    # Once, in one line, with what to do about it; and where the machine's owner looks.
    lines = [line for line in log.splitlines() if "refused" in line]
    assert len(lines) == 1 and "KILN_SIGNING_KEY" in lines[0] and "unsigned-native" in lines[0], (words, log)
    for command in ("stats", "doctor"):
        told = taker.run(command).stdout
        assert [line for line in told.splitlines() if "unsigned-native" in line], (command, told)
    origin, _ = Machine(root, url + "?unsigned-native", f"trusting{number}").compile(words)
    assert origin == "remote", (words, origin)
    return True


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in (("a.cl", OPENCL), ("a.comp", GLSL), ("a.c", CPU)):
            (root / name).write_text(text)
        url = f"http://127.0.0.1:{server.server_address[1]}/kc"
        tried = [words for number, (words, taken) in enumerate(CASES) if check_case(root, url, number, words, taken)]
        server.shutdown()
    print("\n".join(" ".join(words) for words in tried))
    if not any("--drop-in" in words for words in tried):
        print("no device of a driver is here")
        return SKIP
    return 0


sys.exit(main())
