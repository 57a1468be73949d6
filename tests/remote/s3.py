#!/usr/bin/env python3
"""kiln's s3 remotes against a store of our own that checks signatures as AWS Signature Version 4 is
specified, in code that shares nothing with libcurl's: a right secret shares, a wrong one is refused.

usage: s3.py KILN"""
import hashlib
import hmac
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.parse

ID, SECRET, REGION = "AKIAEXAMPLE", "secret/with+odd=signs", "eu-test-1"
TOKEN = "session/token=" + 200 * "0123456789" # those of some roles are as long
KERNEL = "kernel saxpy a:float x:floats y:floats\ny = a x * y +\n"


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(request, date, scope, names):
    """What the request must be signed with, or None if its body is not what it says."""
    path, _, query = request.path.partition("?")
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    quote = lambda text: urllib.parse.quote(text, safe="-_.~")
    headers = "".join(f"{name}:{request.headers[name].strip()}\n" for name in names)
    canonical = "\n".join([
        request.command, urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~"),
        "&".join(f"{quote(name)}={quote(value)}" for name, value in pairs), headers,
        ";".join(names), request.headers["x-amz-content-sha256"]])
    text = "\n".join(["AWS4-HMAC-SHA256", date, "/".join(scope),
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + SECRET).encode()
    for part in scope:
        key = mac(key, part)
    return mac(key, text).hex()


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects, refused, kept, asked_for, seen = {}, 0, 0, [], set()

    def allowed(self):
        kind, _, rest = self.headers.get("Authorization", "").partition(" ")
        fields = dict(part.strip().split("=", 1) for part in rest.split(",") if "=" in part)
        who, *scope = fields.get("Credential", "/").split("/")
        names = fields.get("SignedHeaders", "").split(";")
        right = (kind == "AWS4-HMAC-SHA256" and who == ID and scope[1:] ==
                 [REGION, "s3", "aws4_request"] and {"host", "x-amz-date"} <= set(names) and
                 self.headers.get("x-amz-content-sha256") is not None and
                 self.headers.get("x-amz-security-token") == TOKEN)
        right = right and all(self.headers.get(name) is not None for name in names)
        return right and hmac.compare_digest(
            fields["Signature"], signature(self, self.headers["x-amz-date"], scope, names))

    def answer(self, code, body=b""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if not self.allowed():
            Store.refused += 1
            return self.answer(403)
        Store.seen.add(self.path)
        there = self.path in self.objects
        if self.command == "PUT":
            if there and self.headers.get("If-None-Match") == "*":
                Store.kept += 1
                return self.answer(412)
            self.objects[self.path] = body
            return self.answer(200)
        if self.command == "DELETE":
            self.objects.pop(self.path, None)
            return self.answer(204)
        return self.answer(200, self.objects[self.path]) if there else self.answer(404)

    do_GET = do_HEAD = do_PUT = do_DELETE = handle_request

    def do_CONNECT(self):
        """As a proxy: nobody is asked for anything, only who it would be is kept."""
        Store.asked_for.append(self.path)
        self.answer(502)

    def log_message(self, *_):
        pass


def main():
    kiln = sys.argv[1]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = (f"s3://bucket/some/prefix?endpoint=http://127.0.0.1:{server.server_port}"
           f"&region={REGION}&timeout=20s&connect-timeout=20s&flush=20s")
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "saxpy.fake")
        with open(source, "w", encoding="ascii") as file:
            file.write(KERNEL)

        def run(machine, secret, *words, **more):
            environment = {name: value for name, value in os.environ.items()
                           if not name.startswith(("KILN_", "AWS_")) or name == "KILN_LIBEXEC"}
            environment.update(KILN_REMOTE=url, AWS_ACCESS_KEY_ID=ID, AWS_SECRET_ACCESS_KEY=secret,
                               AWS_SESSION_TOKEN=TOKEN, KILN_CACHE_DIR=os.path.join(folder, machine),
                               HOME=folder)
            environment.update(more)
            return subprocess.run([kiln, *words], env=environment, capture_output=True, text=True,
                                  check=False)

        def counters(machine, secret):
            result = run(machine, secret, "compile", source, "--backend", "fake")
            assert result.returncode == 0, result.stderr
            stats = json.loads(run(machine, secret, "stats", "--json").stdout)
            return stats.get("counters", stats)

        result = run("m0", SECRET, "remote", "check")
        assert result.returncode == 0, result.stdout + result.stderr
        assert not Store.objects and Store.refused == 0
        result = run("m0", SECRET, "remote", "check", url.replace("&region", "/&region"))
        assert result.returncode == 0 and Store.refused == 0, result.stdout + result.stderr
        assert all(path.startswith("/bucket/") for path in Store.seen), Store.seen
        result = run("m0", "wrong", "remote", "check")
        assert result.returncode == 4 and Store.refused > 0, result.stdout
        assert SECRET not in result.stdout + result.stderr

        # Amazon's own: the bucket is asked for where AWS_REGION says, as requests are signed.
        proxy = f"http://127.0.0.1:{server.server_port}"
        run("m0", SECRET, "remote", "check", AWS_REGION=REGION, https_proxy=proxy, no_proxy="",
            KILN_REMOTE="s3://bucket/x?connect-timeout=20s")
        assert Store.asked_for and set(Store.asked_for) == {
            f"bucket.s3.{REGION}.amazonaws.com:443"}, Store.asked_for

        first = counters("m1", SECRET)
        assert first["compiles"] > 0 and first["remote_uploads"] == first["compiles"], first
        assert all(path.startswith("/bucket/some/prefix/") for path in Store.objects)
        second = counters("m2", SECRET)
        assert second["compiles"] == 0 and second["hits_remote"] > 0, second
        # Two writers: the second is answered that there is one already (412), and that is fine.
        before, writes = dict(Store.objects), Store.kept
        again = run("m5", SECRET, "push", "--cache-dir", os.path.join(folder, "m2"), "--json")
        assert again.returncode == 0, again.stderr
        assert Store.kept > writes and Store.objects == before
        assert json.loads(again.stdout)["pushed"] == second["hits_remote"], again.stdout

        # Under a name to the store, and out of it into a pack; then nothing is there twice.
        named = run("m2", SECRET, "push", "--name", "release 1")
        assert named.returncode == 0, named.stderr
        pack = os.path.join(folder, "it.kpack")
        pulled = run("m6", SECRET, "pull", "--name", "release 1", "--pack", pack, "--json")
        assert pulled.returncode == 0, pulled.stderr
        told = json.loads(pulled.stdout)
        assert told["pulled"] == told["pack_entries"] == first["remote_uploads"], told
        assert told["received_bytes"] > 0 and told["missing"] + told["failed"] == 0, told
        told = json.loads(run("m6", SECRET, "pull", "--name", "release 1", "--json").stdout)
        assert told["pulled"] == 0 and told["present"] == first["remote_uploads"], told
        assert run("m6", SECRET, "pull", "--name", "release 2").returncode == 2
        assert run("m6", SECRET, "pull").returncode == 2
        assert run("m7", "wrong", "pull", "--name", "release 1").returncode == 4
        assert run("m7", SECRET, "push", "--pack", pack).returncode == 0

        third = counters("m3", "wrong")
        assert third["compiles"] == first["compiles"] and third["hits_remote"] == 0, third
        assert third["remote_errors"] > 0, third
    server.shutdown()


if __name__ == "__main__":
    main()
