#!/usr/bin/env python3
"""wheel.py TREE OUT [LEVEL [ROOT]]: a wheel of python/kiln and of kiln as it is installed in TREE, in the directory OUT,
packed at zlib's LEVEL (default 9). Of another machine's TREE, the libraries that it needs are in ROOT.

On PyPI kiln is another project: the distribution is kiln-cache, the import kiln.

What the libraries need besides the C and C++ runtimes is copied in under a name of kiln's own, so that it never stands in
for what another package of the same process brings. The platform's tag is what these files really need of glibc and
libstdc++."""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What every manylinux system has.
SYSTEM = re.compile(r"^(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d+$")
# The system's libcurl brings thirty others and the system's certificates: remotes over HTTP use it where it is installed.
LEFT = {"libcurl.so.4"}
# The first glibc whose distributions have this libstdc++.
LIBSTDCXX = [((3, 4, 19), (2, 17)), ((3, 4, 24), (2, 28)), ((3, 4, 28), (2, 31)), ((3, 4, 29), (2, 34)), ((3, 4, 30), (2, 35))]
KEPT = ("bin/kiln", "lib/libkiln.so.0", "libexec")
WHEN = (2026, 1, 1, 0, 0, 0)


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path):
    return run("patchelf", "--print-needed", path).split()


def machine_of(path):
    text = run("readelf", "-h", path)
    return {"X86-64": "x86_64", "AArch64": "aarch64"}[re.search(r"Machine:.*?(X86-64|AArch64)", text).group(1)]


def system_library(name):
    if len(sys.argv) > 4:
        for path in Path(sys.argv[4]).glob(f"**/lib/*/{name}"):
            return path.resolve()
        sys.exit(f"wheel: {name} is not in {sys.argv[4]}")
    for line in run("/sbin/ldconfig", "-p").splitlines():
        words = line.split()
        if words and words[0] == name and "x86-64" in line:
            return Path(words[-1]).resolve()
    sys.exit(f"wheel: {name} is not installed")


def places_of(path, native):
    """Where a file's libraries lie, seen from the file: the helpers, with a copy of their directory, and kiln's own."""
    found = []
    for folder in (native / "libexec/kiln", native / "lib"):
        if any((folder / name).exists() for name in needed(path)):
            way = os.path.relpath(folder, path.parent)
            found.append("$ORIGIN" if way == "." else f"$ORIGIN/{way}")
    return found


def graft(native):
    """Copies what is needed and not the system's next to the helpers, until nothing is missing."""
    helpers = native / "libexec/kiln"
    own = {path.name for path in native.rglob("*.so*")}
    licences = set()
    todo = [path for path in sorted(native.rglob("*")) if path.is_file() and not path.is_symlink() and is_elf(path)]
    while todo:
        path = todo.pop()
        changed = False
        for name in needed(path):
            if SYSTEM.match(name) or name in LEFT or name in own:
                changed = changed or name in own
                continue
            copy = helpers / re.sub(r"^lib([\w-]+?)\.so.*$", r"libkiln-\1.so", name)
            if not copy.exists():
                origin = system_library(name)
                shutil.copyfile(origin, copy)
                copy.chmod(0o755)
                run("patchelf", "--set-soname", copy.name, copy)
                licences.add(package_of(name, origin))
                own.add(copy.name)
                todo.append(copy)
            run("patchelf", "--replace-needed", name, copy.name, path)
            changed = True
        if changed:
            run("patchelf", "--set-rpath", ":".join(places_of(path, native)), path)
    return licences | {"libzstd1", "libxxhash-dev", "nettle-dev", "libssl-dev"}


def package_of(name, origin):
    """Its licence is this machine's copy of it, of the same release of Debian."""
    if len(sys.argv) > 4:
        return run("dpkg-query", "-S", f"*/{name}").split(":")[0]
    return run("dpkg-query", "-S", origin).split(":")[0]


def numbers(text):
    return tuple(int(part) for part in text.split("."))


def platform(native):
    """The manylinux tag, from the symbol versions that the files ask for."""
    glibc, cxx = (2, 17), (3, 4, 19)
    for path in native.rglob("*"):
        if path.is_file() and not path.is_symlink() and is_elf(path):
            text = run("readelf", "--version-info", "--wide", path)
            text = text[text.find("Version needs section"):] if "Version needs section" in text else ""
            glibc = max([glibc, *(numbers(found)[:2] for found in re.findall(r"Name: GLIBC_(\d[\d.]*)", text))])
            cxx = max([cxx, *(numbers(found) for found in re.findall(r"Name: GLIBCXX_(\d[\d.]*)", text))])
    if cxx > LIBSTDCXX[-1][0]:
        sys.exit(f"wheel: it is not known which glibc comes with GLIBCXX_{'.'.join(map(str, cxx))}")
    glibc = max(glibc, next(with_glibc for has, with_glibc in LIBSTDCXX if has >= cxx))
    return f"manylinux_{glibc[0]}_{glibc[1]}_{machine_of(native / 'bin/kiln')}"


def metadata(version):
    return (
        f"Metadata-Version: 2.1\nName: kiln-cache\nVersion: {version}\n"
        "Summary: GPU kernels compiled once, and found ever after\n"
        "License: MIT\nRequires-Python: >=3.9\nClassifier: Operating System :: POSIX :: Linux\n"
        "Classifier: Typing :: Typed\nDescription-Content-Type: text/markdown\n\n"
        + (ROOT / "python/README.md").read_text(encoding="utf-8")
    )


def collect(tree, stage):
    """The files of the wheel, below `stage`."""
    shutil.rmtree(stage, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "native")
    shutil.copytree(ROOT / "python/kiln", stage / "kiln", ignore=ignored)
    for name in ("kiln.pth", "_kiln_adapt.py", "_kiln_command.py", "_kiln_start.py"):
        shutil.copyfile(ROOT / "python" / name, stage / name)
    native = stage / "kiln/native"
    for name in KEPT:
        origin, copy = tree / name, native / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, copy)  # links become files: a wheel has none
        else:
            shutil.copyfile(origin.resolve(), copy)
            copy.chmod(0o755)
    return native


def write(path, stage, info, level):
    """Zips what is below `stage`, in an order and with times that are always the same."""
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        names = sorted(file.relative_to(stage) for file in stage.rglob("*") if file.is_file())
        names.sort(key=lambda name: name.parts[0] == info)  # the description comes last
        for name in names:
            data = (stage / name).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            entry(archive, str(name), data, 0o755 if is_elf(stage / name) else 0o644)
        record.append(f"{info}/RECORD,,\n")
        entry(archive, f"{info}/RECORD", "".join(record).encode(), 0o644)


def entry(archive, name, data, mode):
    what = zipfile.ZipInfo(name, WHEN)
    what.external_attr, what.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
    archive.writestr(what, data)


def main():
    tree, out = (Path(argument).resolve() for argument in sys.argv[1:3])
    version = re.search(r"project\(kiln VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    stage = out / "stage"
    native = collect(tree, stage)
    licences = graft(native)
    tag = f"py3-none-{platform(native)}"
    info = f"kiln_cache-{version}.dist-info"
    (stage / info / "licenses").mkdir(parents=True)
    shutil.copyfile(ROOT / "LICENSE", stage / info / "licenses/LICENSE")
    for package in sorted(licences):
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", stage / info / "licenses" / f"{package}.txt")
    (stage / info / "METADATA").write_text(metadata(version), encoding="utf-8")
    (stage / info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: kiln\nRoot-Is-Purelib: false\nTag: {tag}\n")
    (stage / info / "entry_points.txt").write_text("[console_scripts]\nkiln = _kiln_command:main\n")
    wheel = out / f"kiln_cache-{version}-{tag}.whl"
    write(wheel, stage, info, int(sys.argv[3]) if len(sys.argv) > 3 else 9)
    print(f"{wheel}  {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
