"""What a Python programmer expects of the package: mappings, comparisons, ``with``, limits, and errors with their text."""

from __future__ import annotations

import math
from typing import Any

import pytest

import kiln

TEXT = "#include <kiln_kernel.h>\nKILN_KERNEL(twice, KILN_INOUT(int, x)) { KILN_ITEMS_X(i) { x[i] *= 2; } }"


def test_a_mapping_is_a_recipe(cache: kiln.Cache) -> None:
    fields: dict[str, Any] = {"stage": "test.map", "revision": 2, "source": "a", "option": ["-O2", "-g"]}
    made = cache.get_or_compile(fields, lambda: b"A")
    assert made.origin == "compiled" and made == b"A"
    # The order of a mapping's fields does not count; that of a list does.
    again = dict(reversed(list(fields.items())))
    assert cache.get_or_compile(again, lambda: b"B") == b"A"
    assert cache.get({**fields, "option": ["-g", "-O2"]}) is None
    found = cache.get(kiln.Recipe("test.map", 2, option=["-O2", "-g"], source="a"))
    assert found is not None and found == made
    assert again in cache and cache.contains([fields, {"stage": "test.map"}]) == [True, False]
    assert cache.explain(fields).hit
    assert cache.remove(fields) and cache.get(fields) is None
    assert cache.put({"source": "a"}, b"C") == b"C" and cache.get(kiln.Recipe("python", source="a")) == b"C"


@pytest.mark.parametrize("wrong", [{1: "a"}, {"source": None}, {"stage": "no blanks"}, {"revision": "1"}, "text", 3, None])
def test_what_is_no_recipe_is_refused(cache: kiln.Cache, wrong: Any) -> None:
    with pytest.raises(kiln.InvalidError):
        cache.get_or_compile(wrong, lambda: b"A")


def test_blobs_compare_with_bytes(cache: kiln.Cache) -> None:
    blob = kiln.Blob(b"abc")
    assert blob == b"abc" and blob == bytearray(b"abc") and blob == kiln.Blob(b"abc") and b"abc" == blob
    assert blob != b"abd" and blob != "abc" and blob != None  # noqa: E711
    assert len({blob, kiln.Blob(b"abc"), b"abc"}) == 1


def test_limits_may_be_infinite(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_MAX_AGE", "1d")
    with kiln.Cache(
        tmp_path / "c",
        disk_max_bytes=math.inf,
        disk_max_files=math.inf,
        memory_max_bytes=math.inf,
        memory_max_count=math.inf,
        max_age=math.inf,
        wait=math.inf,
        record_max_bytes=math.inf,
    ) as cache:
        assert cache.put({"source": "a"}, b"A") == b"A"
    with kiln.Cache(tmp_path / "c", disk_max_bytes=None, max_age=None, wait=None) as cache:
        assert cache.get({"source": "a"}) == b"A"
    for name in ("disk_max_bytes", "memory_max_count", "wait"):
        with pytest.raises(kiln.InvalidError):
            kiln.Cache(tmp_path / "c", **{name: -math.inf})
        with pytest.raises(kiln.InvalidError):
            kiln.Cache(tmp_path / "c", **{name: math.nan})


def test_a_namespace_is_a_part_of_its_root(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_NAMESPACE", "ours")
    with kiln.Cache(tmp_path) as ours, kiln.Cache(tmp_path, namespace="other") as other, kiln.Cache(tmp_path, namespace="") as none:
        assert [cache.root for cache in (ours, other, none)] == [
            str(tmp_path / "namespaces/ours"),
            str(tmp_path / "namespaces/other"),
            str(tmp_path),
        ]
        ours.put({"source": "a"}, b"A")
        assert other.get({"source": "a"}) is None and none.get({"source": "a"}) is None
    with pytest.raises(kiln.InvalidError, match="name_space"):
        kiln.Cache(tmp_path, namespace="../up")


def test_an_unknown_language_or_backend_raises(cache: kiln.Cache) -> None:
    with pytest.raises(kiln.InvalidError, match="klingon"):
        kiln.Source("klingon", "Qapla'")
    with pytest.raises(kiln.Error, match="klingon"):
        kiln.Runtime(backend="klingon", cache=cache)


def test_the_compilers_log_is_in_the_text_of_an_error(cache: kiln.Cache) -> None:
    with kiln.Runtime(backend="cpu", cache=cache) as runtime:
        with pytest.raises(kiln.CompileError) as caught:
            runtime.select().build(kiln.Source("c", "#include <kiln_kernel.h>\nint x = nonsense;"))
    assert caught.value.log and caught.value.log.rstrip() in str(caught.value)
    assert "nonsense" in str(caught.value).split("\n", 1)[1]


def test_objects_close_at_the_end_of_with(cache: kiln.Cache) -> None:
    source = kiln.Source("c", TEXT)
    with kiln.Runtime(backend="cpu", cache=cache) as runtime:
        device = runtime.select(source)
        assert device == runtime.devices[0] and len({device, *runtime.devices}) == len(runtime.devices)
        assert device != "cpu"
        with device.build(source) as program, device.buffer(64) as buffer, device.queue() as queue:
            with queue.launch_event(program, "twice", 16, buffer) as event:
                event.wait()
            with pytest.raises(TypeError):
                queue.launch(program, "twice", 16, buffer, lokal=4)  # type: ignore[call-arg]
        for used in (lambda: program.entries, lambda: buffer.address, queue.finish, event.wait):
            with pytest.raises(kiln.InvalidError, match="closed"):
                used()
        with kiln.Runtime(backend="cpu", cache=cache) as other:
            assert other.select(source) != device
