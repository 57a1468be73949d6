"""kiln.Cache: what is looked up, compiled, stored, refused."""

from __future__ import annotations

import asyncio
import math
import pickle
import sys
from pathlib import Path
from typing import Callable

import pytest

import kiln
import kiln.stats


def recipe(**fields: object) -> kiln.Recipe:
    return kiln.Recipe("test.upper", 1, **fields)  # type: ignore[arg-type]


def never() -> bytes:
    raise AssertionError("a hit compiles nothing")


def test_a_miss_is_none(cache: kiln.Cache) -> None:
    assert cache.get(recipe(source="a")) is None
    assert recipe(source="a") not in cache


def test_compiled_once_then_found(cache: kiln.Cache) -> None:
    made = cache.get_or_compile(recipe(source="a"), lambda: b"A")
    found = cache.get_or_compile(recipe(source="a"), never)
    assert (made.origin, found.origin) == ("compiled", "memory")
    assert bytes(made) == bytes(found) == b"A"
    assert cache.stats()["compiles"] == 1
    assert cache.stats()["hits_memory"] == 1


def test_another_process_finds_it_on_disk(cache: kiln.Cache, python: Callable[..., str]) -> None:
    program = """
import sys, kiln
with kiln.Cache(sys.argv[1]) as cache:
    blob = cache.get(kiln.Recipe("test.upper", 1, source="a"))
    print(blob.origin, bytes(blob).decode(), bytes(blob.facts).decode())
"""
    cache.put(recipe(source="a"), b"A", b"facts")
    assert python(program, cache.root).split() == ["disk", "A", "facts"]


def test_a_native_recipe_says_so_in_its_text() -> None:
    """store/remote/trust.c refuses it unsigned: test_trust.c."""
    native = recipe(source="a").set_native()
    assert native.text == recipe(source="a").text + 'device.code text "processor"\n'
    assert native.key != recipe(source="a").key


def test_facts_come_with_a_hit(cache: kiln.Cache) -> None:
    cache.get_or_compile(recipe(source="a"), lambda: (b"A", b"kernel a"))
    found = cache.get(recipe(source="a"))
    assert found is not None and bytes(found.facts) == b"kernel a"


@pytest.mark.parametrize("size", [1, 2, 4095, 1 << 20])
def test_views_are_whole_and_read_only(cache: kiln.Cache, size: int) -> None:
    payload = bytes(range(256)) * (size // 256) + bytes(range(size % 256))
    cache.put(recipe(size=size), payload)
    cache.trim()
    found = cache.get(recipe(size=size))
    assert found is not None
    data = found.data
    assert data.readonly and data.nbytes == size and data.contiguous
    assert data == payload
    with pytest.raises(TypeError):
        data[0] = 1


def test_a_view_outlives_blob_and_cache(tmp_path: Path) -> None:
    with kiln.Cache(tmp_path) as cache:
        data = cache.get_or_compile(recipe(source="a"), lambda: b"A" * 100_000).data
        assert data is not None
        cache.trim()
    assert bytes(data[-2:]) == b"AA"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before Python 3.12 only C code can give the buffer protocol")
def test_a_blob_is_bytes_like() -> None:
    assert memoryview(kiln.Blob(b"A")) == b"A"


def test_what_compile_raises_arrives_and_is_not_stored(cache: kiln.Cache) -> None:
    def fail() -> bytes:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        cache.get_or_compile(recipe(source="a"), fail)
    assert bytes(cache.get_or_compile(recipe(source="a"), lambda: b"A")) == b"A"


@pytest.mark.parametrize("result", [b"", "text", None, 7, (b"A", "text")])
def test_what_is_not_a_payload_is_refused(cache: kiln.Cache, result: object) -> None:
    with pytest.raises(kiln.InvalidError):
        cache.get_or_compile(recipe(source="a"), lambda: result)
    assert cache.get(recipe(source="a")) is None


def test_compile_may_use_the_cache(cache: kiln.Cache) -> None:
    def outer() -> bytes:
        return bytes(cache.get_or_compile(recipe(source="inner"), lambda: b"in")) + b"out"

    assert bytes(cache.get_or_compile(recipe(source="outer"), outer)) == b"inout"


def test_an_error_says_what_why_fix() -> None:
    with pytest.raises(kiln.InvalidError) as caught:
        kiln.Key("12")
    error = caught.value
    assert error.status == "KILN_E_INVALID" and error.what and error.why
    assert isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.fix) == (type(error), str(error), error.fix)


@pytest.mark.parametrize("value", [None, 1.5, -1, 1 << 64, {"a": 1}])
def test_a_recipe_without_a_field_is_refused(cache: kiln.Cache, value: object) -> None:
    one = recipe(source="a")
    with pytest.raises(kiln.InvalidError):
        one.add("level", value)  # type: ignore[arg-type]
    with pytest.raises(kiln.InvalidError):
        cache.get_or_compile(one, lambda: b"A")


def test_fields_are_framed_and_typed() -> None:
    keys = {
        recipe(source="ab").add("x", "c").key,
        recipe(source="a").add("x", "bc").key,
        recipe(source=b"ab").add("x", "c").key,
        recipe(source="ab", x=1).key,
        recipe(source="ab", x="1").key,
        recipe(source="ab", x=[]).key,
        recipe(source="ab", x=["", ""]).key,
    }
    assert len(keys) == 7
    assert recipe(x=["a", "b"]).key == recipe().add("x", "a").add("x", "b").key


def test_keys_in_all_their_forms(cache: kiln.Cache) -> None:
    key = recipe(source="a").key
    cache.put(recipe(source="a"), b"A")
    for form in (key, str(key), bytes(key)):
        assert form in cache
    assert len({key, kiln.Key(str(key)), kiln.Key(bytes(key))}) == 1


def test_remove_prune_clear(cache: kiln.Cache) -> None:
    for number in range(3):
        cache.put(kiln.Recipe("test.upper", 1, target="here", number=number), b"A")
    assert cache.remove(kiln.Recipe("test.upper", 1, target="here", number=0))
    assert not cache.remove(kiln.Recipe("test.upper", 1, target="here", number=0))
    assert [entry.target for entry in cache.entries("here")] == ["here", "here"]
    assert list(cache.entries("elsewhere")) == []
    assert cache.prune(max_bytes=0, target="elsewhere").entries_removed == 0
    assert cache.clear().entries_removed == 2


def test_pins_are_counted(cache: kiln.Cache) -> None:
    assert not cache.pin(recipe(source="a"))
    cache.put(recipe(source="a"), b"A")
    assert cache.pin(recipe(source="a"))
    cache.trim()
    found = cache.get(recipe(source="a"))
    assert found is not None and found.origin == "memory"
    cache.unpin(recipe(source="a"))


def test_explain_names_the_field(cache: kiln.Cache) -> None:
    cache.put(recipe(source="a", option="-O1"), b"A")
    told = cache.explain(recipe(source="a", option="-O2"))
    assert not told.hit
    assert [(one.field, one.then, one.now) for one in told.differences] == [("option", '"-O1"', '"-O2"')]
    assert cache.explain(recipe(source="a", option="-O1")).hit


def test_switches(tmp_path: Path) -> None:
    with kiln.Cache(tmp_path, disabled=True) as cache:
        cache.put(recipe(source="a"), b"A")
        assert cache.get(recipe(source="a")) is None
    with kiln.Cache(disk=False) as cache:
        assert cache.root == ""
        cache.put(recipe(source="a"), b"A")
        assert recipe(source="a") in cache


def test_the_environment_decides_what_is_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path / "named"))
    assert kiln.default_cache().root == str(tmp_path / "named")
    assert kiln.default_cache() is kiln.default_cache()
    monkeypatch.setenv("KILN_CACHE_MAX_SIZE", "much")
    with pytest.raises(kiln.InvalidError, match="KILN_CACHE_MAX_SIZE"):
        kiln.Cache()


def test_a_closed_cache_is_refused(tmp_path: Path) -> None:
    cache = kiln.Cache(tmp_path)
    cache.close()
    cache.close()
    with pytest.raises(kiln.InvalidError, match="closed"):
        cache.get(recipe(source="a"))


def test_a_broken_directory_fails_no_compile(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with kiln.Cache(tmp_path / "file") as cache:
        assert cache.disk_reason
        assert bytes(cache.get_or_compile(recipe(source="a"), lambda: b"A")) == b"A"


def test_totals_are_of_all_processes(cache: kiln.Cache, python: Callable[..., str]) -> None:
    program = "import sys, kiln; c = kiln.Cache(sys.argv[1]); c.get_or_compile(kiln.Recipe('t'), lambda: b'A')"
    for _ in range(2):
        python(program, cache.root)
    totals = cache.totals()
    assert (totals["compiles"], totals["hits_disk"]) == (1, 1)
    assert set(totals) == {counter.name for counter in kiln.stats.counters()}


def test_a_dict_is_a_recipe(tmp_path: Path) -> None:
    with kiln.Cache(str(tmp_path / "cache")) as cache:
        fields = {"stage": "example.dict", "revision": 2, "source": "text", "x.option": ["-O2", "-g"]}
        blob = cache.get_or_compile(fields, lambda: b"made")
        assert cache.get_or_compile(kiln.Recipe("example.dict", 2, source="text", **{"x.option": ["-O2", "-g"]}), None) == blob
        assert cache.get(fields) == b"made" and cache.explain(fields).why == "hit"
        assert cache.put({"a": 1}, b"one") == b"one" and cache.get({"a": 1}) == b"one"
        assert cache.get({"a": 2}) is None and cache.get(kiln.Recipe("python", a=1)) == b"one"
        assert asyncio.run(cache.get_or_compile_async({"a": 1}, lambda: b"two")) == b"one"
        for wrong in (3, None, ["a"], {1: "a"}):
            with pytest.raises(kiln.InvalidError):
                cache.get_or_compile(wrong, lambda: b"")


def test_blobs_are_equal_by_their_bytes(tmp_path: Path) -> None:
    with kiln.Cache(str(tmp_path / "cache")) as cache:
        blob = cache.put(kiln.Recipe("example.equal", a=1), b"bytes")
        assert blob == b"bytes" and blob == bytearray(b"bytes") and b"bytes" == blob and blob == cache.get({"stage": "example.equal", "a": 1})
        assert blob != b"other" and blob != "bytes" and hash(blob) == hash(b"bytes")


def test_limits_may_be_the_default_or_none(tmp_path: Path) -> None:
    for limit in (None, 0, math.inf, 1 << 20):
        with kiln.Cache(str(tmp_path / "cache"), disk_max_bytes=limit, memory_max_bytes=limit, disk_max_files=limit) as cache:
            assert cache.put({"a": 1}, b"one") == b"one"
    with pytest.raises(kiln.InvalidError):
        kiln.Cache(str(tmp_path / "cache"), disk_max_bytes=-math.inf)
