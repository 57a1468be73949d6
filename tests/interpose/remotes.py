#!/usr/bin/env python3
"""remotes.py KILN LIBEXEC NVRTC: a program that has another libcurl, hiredis and OpenSSL of its own
compiles under `kiln exec` with a remote. The program's calls stay in its libraries, kiln's in
kiln's, and what the program opens later is not what kiln brought along."""
import http.server
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

KILN, LIBEXEC, NVRTC = sys.argv[1:4]
NAMES = """curl_easy_init curl_easy_setopt curl_easy_perform curl_easy_getinfo curl_easy_reset curl_easy_cleanup
curl_global_init curl_multi_init curl_slist_append redisReaderCreate redisReaderFeed redisReaderGetReply redisCommand
redisConnect redisFormatCommandArgv SSL_new SSL_CTX_new SSL_connect SSL_free OPENSSL_init_ssl OPENSSL_init_crypto BIO_new
ERR_clear_error TLS_client_method EVP_DigestInit_ex""".split()
FOREIGN = """#include <stdio.h>
#define X(name) long name(void) { fputs("foreign: " #name "\\n", stderr); return 0; }
""" + "\n".join(f"X({name})" for name in NAMES) + """
const char *curl_version(void) { return "libcurl/3.14"; }
"""
HOST = """#include <dlfcn.h>
#include <stdio.h>
const char *curl_version(void);
int main(void)
{
    void *nvrtc = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL), *program = NULL;
    int (*create)(void **, const char *, const char *, int, const void *, const void *) = dlsym(nvrtc, "nvrtcCreateProgram");
    int (*compile)(void *, int, const char *const *) = dlsym(nvrtc, "nvrtcCompileProgram");
    const char *options[] = {"--gpu-architecture=sm_90"};
    int made = create(&program, "__global__ void k(int *a) { *a = 1; }", "k.cu", 0, NULL, NULL);
    printf("%d %d %s\\n", made, compile(program, 1, options), curl_version());
    fflush(stdout);
    (void)getchar();
    void *later = dlopen("libssl.so.3", RTLD_NOW);
    const char *(*whose)(void) = later != NULL ? dlsym(later, "whose") : NULL;
    printf("%s\\n", whose != NULL ? whose() : "another's");
    return 0;
}
"""


class Store(http.server.BaseHTTPRequestHandler):
    kept = {}

    def log_message(self, *_):
        pass

    def answer(self, code, body=b""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200 if self.path in self.kept else 404, self.kept.get(self.path, b""))

    def do_PUT(self):
        self.kept[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(201)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def compiled(root, text, output, *options):
    subprocess.run(["cc", "-w", "-x", "c", "-", "-x", "none", "-o", str(output), *options], input=text, text=True, check=True, cwd=root)
    return output


def run_host(root, name, remote, has_entry, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    env.update(KILN_CACHE_DIR=str(root / name), KILN_REMOTE=remote, KILN_NVRTC_LIBRARY=NVRTC, KILN_LIBEXEC=LIBEXEC,
               KILN_LOG="warn", **more)
    # NVRTC opens its builtins by name.
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, (more.get("LD_LIBRARY_PATH"), os.path.dirname(NVRTC))))
    host = subprocess.Popen([KILN, "exec", "--", str(root / "host")], env=env, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = host.stdout.readline()
    end = time.monotonic() + 20
    while not has_entry() and time.monotonic() < end:
        time.sleep(0.02)
    with open(f"/proc/{host.pid}/maps", encoding="utf-8") as maps:
        mapped = {line.split()[-1] for line in maps if "/" in line}
    rest, errors = host.communicate("\n", timeout=60)
    if said.split() != ["0", "0", "libcurl/3.14"] or errors or host.returncode != 0:
        sys.exit(f"{name}: {said!r}, {errors!r}, {host.returncode}")
    if not has_entry():
        sys.exit(f"{name}: nothing was uploaded")
    return sorted(os.path.basename(path) for path in mapped), rest.strip()


def main():
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "own").mkdir()
        compiled(root, FOREIGN, "libforeign.so.1", "-shared", "-fPIC", "-Wl,-soname,libforeign.so.1")
        compiled(root, 'const char *whose(void) { return "the program\'s"; }', root / "own/libssl.so.3", "-shared", "-fPIC",
                 "-Wl,-soname,libssl.so.3")
        compiled(root, HOST, "host", "-Wl,--no-as-needed", "./libforeign.so.1", f"-Wl,-rpath,{root}", "-ldl")

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run_host(root, "http", f"http://127.0.0.1:{server.server_port}/", lambda: Store.kept)
        server.shutdown()
        print("ok: HTTP next to another libcurl")

        redis = shutil.which("redis-server")
        if redis is None:
            print("SKIP redis: redis-server is not installed")
            sys.exit(77)
        port = free_port()
        process = subprocess.Popen([redis, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", place],
                                   stdout=subprocess.DEVNULL)
        try:
            def ask(command):
                with socket.create_connection(("127.0.0.1", port), timeout=5) as wire:
                    wire.sendall(command.encode() + b"\r\n")
                    return wire.recv(100)

            for _ in range(200):
                try:
                    ask("PING")
                    break
                except OSError:
                    time.sleep(0.02)
            mapped, later = run_host(root, "redis", f"redis://127.0.0.1:{port}", lambda: ask("DBSIZE") not in (b":0\r\n", b""),
                                     LD_LIBRARY_PATH=str(root / "own"))
            brought = [name for name in mapped if name.startswith(("libhiredis", "libcrypto", "libssl"))]
            if brought or later != "the program's":
                sys.exit(f"redis: kiln brought {brought}; libssl.so.3 is {later}")
            print("ok: Redis next to another hiredis and OpenSSL")
        finally:
            process.kill()
            process.wait()


main()
