"""What is left to do when a process ends: uploads that are pending, objects that others still use."""

from __future__ import annotations

import http.server
import os
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A remote that takes its time, and the names of what it was given."""
    stored: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        do_HEAD = do_GET

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(0.2)  # so the others are pending when the program ends
            if body:
                stored.append(self.path)
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/?flush=30s&timeout=10s&upload-timeout=30s&connect-timeout=10s", stored
        server.shutdown()
        thread.join()


PUTS = """
import sys, threading, time, kiln
cache = kiln.Cache(sys.argv[1], remotes=[sys.argv[2]])
for number in range(4):
    cache.put(kiln.Recipe("test.exit", 1, number=number), b"payload")
"""

IN_USE = {
    "nothing": "",
    "a capsule": """
capsule = kiln.Runtime(backend="cpu", cache=cache).select().buffer(64).__dlpack__()
""",
    "a runtime": """
import gc
runtime = kiln.Runtime(backend="cpu", cache=cache)
buffer = runtime.select().buffer(64)
kept = [runtime, buffer]
kept.append(kept)
""",
    "a daemon thread": """
compiling = threading.Event()
def compile():
    compiling.set()
    time.sleep(60)
threading.Thread(target=lambda: cache.get_or_compile(kiln.Recipe("test.exit", 2), compile), daemon=True).start()
compiling.wait()
""",
}


@pytest.mark.parametrize("used", IN_USE)
def test_pending_uploads_are_waited_for(
    server: tuple[str, list[str]], tmp_path: Path, python: Callable[..., str], used: str
) -> None:
    """One live capsule left the cache open, and its uploads were lost."""
    url, stored = server
    if not Path(os.environ.get("KILN_LIBEXEC", ""), "libkiln-http.so").exists():
        pytest.skip("no module for HTTP")
    python(PUTS + IN_USE[used], tmp_path / "cache", url)
    assert len(set(stored)) == 4


def test_the_counters_are_written_too(tmp_path: Path, python: Callable[..., str]) -> None:
    program = "import sys, kiln\ncache = kiln.Cache(sys.argv[1])\n"
    python(program + "cache.put(kiln.Recipe('test.exit'), b'A')\n" + IN_USE["a capsule"], tmp_path / "cache")
    assert python(program + "print(cache.totals()['puts'])", tmp_path / "cache").strip() == "1"
