#!/usr/bin/env python3
"""Remotes of the Windows build under Wine, with real servers on this system's side of the loopback: Redis and
nginx share, bytes that are damaged or not signed are refused, and no server, however it behaves, fails a compile.

usage: remotes.py KILN AUTHORITY WHAT    (KILN: a script that runs it; WHAT: share, trouble, signed or tls)"""
import contextlib
import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

PATIENT = "timeout=20s&connect-timeout=20s&upload-timeout=20s&flush=20s"
PASSWORD = "s3cr3t"
NGINX = """daemon off; master_process off; pid {0}/pid; error_log stderr crit;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f;
uwsgi_temp_path {0}/u; scgi_temp_path {0}/s; client_max_body_size 64m;
server {{ listen 127.0.0.1:{1} {2}; root {0}/files; {3}
location / {{ dav_methods PUT DELETE; create_full_put_path on; }}
location /token/ {{ if ($http_authorization != "Bearer s3cr3t") {{ return 401; }}
 dav_methods PUT DELETE; create_full_put_path on; }} }} }}
"""


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(77)


def program(name, *places):
    found = shutil.which(name) or next((place for place in places if os.access(place, os.X_OK)), None)
    return found or skip(f"{name} is not installed")


class Folder:
    """A directory with the places of the machines and of the servers."""

    def __init__(self, path, kiln):
        self.path, self.kiln, self.servers = path, kiln, contextlib.ExitStack()
        with open(self.at("twice.fake"), "w", encoding="ascii") as file:
            file.write("kernel twice x:floats\nx = x 2 *\n")

    def at(self, *names):
        return os.path.join(self.path, *names)

    def run(self, machine, url, *words, **more):
        """kiln on one machine. Variables are given with their prefix left out."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
        environment.update(KILN_REMOTE=url, KILN_CACHE_DIR=self.at(machine), HOME=self.path)
        environment.update({f"KILN_{name}": value for name, value in more.items()})
        return subprocess.run([self.kiln, *words], env=environment, capture_output=True, text=True, check=False)

    def compile(self, machine, url, **more):
        """Compiles, which never fails, and gives what was counted on this machine so far."""
        result = self.run(machine, url, "compile", self.at("twice.fake"), "--backend", "fake", **more)
        assert result.returncode == 0, result.stderr
        stats = json.loads(self.run(machine, "", "stats", "--json").stdout)
        return stats.get("counters", stats)

    def check(self, url, **more):
        """What kiln remote check says: its exit code, and the whole."""
        result = self.run("checker", url, "remote", "check", **more)
        return result.returncode, result.stdout + result.stderr

    def start(self, port, *words):
        """A server that is there until the test ends."""
        with open(self.at(f"log-{port}"), "w", encoding="utf-8") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.servers.callback(lambda: (process.kill(), process.wait()))
        for _ in range(2000):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return process
            assert process.poll() is None, open(log.name, encoding="utf-8").read()
            time.sleep(0.005)
        raise AssertionError(f"{words[0]} does not answer")

    def redis(self, *words):
        port = free_port()
        words = words or ("--port", str(port), "--requirepass", PASSWORD)
        words = [str(port) if word == "PORT" else word for word in words]
        self.start(port, program("redis-server"), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                   "--dir", self.path, *words)
        return port

    def nginx(self, listen="", more=""):
        port = free_port()
        place = self.at(f"nginx-{port}")
        os.makedirs(os.path.join(place, "files"))
        with open(os.path.join(place, "nginx.conf"), "w", encoding="ascii") as file:
            file.write(NGINX.format(place, port, listen, more))
        for folder in (self.path, place, os.path.join(place, "files")):
            os.chmod(folder, 0o777)
        self.start(port, program("nginx", "/usr/sbin/nginx"), "-p", place, "-c", os.path.join(place, "nginx.conf"))
        return port


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Stored:
    """What a server has, to be damaged."""

    def __init__(self, folder, port, kind):
        self.folder, self.port, self.kind = folder, port, kind

    def ask_redis(self, *words):
        with socket.create_connection(("127.0.0.1", self.port)) as one, one.makefile("rwb") as file:
            for line in ((b"AUTH", PASSWORD.encode()), (b"SELECT", b"2"), words):
                file.write(b"*%d\r\n" % len(line) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in line))
                file.flush()
                answer = self.take(file)
            return answer

    def take(self, file):
        line = file.readline().strip()
        if line[:1] == b"*":
            return [self.take(file) for _ in range(int(line[1:]))]
        return file.read(int(line[1:]) + 2)[:-2] if line[:1] == b"$" else line[1:]

    def change(self, how):
        """Gives each entry what `how` makes of its bytes. The number of them."""
        if self.kind == "redis":
            names = self.ask_redis(b"KEYS", b"*")
            for name in names:
                self.ask_redis(b"SET", name, how(self.ask_redis(b"GET", name)))
            return len(names)
        names = [name for name in glob.glob(self.folder.at(f"nginx-{self.port}", "files", "**"), recursive=True)
                 if os.path.isfile(name)]
        for name in names:
            with open(name, "rb") as file:
                data = how(file.read())
            with open(name, "wb") as file:
                file.write(data)
        return len(names)


def servers(folder):
    """(kind, URL, what it has) of each."""
    port = folder.redis()
    yield "redis", f"redis://:{PASSWORD}@127.0.0.1:{port}/2?ttl=1h&{PATIENT}", Stored(folder, port, "redis")
    port = folder.nginx()
    yield "http", f"http://127.0.0.1:{port}/kiln/a?{PATIENT}", Stored(folder, port, "http")


def flip(data):
    return data[:-30] + bytes([data[-30] ^ 1]) + data[-29:]


def share(folder):
    for kind, url, stored in servers(folder):
        code, text = folder.check(url)
        assert code == 0, text
        assert (text.split("leases")[1].split()[0] == "yes") == (kind == "redis"), text
        first = folder.compile(f"{kind}1", url)
        assert first["compiles"] > 0 and first["remote_uploads"] == first["compiles"], first
        assert first["remote_errors"] + first["remote_timeouts"] == 0, first
        second = folder.compile(f"{kind}2", url)
        assert second["compiles"] == 0 and second["hits_remote"] == first["compiles"], second
        # Under a name, into a pack, and out of it where there is no remote.
        named = folder.run(f"{kind}1", url, "push", "--name", "release 1")
        assert named.returncode == 0, named.stderr
        pack = folder.at(f"{kind}.kpack")
        pulled = folder.run(f"{kind}3", url, "pull", "--name", "release 1", "--pack", pack, "--json")
        assert pulled.returncode == 0, pulled.stderr
        assert json.loads(pulled.stdout)["pulled"] == first["remote_uploads"], pulled.stdout
        third = folder.compile(f"{kind}4", "", PACKS=pack)
        assert third["compiles"] == 0 and third["hits_pack"] > 0, third
        # Every entry with a changed byte is a miss, and replaced.
        assert stored.change(flip) >= first["compiles"]
        fourth = folder.compile(f"{kind}5", url)
        assert fourth["compiles"] == first["compiles"] and fourth["hits_remote"] == 0, fourth
        assert fourth["corrupt"] >= first["compiles"], fourth
        if kind == "http":
            token = folder.at("token")
            with open(token, "w", encoding="ascii") as file:
                file.write("s3cr3t\n")
            os.chmod(token, 0o600)
            url = url.replace("/kiln/a", "/token/a")
            assert folder.check(url)[0] == 4
            code, text = folder.check(f"{url}&token-file=Z:{token}")
            assert code == 0 and PASSWORD not in text, text
        else:
            code, text = folder.check(url.replace(PASSWORD, "wrong"))
            assert code == 4 and "WRONGPASS" in text, text


class Rogue(threading.Thread):
    """A server that behaves badly: it takes the connection, and `manner` does the rest, with an answer that
    begins as one of this scheme does."""

    def __init__(self, manner, scheme):
        super().__init__(daemon=True)
        self.manner, self.connections = manner, 0
        self.head = b"HTTP/1.1 200 OK\r\n\r\n" if scheme == "http" else b"+"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.speak, args=(one,), daemon=True).start()

    def speak(self, one):
        with one, contextlib.suppress(OSError):
            self.manner(one, self.head)


def stay_silent(one, _):
    while one.recv(4096):
        pass


def hang_up(one, _):
    one.close()


def answer_slowly(one, head):
    one.recv(4096)
    for byte in head + 1000 * b"x":
        one.sendall(bytes([byte]))
        time.sleep(0.02)


def talk_nonsense(one, _):
    one.recv(4096)
    one.sendall(1000 * b"\x00\xff nonsense \r\n")
    one.recv(4096)


def never_end(one, head):
    one.recv(4096)
    one.sendall(head)
    while True:
        one.sendall(4096 * b"x")


def answer_late(one, _):
    """Nothing is here, after a while: what a budget is for."""
    while one.recv(4096):
        time.sleep(0.15)
        one.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")


def trouble(folder):
    impatient = "timeout=300ms&connect-timeout=300ms&upload-timeout=300ms&flush=300ms"
    machines = iter(f"m{i}" for i in range(100))
    for scheme in ("redis", "http"):
        nobody = f"{scheme}://127.0.0.1:{free_port()}/0?{impatient}"
        counted = folder.compile(next(machines), nobody)
        assert counted["compiles"] > 0 and counted["remote_errors"] + counted["remote_timeouts"] > 0, counted
        code, text = folder.check(nobody)
        assert code == 4 and "trouble" in text, text
        for manner in (stay_silent, hang_up, answer_slowly, talk_nonsense, never_end):
            rogue = Rogue(manner, scheme)
            url = f"{scheme}://127.0.0.1:{rogue.port}/0?max-bytes=1M&{impatient}"
            counted = folder.compile(next(machines), url)
            assert counted["compiles"] > 0 and counted["hits_remote"] == 0, (manner, counted)
            assert counted["remote_errors"] + counted["remote_timeouts"] + counted["corrupt"] > 0, (manner, counted)
            assert rogue.connections > 0
            if manner in (stay_silent, answer_slowly):
                assert counted["remote_timeouts"] > 0, (manner, counted)
            rogue.listener.close()
    rogue = Rogue(answer_late, "http")
    counted = folder.compile(next(machines), f"http://127.0.0.1:{rogue.port}/0?budget=50ms&{PATIENT}")
    assert counted["compiles"] > 0 and counted["remote_skipped"] > 0, counted
    # A remote whose module is not there, and a URL that nobody understands.
    empty = folder.at("empty")
    os.mkdir(empty)
    result = folder.run(next(machines), nobody, "compile", folder.at("twice.fake"), "-b", "fake", LIBEXEC=empty)
    assert result.returncode == 0 and "libkiln-http.dll is not there" in result.stderr, result.stderr


def signed(folder):
    lines = {}
    for name in ("ours", "theirs"):
        made = folder.run("m", "", "key", "generate", folder.at(f"{name}.pem"))
        assert made.returncode == 0, made.stderr
        lines[name] = made.stdout
        with open(folder.at(f"{name}.trusted"), "w", encoding="ascii") as file:
            file.write(made.stdout)
    ours, theirs = folder.at("ours.trusted"), folder.at("theirs.trusted")
    for kind, url, stored in servers(folder):
        first = folder.compile(f"{kind}1", url, SIGNING_KEY=folder.at("ours.pem"))
        assert first["remote_uploads"] == first["compiles"] > 0, first
        taken = folder.compile(f"{kind}2", url, TRUSTED_KEYS=ours)
        assert taken["compiles"] == 0 and taken["hits_remote"] > 0 and taken["remote_refused"] == 0, taken
        for machine, trusted in (("3", theirs), ("4", "")):
            refused = folder.compile(f"{kind}{machine}", f"{url}&read-only", TRUST="signed", TRUSTED_KEYS=trusted)
            assert refused["compiles"] == first["compiles"] and refused["hits_remote"] == 0, refused
            assert refused["remote_refused"] > 0, refused
        local = folder.compile(f"{kind}5", url, TRUST="local")
        assert local["compiles"] == first["compiles"] and local["hits_remote"] == 0, local
        assert stored.change(flip) >= first["compiles"]  # a byte of the signature
        changed = folder.compile(f"{kind}6", f"{url}&read-only", TRUSTED_KEYS=ours)
        assert changed["hits_remote"] == 0 and changed["remote_refused"] > 0, changed
        # Nobody's entries are taken by who asks for signatures; and who can sign replaces them.
        assert stored.change(lambda data: data[:-128]) >= first["compiles"]
        unsigned = folder.compile(f"{kind}7", url, SIGNING_KEY=folder.at("ours.pem"))
        assert unsigned["hits_remote"] == 0 and unsigned["remote_refused"] > 0, unsigned
        again = folder.compile(f"{kind}8", url, TRUSTED_KEYS=ours)
        assert again["compiles"] == 0 and again["hits_remote"] > 0, again
    with open(folder.at("bad.trusted"), "w", encoding="ascii") as file:
        file.write("kiln-ed25519 12\n")
    result = folder.run("bad", url, "compile", folder.at("twice.fake"), "-b", "fake",
                        TRUSTED_KEYS=folder.at("bad.trusted"))
    assert result.returncode != 0 and "line 1" in result.stderr, result.stderr


def make_certificates(folder):
    """Two authorities, and what they sign: by name, for what, and whether it is still good."""
    def openssl(*words):
        result = subprocess.run([program("openssl"), *words], cwd=folder.path, capture_output=True, text=True,
                                check=False)
        assert result.returncode == 0, result.stderr

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "stranger-ca"):
        openssl("req", "-x509", *curve, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj",
                f"/CN={name} {os.urandom(8).hex()}", "-days", "30")
        openssl("x509", "-in", f"{name}.crt", "-outform", "DER", "-out", f"{name}.der")
    for name, by, names, days in (("server", "ca", "DNS:localhost", 30), ("stranger", "stranger-ca", "DNS:localhost", 30),
                                  ("other", "ca", "DNS:elsewhere.example", 30), ("old", "ca", "DNS:localhost", -1)):
        openssl("req", "-new", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        with open(folder.at("ext"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName={names}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.crt", "-CAkey", f"{by}.key", "-CAcreateserial",
                "-days", str(days), "-extfile", "ext", "-out", f"{name}.crt")


def tls(folder):
    if "libgnutls.so.30" not in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True,
                                               check=False).stdout:
        skip("Wine's TLS wants libgnutls30")
    make_certificates(folder)

    def urls(name):
        port = folder.redis("--port", "0", "--tls-port", "PORT", "--tls-auth-clients", "no", "--tls-cert-file",
                            folder.at(f"{name}.crt"), "--tls-key-file", folder.at(f"{name}.key"),
                            "--tls-ca-cert-file", folder.at("ca.crt"))
        yield f"rediss://localhost:{port}?{PATIENT}"
        port = folder.nginx("ssl", f"ssl_certificate {folder.at(name)}.crt; ssl_certificate_key {folder.at(name)}.key;")
        yield f"https://localhost:{port}/a?{PATIENT}"

    known = f"ca-file=Z:{folder.at('ca.crt')}"
    good = list(urls("server"))
    for url in good:
        kind = url.partition(":")[0]
        first = folder.compile(f"{kind}1", f"{url}&{known}")
        assert first["remote_uploads"] == first["compiles"] > 0, first
        second = folder.compile(f"{kind}2", f"{url}&{known}")
        assert second["compiles"] == 0 and second["hits_remote"] > 0, second
        code, text = folder.check(f"{url}&ca-file=Z:{folder.at('stranger-ca.crt')}")
        assert code == 4 and "trust error" in text, text
        code, text = folder.check(url)
        assert code == 4 and "certificate was rejected" in text, (url, text)
        refused = folder.compile(f"{kind}3", url)
        assert refused["hits_remote"] + refused["remote_uploads"] == 0 and refused["remote_errors"] > 0, refused
    bad = [url for name in ("stranger", "other", "old") for url in urls(name)]
    for url in bad:
        code, text = folder.check(f"{url}&{known}")
        assert code == 4 and "schannel: " in text, text
    # The same by the system's list, with the authority in it. Wine cannot take it out again; its key goes.
    added = [os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "wine.sh"), sys.argv[2],
             f"Z:{folder.at('ca.der')}"]
    assert subprocess.run(added, check=False).returncode == 0
    for url in good:
        code, text = folder.check(url)
        assert code == 0, text
    for url in bad:
        code, text = folder.check(url)
        assert code == 4 and "certificate was rejected" in text, (url, text)


def main():
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(path, os.path.abspath(sys.argv[1]))
        with folder.servers:
            {"share": share, "trouble": trouble, "signed": signed, "tls": tls}[sys.argv[3]](folder)


main()
