#!/usr/bin/env python3
"""A server of names that never answers, in namespaces of its own: what asks a remote over HTTP ends at the
remote's time-out, and not when the system gives the name up, here after minutes.

usage: slow_names.py KILN"""
import os
import socket
import subprocess
import sys
import tempfile

GUARD_S = 60  # resolv.conf below makes the system wait for 150
INSIDE = "KILN_TEST_INSIDE"
KERNEL = "kernel saxpy a:float x:floats y:floats\ny = a x * y +\n"


def inside(kiln, folder):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 53))
    names = os.path.join(folder, "resolv.conf")
    with open(names, "w", encoding="ascii") as file:
        file.write("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n")
    subprocess.run(["mount", "--bind", names, "/etc/resolv.conf"], check=True)
    source = os.path.join(folder, "saxpy.fake")
    with open(source, "w", encoding="ascii") as file:
        file.write(KERNEL)
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("KILN_") or name == "KILN_LIBEXEC"}
    url = "http://nobody.invalid.example/x?timeout=200ms&upload-timeout=1s&flush=100ms"
    environment.update(KILN_REMOTE=url, KILN_CACHE_DIR=os.path.join(folder, "cache"), HOME=folder)
    for words, code in ((["compile", source, "--backend", "fake"], 0), (["remote", "check"], 4)):
        result = subprocess.run([kiln, *words], env=environment, capture_output=True, text=True,
                                check=False, timeout=GUARD_S)
        assert result.returncode == code, (words, result.stdout, result.stderr)
    print("slow names: fine")


def main():
    kiln = os.path.abspath(sys.argv[1])
    if INSIDE in os.environ:
        return inside(kiln, os.environ.pop(INSIDE))
    alone = ["unshare", "--net", "--mount"]
    try:
        able = subprocess.run([*alone, "ip", "link", "set", "lo", "up"], capture_output=True,
                              check=False).returncode == 0
    except FileNotFoundError:
        able = False
    if not able or not os.path.exists("/etc/resolv.conf"):
        print("SKIP: no namespaces of one's own here, or no unshare, or no ip")
        return sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(subprocess.run([*alone, sys.executable, __file__, kiln],
                                env={**os.environ, INSIDE: folder}, check=False).returncode)


main()
