#!/usr/bin/env python3
"""kiln's s3 remotes against s3rver, an S3 server that others wrote, from the npm registry.

usage: s3rver.py KILN FOLDER. It is looked for as $KILN_S3RVER, on the PATH and in FOLDER; where npm is
installed, and KILN_NO_INSTALL is not set, it is installed into FOLDER. Otherwise this is skipped."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

KERNEL = "kernel saxpy a:float x:floats y:floats\ny = a x * y +\n"


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def find(folder):
    local = os.path.join(folder, "node_modules", ".bin", "s3rver")
    found = os.environ.get("KILN_S3RVER") or shutil.which("s3rver")
    if not found and not os.path.exists(local):
        npm = shutil.which("npm")
        if not npm or os.environ.get("KILN_NO_INSTALL"):
            skip("s3rver is not installed (npm install -g s3rver)")
        os.makedirs(folder, exist_ok=True)
        try:
            subprocess.run([npm, "install", "--prefix", folder, "--no-audit", "--no-fund",
                            "s3rver@3.7.1"], check=True, capture_output=True, timeout=90)
        except (subprocess.SubprocessError, OSError) as error:
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()
            skip(f"npm could not install s3rver: {said.splitlines()[-1] if said else error}")
    return found or local


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(program, folder, port):
    output = tempfile.TemporaryFile("w+")
    server = subprocess.Popen([program, "-d", folder, "-a", "127.0.0.1", "-p", str(port),
                               "--configure-bucket", "kiln-bucket"], stdout=output, stderr=output)
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server
        except OSError:
            time.sleep(0.05)
    output.seek(0)
    return skip(f"s3rver ends with {server.returncode}: {output.read()[-500:]}")


def main():
    kiln, tools = sys.argv[1:3]
    program = find(tools)
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        server = start(program, os.path.join(folder, "store"), port)
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("KILN_", "AWS_")) or name == "KILN_LIBEXEC"}
        environment.update(
            HOME=folder, AWS_ACCESS_KEY_ID="S3RVER", AWS_SECRET_ACCESS_KEY="S3RVER",
            KILN_REMOTE=f"s3://kiln-bucket/some/prefix?endpoint=http://127.0.0.1:{port}"
                        "&region=us-east-1&timeout=20s&connect-timeout=20s&flush=20s")
        source = os.path.join(folder, "saxpy.fake")
        with open(source, "w", encoding="ascii") as file:
            file.write(KERNEL)

        def run(machine, *words):
            return subprocess.run(
                [kiln, *words], env=dict(environment, KILN_CACHE_DIR=os.path.join(folder, machine)),
                capture_output=True, text=True, check=False)

        def counters(machine):
            result = run(machine, "compile", source, "--backend", "fake")
            assert result.returncode == 0, result.stderr
            stats = json.loads(run(machine, "stats", "--json").stdout)
            return stats.get("counters", stats)

        try:
            result = run("m0", "remote", "check")
            assert result.returncode == 0, result.stdout + result.stderr
            first, second = counters("m1"), counters("m2")
            assert first["compiles"] > 0 and first["remote_uploads"] == first["compiles"], first
            assert second["compiles"] == 0 and second["hits_remote"] > 0, second
            assert second["remote_errors"] + second["corrupt"] == 0, second
            result = run("m1", "push", "--name", "all")
            assert result.returncode == 0, result.stderr
            told = json.loads(run("m3", "pull", "--name", "all", "--json").stdout)
            assert told["pulled"] == first["compiles"], told
            server.kill()
            server.wait()
            assert counters("m4")["compiles"] == first["compiles"]
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
