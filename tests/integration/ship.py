#!/usr/bin/env python3
"""ship.py KILN PAGE: packs through a real registry (Debian's docker-registry, on a port of its own) and skopeo: pushed and
pulled, signed and not, with a login, and everything that goes wrong: one line each, and nothing is left. PAGE
(docs/operate/packs.md): its Kubernetes manifest mounts the image and finds the packs."""
import base64
import hashlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

SECRET = "$2b$04$k6hxMiqds/UhCPJ9bACe6uto7mzDUvgDiAdaqbucbfd36AMp5gvh6"  # bcrypt of "secret"
KILN, PAGE = os.path.abspath(sys.argv[1]), Path(sys.argv[2])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class World:
    def __init__(self, place):
        self.root = Path(place)
        self.work = self.root / "work"
        self.temporary = self.root / "tmp"
        self.work.mkdir()
        (self.root / "run").mkdir()
        self.temporary.mkdir()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_") or k == "KILN_LIBEXEC"}
        self.environment.update(HOME=str(self.root / "home"), TMPDIR=str(self.temporary), LC_ALL="C",
                                KILN_CACHE_DIR=str(self.root / "cache"), XDG_RUNTIME_DIR=str(self.root / "run"))
        self.servers = []

    def registry(self, name, lines=""):
        port = free_port()
        storage = self.root / name
        config = self.root / f"{name}.yml"
        config.write_text(f"version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {storage}\n"
                          f"http:\n  addr: 127.0.0.1:{port}\n{lines}")
        with open(self.root / f"{name}.log", "wb") as log:
            server = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=log, stderr=log)
        self.servers.append(server)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return f"127.0.0.1:{port}", storage
            assert server.poll() is None, (self.root / f"{name}.log").read_text()
            time.sleep(0.05)
        raise AssertionError("the registry does not answer")

    def kiln(self, *arguments, code=0, **variables):
        done = subprocess.run([KILN, *arguments], env={**self.environment, **variables}, cwd=self.work, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        left = [path.name for path in self.temporary.iterdir() if path.name.startswith("kiln-ship")]
        assert not left, left
        return done.stdout if code == 0 else done.stderr

    def refused(self, code, words, *arguments, **variables):
        before = sorted(self.work.iterdir())
        said = self.kiln(*arguments, code=code, **variables)
        assert said.count("\n") == 1 and words in said, said
        assert sorted(self.work.iterdir()) == before, "something is left"

    def skopeo(self, *arguments):
        subprocess.run(["skopeo", "copy", "--quiet", "--preserve-digests", *arguments], env=self.environment, check=True)


def blob_path(layout, digest):
    return layout / "blobs" / "sha256" / digest.split(":")[1]


def put_blob(layout, data):
    digest = hashlib.sha256(data).hexdigest()
    (layout / "blobs" / "sha256" / digest).write_bytes(data)
    return "sha256:" + digest


def edit_image(layout, edit):
    """Calls edit(manifest) and writes what it leaves, digests and all."""
    index = json.loads((layout / "index.json").read_text())
    entry = index["manifests"][0]
    manifest = json.loads(blob_path(layout, entry["digest"]).read_text())
    edit(manifest)
    data = json.dumps(manifest).encode()
    entry["digest"], entry["size"] = put_blob(layout, data), len(data)
    (layout / "index.json").write_text(json.dumps(index))


def edit_layer(layout, number, change):
    """Calls change(files) with the names and bytes of a layer's tar."""
    def edit(manifest):
        layer = manifest["layers"][number]
        with tarfile.open(blob_path(layout, layer["digest"])) as tar:
            files = {one.name: tar.extractfile(one).read() for one in tar}
        change(files)
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for name, data in files.items():
                one = tarfile.TarInfo(name)
                one.size = len(data)
                tar.addfile(one, io.BytesIO(data))
        layer["digest"], layer["size"] = put_blob(layout, made.getvalue()), len(made.getvalue())
    edit_image(layout, edit)


def flip(files, name):
    data = bytearray(files[name])
    data[len(data) // 2] ^= 1
    files[name] = bytes(data)


def fill(world):
    (world.work / "one.fake").write_text("kernel one x:floats\nx = x 1 +\n")
    world.kiln("compile", "one.fake", "-t", "fake:0")
    for name in ("release", "stranger"):
        (world.work / f"{name}.pub").write_text(world.kiln("key", "generate", f"{name}.pem"))
    world.kiln("pack", "create", "app.kpack")


def there_and_back(world, place, trust):
    said = world.kiln("push", place + ":v1", KILN_SIGNING_KEY=str(world.work / "release.pem"))
    found = re.fullmatch(r"2 pushed in 2 layers, .*, signed\n(sha256:[0-9a-f]{64})\n", said)
    assert found, said
    said = world.kiln("push", place + ":pack", "--pack", "app.kpack", "--json", KILN_CACHE_DIR=str(world.root / "none"))
    known = {name: json.loads(said)[name] for name in ("pack_bytes", "digest")}
    assert json.loads(said) == {"pushed": 2, "layers": 2, "signed": False, **known}
    world.kiln("pull", f"{place}@{found[1]}", "--pack", "pinned.kpack", **trust)
    world.refused(4, "", "pull", f"{place}@sha256:{'0' * 64}", "--pack", "none.kpack", **trust)
    assert (world.work / "pinned.kpack").read_bytes() == (world.work / "app.kpack").read_bytes()
    world.kiln("pull", place + ":v1", "--pack", "back.kpack", **trust)
    assert (world.work / "back.kpack").read_bytes() == (world.work / "app.kpack").read_bytes()
    desk = {"KILN_CACHE_DIR": str(world.root / "desk")}
    world.kiln("pull", place + ":v1", **trust, **desk)
    assert '"disk"' in world.kiln("compile", "one.fake", "-t", "fake:0", "--json", **desk)
    world.kiln("pull", place + ":pack", "--unsigned", "--pack", "plain.kpack")
    assert (world.work / "plain.kpack").read_bytes() == (world.work / "app.kpack").read_bytes()


def go_wrong(world, host, place, storage, trust):
    pull = ("pull", place + ":v1", "--pack", "new.kpack")
    stranger = {"KILN_TRUSTED_KEYS": str(world.work / "stranger.pub")}
    world.refused(4, "manifest unknown", "pull", place + ":v9", "--pack", "new.kpack", **trust)
    world.refused(4, "connection refused", "pull", f"oci+http://127.0.0.1:{free_port()}/app:v1", "--pack", "n", **trust)
    world.refused(4, "connection refused", "push", f"oci+http://127.0.0.1:{free_port()}/app:v1")
    world.refused(2, "is not a place in a registry", "push", f"oci://{host}/app")
    world.refused(2, "is not a place in a registry", "pull", "oci://app:v1;reboot")
    world.refused(2, "it is for remotes", *pull, "--name", "x", **trust)
    world.refused(2, "kiln warm --pack", "push", place + ":v1", "manifest.json")
    world.refused(2, "there is no such file", "push", place + ":v1", "--pack", "none.kpack")
    world.refused(2, "there is nothing to push", "push", place + ":v1", KILN_CACHE_DIR=str(world.root / "empty"))
    world.refused(3, "apt-get install skopeo", *pull, PATH="/nonexistent", **trust)
    world.refused(5, "set KILN_TRUSTED_KEYS, or give --unsigned", *pull)
    world.refused(5, "not of a trusted key", *pull, **stranger)
    world.refused(5, "not of a trusted key", *pull, "--unsigned", **stranger)
    world.refused(5, "KILN_TRUST=local", *pull, KILN_TRUST="local")
    world.refused(5, "nobody signed it", "pull", place + ":pack", "--pack", "new.kpack", **trust)

    def changed(tag, edit):
        layout = world.root / tag
        world.skopeo("--src-tls-verify=false", f"docker://{host}/app:v1", f"oci:{layout}:kiln")
        edit(layout)
        world.skopeo("--dest-tls-verify=false", f"oci:{layout}:kiln", f"docker://{host}/app:{tag}")
        return ("pull", f"{place}:{tag}", "--pack", "new.kpack")

    def swap(files):
        names = sorted(files)
        files[names[1]] = files[names[1]][:-20] + b"0123456789abcdef000\n"
    world.refused(5, "signature does not match", *changed("sig", lambda l: edit_layer(l, 0, swap)), **trust)
    world.refused(5, "signature does not match", *changed("bytes", lambda l: edit_layer(l, 1, lambda f: flip(f, sorted(f)[0]))),
                  **trust)
    # With nobody to ask, the pack's own checksums find it.
    world.refused(5, "is damaged", "pull", place + ":bytes", "--unsigned", "--pack", "new.kpack")
    world.refused(5, "is not a pack of kiln", *changed("foreign", lambda l: edit_image(l, lambda m: m.pop("annotations"))), **trust)
    world.refused(3, "a newer kiln", *changed("later", lambda l: edit_image(l, lambda m: m["annotations"].update(
        {"dev.kiln.pack": "2"}))), **trust)
    world.refused(5, "does not hold a pack", *changed("empty", lambda l: edit_layer(l, 0, lambda f: f.clear())), **trust)
    desk = {"KILN_CACHE_DIR": str(world.root / "untouched")}
    world.kiln("pull", place + ":sig", code=5, **trust, **desk)
    assert json.loads(world.kiln("ls", "--json", **desk))["count"] == 0
    # A registry whose disk has damaged its layers.
    for path in storage.rglob("data"):
        data = bytearray(path.read_bytes())
        if len(data) >= 2048:  # a layer
            data[700] ^= 1
            path.write_bytes(data)
    world.refused(5, "damaged", *pull, **trust)


def log_in(world, trust):
    """Ordinary logins: ~/.docker/config.json."""
    (world.root / "htpasswd").write_text(f"robot:{SECRET}\n")
    host, _ = world.registry("closed", f"auth:\n  htpasswd:\n    realm: test\n    path: {world.root}/htpasswd\n")
    place = f"oci+http://{host}/team/app:v1"
    world.refused(4, "", "push", place)
    docker = world.root / "home" / ".docker"
    docker.mkdir(parents=True)
    login = base64.b64encode(b"robot:secret").decode()
    (docker / "config.json").write_text(json.dumps({"auths": {host: {"auth": login}}}))
    world.kiln("push", place, KILN_SIGNING_KEY=str(world.work / "release.pem"))
    world.kiln("pull", place, "--pack", "closed.kpack", **trust)


def ship_recording(world, place, trust):
    """A recording goes where it is sent and nowhere else, and is compiled again from where it came out."""
    record = {"KILN_RECORD": str(world.work / "recording")}
    world.kiln("compile", "one.fake", "-t", "fake:0", **record)
    said = world.kiln("push", place + ":rec", "recording", KILN_SIGNING_KEY=str(world.work / "release.pem"))
    assert re.fullmatch(r"1 pushed in 1 layer, .*, signed\nsha256:[0-9a-f]{64}\n", said), said
    world.kiln("push", place + ":open", "recording")
    world.kiln("pull", place + ":rec", "back", **trust)
    def files(root):
        return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert files(world.work / "back") == {k: v for k, v in files(world.work / "recording").items() if k.parts[0] != "tmp"}
    for path in [world.work / "back", *(world.work / "back").rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    told = json.loads(world.kiln("warm", "back", "--json", KILN_CACHE_DIR=str(world.root / "replayed")))
    assert [row["result"] for row in told["kernels"]] == ["compiled"], told
    world.refused(2, "it is there already", "pull", place + ":rec", "back", **trust)
    world.refused(2, "name a directory", "pull", place + ":rec", **trust)
    world.refused(2, "is a pack of kiln", "pull", place + ":v1", "new", **trust)
    world.refused(2, "and --pack", "push", place + ":rec", "recording", "--pack", "app.kpack")
    world.refused(5, "nobody signed it", "pull", place + ":open", "new", **trust)
    world.refused(5, "set KILN_TRUSTED_KEYS, or give --unsigned", "pull", place + ":open", "new")
    world.kiln("pull", place + ":open", "unsigned", "--unsigned")

    def changed(tag, edit):
        layout = world.root / tag
        host = place.split("://")[1].rsplit("/", 1)[0]
        world.skopeo("--src-tls-verify=false", f"docker://{host}/app:open", f"oci:{layout}:kiln")
        edit_layer(layout, 0, edit)
        world.skopeo("--dest-tls-verify=false", f"oci:{layout}:kiln", f"docker://{host}/app:{tag}")
        return ("pull", f"{place}:{tag}", "new", "--unsigned")

    def lead_out(files):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            tar.addfile(tarfile.TarInfo("objects/../../out"))
        files["recording.tar"] = made.getvalue()
    world.refused(5, "a file that no recording has", *changed("out", lead_out))
    world.refused(5, "damaged", *changed("cut", lambda files: files.update({"recording.tar": files["recording.tar"][:700]})))
    use = next((world.work / "recording" / "uses").glob("*/*"))
    use.write_bytes(use.read_bytes()[:-1])
    world.refused(5, "remove what is damaged", "push", place + ":rec", "recording")


def mount(world, host):
    """The manifest of the page: what a runtime would mount, unpacked, is what KILN_PACKS names."""
    import yaml
    text = re.search(r"(?ms)^```yaml[^\n]*\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))[1]
    pod = yaml.safe_load(text)
    assert pod["apiVersion"] == "v1" and pod["kind"] == "Pod" and pod["metadata"]["name"]
    volume, = pod["spec"]["volumes"]
    assert volume["image"]["reference"] and volume["image"]["pullPolicy"] in ("Always", "IfNotPresent", "Never")
    container, = pod["spec"]["containers"]
    place, = container["volumeMounts"]
    assert place["name"] == volume["name"] and place["readOnly"] is True
    variables = {one["name"]: one["value"] for one in container["env"]}
    packs = variables["KILN_PACKS"].split(":")
    assert all(Path(pack).parent == Path(place["mountPath"]) and pack.endswith(".kpack") for pack in packs), packs
    layout, mounted = world.root / "mounted", world.root / "volume"
    world.skopeo("--src-tls-verify=false", f"docker://{host}/app:pack", f"oci:{layout}:kiln")
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(blob_path(layout, index["manifests"][0]["digest"]).read_text())
    config = json.loads(blob_path(layout, manifest["config"]["digest"]).read_text())
    assert config["os"] == "linux" and config["rootfs"]["diff_ids"] == [one["digest"] for one in manifest["layers"]]
    for layer in manifest["layers"]:
        with tarfile.open(blob_path(layout, layer["digest"])) as tar:
            tar.extractall(mounted)
    names = sorted(path.name for path in mounted.iterdir())
    assert names == ["fake-0.kpack", "portable.kpack"], names
    said = world.kiln("compile", "one.fake", "-t", "fake:0", "--json", KILN_CACHE_DIR=str(world.root / "pod"),
                      KILN_PACKS=":".join(str(mounted / name) for name in names))
    assert '"origin": "pack"' in said, said


def main():
    for program in ("skopeo", "docker-registry"):
        if not shutil.which(program):
            print(f"SKIP {program}: it is not installed (apt-get install {program})")
            return 77
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        try:
            host, storage = world.registry("open")
            place = f"oci+http://{host}/app"
            trust = {"KILN_TRUSTED_KEYS": str(world.work / "release.pub")}
            fill(world)
            there_and_back(world, place, trust)
            mount(world, host)
            ship_recording(world, place, trust)
            log_in(world, trust)
            go_wrong(world, host, place, storage, trust)
        finally:
            for server in world.servers:
                server.kill()
                server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
