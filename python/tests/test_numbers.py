"""What goes to C arrives whole: numbers that do not fit, and texts that C would cut, are refused."""

from __future__ import annotations

import errno
import math
from pathlib import Path
from typing import Any, Callable

import pytest

import kiln
from kiln import _dlpack, errors


def recipe(**fields: Any) -> kiln.Recipe:
    return kiln.Recipe("test.numbers", 1, **fields)


@pytest.mark.parametrize("revision", [-1, 2**32, 2**32 + 1, 2**64, 1.0, "1", None])
def test_a_revision_does_not_wrap(revision: Any) -> None:
    """TORTURE E17: revision 2**32 + 1 had the key of 1."""
    with pytest.raises(kiln.InvalidError):
        kiln.Recipe("test.numbers", revision)


def test_revisions_that_fit_have_keys_of_their_own() -> None:
    keys = {kiln.Recipe("test.numbers", revision).key for revision in (0, 1, 2**31, 2**32 - 1)}
    assert len(keys) == 4


@pytest.mark.parametrize(
    "option",
    [
        {"disk_max_bytes": -1},
        {"disk_max_bytes": 2**64},
        {"disk_max_files": -1},
        {"memory_max_bytes": 2**64},
        {"memory_max_count": 2**32 + 5},
        {"memory_max_count": -1},
        {"disk_min_free": -1},
        {"disk_min_free": 1.5},
        {"record_max_bytes": 2**64},
        {"max_age": -1},
        {"max_age": 2.0**64},
        {"max_age": math.nan},
        {"max_age": -math.inf},
        {"disk_min_free": math.inf},
        {"wait": -0.001},
        {"wait": 5e6},
        {"wait": "1"},
        {"packs": ["a:b"]},
        {"packs": ["a\0b"]},
        {"remotes": ["redis://one redis://two"]},
        {"remotes": ["redis://one\tredis://two"]},
        {"remotes": [""]},
        {"record": "a\0b"},
    ],
    ids=str,
)
def test_options_of_a_cache(tmp_path: Path, option: dict[str, Any]) -> None:
    with pytest.raises(kiln.InvalidError):
        kiln.Cache(tmp_path, **option)


def test_the_ends_of_the_ranges_are_in_them(tmp_path: Path) -> None:
    limits = {"disk_max_bytes": 2**64 - 1, "disk_max_files": 2**64 - 1, "memory_max_bytes": 2**64 - 1}
    with kiln.Cache(tmp_path, memory_max_count=2**32 - 1, wait=4294967.295, max_age=0.1, **limits) as cache:
        cache.put(recipe(), b"A")
        assert recipe() in cache
        cache.trim(2**64 - 1)
        assert cache.prune(max_age=1e9, max_bytes=2**64 - 1).entries_removed == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda cache: cache.trim(-1),
        lambda cache: cache.trim(2**64),
        lambda cache: cache.prune(max_age=-1),
        lambda cache: cache.prune(max_age=1e12),
        lambda cache: cache.prune(max_bytes=-1),
        lambda cache: cache.prune(max_bytes=2**64),
        lambda cache: cache.put(recipe(), b"A", compile_seconds=-1),
        lambda cache: cache.put(recipe(), b"A", compile_seconds=math.inf),
    ],
)
def test_arguments_of_a_cache(cache: kiln.Cache, call: Callable[[kiln.Cache], Any]) -> None:
    cache.put(recipe(source="there"), b"A")
    with pytest.raises(kiln.InvalidError):
        call(cache)
    assert recipe(source="there") in cache and recipe() not in cache


def test_numbers_of_a_queue(cache: kiln.Cache) -> None:
    source = kiln.Source("c", "#include <kiln_kernel.h>\nKILN_KERNEL(one, KILN_INOUT(int, x)) { KILN_ITEMS_X(i) { x[i] = 1; } }")
    with kiln.Runtime(backend="cpu", cache=cache) as runtime:
        device = runtime.select(source)
        program, queue, buffer = device.build(source), device.queue(), device.buffer(64)
        big = 2**64
        calls: list[Callable[[], Any]] = [
            lambda: device.buffer(-1),
            lambda: device.buffer(big),
            lambda: device.queue(-1),
            lambda: device.queue(big + 1),
            lambda: queue.write(buffer, b"1234", big),
            lambda: queue.read(buffer, bytearray(4), -4),
            lambda: queue.fill(buffer, b"1", big),
            lambda: queue.fill(buffer, b"1", 0, big + 4),
            lambda: queue.fill(buffer, b"1", 65),
            lambda: queue.copy(buffer, buffer, big + 4, 0, 32),
            lambda: queue.copy(buffer, buffer, 4, big, 32),
            lambda: queue.launch(program, "one", big + 16, buffer),
            lambda: queue.launch(program, "one", 16, buffer, local=-1),
            lambda: queue.launch(program, "one", 16, buffer, offset=big),
            lambda: queue.launch(program, "one", 16, buffer, shared_bytes=2**32),
            lambda: queue.launch(program, "one", 16, buffer, cluster=(2**32 + 1,)),
            lambda: queue.launch(program, "one\0more", 16, buffer),
        ]
        for number, call in enumerate(calls):
            with pytest.raises((kiln.InvalidError, kiln.UnsupportedError)):
                call()
                pytest.fail(f"call {number} was taken")
        content = bytearray(64)
        queue.read(buffer, content)
        del program, queue, buffer


@pytest.mark.parametrize("dtype", ["<f32", "<c32", "|i33", "<f0"])
def test_an_element_that_dlpack_cannot_describe(dtype: str) -> None:
    """256 bits were written as 0."""
    with pytest.raises(kiln.InvalidError):
        _dlpack.parse_dtype(dtype)


# --- texts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: kiln.Recipe("test\0one", 1),
        lambda: kiln.Recipe("test", 1, target="here\0there"),
        lambda: kiln.Recipe("test", 1).add("x\0y", 1),
        lambda: kiln.Key("0" * 64 + "\0"),
        lambda: kiln.Source("c", "", options=("-DA\0-DB",))._struct(),
        lambda: kiln.Source("c", "", defines={"A": "1\0002"})._struct(),
        lambda: kiln.Source("c", "", headers={"a\0.h": ""})._struct(),
    ],
)
def test_no_text_is_cut_at_a_nul(call: Callable[[], Any]) -> None:
    with pytest.raises(kiln.InvalidError):
        call()


def test_values_hold_nuls() -> None:
    assert recipe(source="a\0b").key != recipe(source="a\0c").key != recipe(source="a").key
    kiln.Source("c", "int a;\0", headers={"a.h": "\0"})._struct()


def test_an_error_with_a_nul_arrives(cache: kiln.Cache) -> None:
    def fail() -> bytes:
        raise kiln.CompileError("compile\0this", "no\0thing", "fix\0it", "log\0")

    with pytest.raises(kiln.CompileError, match="no.thing"):
        cache.get_or_compile(recipe(), fail)


# --- lists ---------------------------------------------------------------------------------------------------------


def test_lists_that_differ_have_keys_that_differ() -> None:
    values: list[Any] = [
        "absent",
        [],
        [[]],
        [[], []],
        [["a"], ["b"]],
        [["a", "b"]],
        ["a", ["b"]],
        [["a"], "b"],
        ["a", "b"],
        [["ab"]],
        [[b"ab"]],
        [[1]],
        [["1"]],
        [[{"bytes": "6162"}["bytes"]]],
        "kiln list []",
        'kiln list [["a","b"]]',
        ["kiln list []"],  # one field, as the text alone
        'kiln list "kiln list []"',
        "[]",
    ]
    keys = [recipe(**({} if value == "absent" else {"x": value})).key for value in values]
    assert len(set(keys)) == len(values) - 1
    assert recipe(x=["kiln list []"]).key == recipe(x="kiln list []").key
    assert recipe(x=(("a",), ["b"])).key == recipe(x=[["a"], ["b"]]).key


def test_keys_that_were_right_stay() -> None:
    """Of 0.1.0 before lists were framed: entries under them are found for ever."""
    kept = kiln.Recipe("test.kept", 7, target="here", source="a\n", option=["-O2", "-g"], level=2, blob=b"x", on=True)
    assert kept.text == (
        'kiln-recipe 1\nstage text "test.kept"\nrevision u64 7\ntarget target "here"\nsource text "a\\n"\n'
        'option text "-O2"\noption text "-g"\nlevel u64 2\n'
        "blob bytes 1 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\non u64 1\n"
    )


@pytest.mark.parametrize("value", [[[None]], [["a"], 1.5], [[-1]], [[[2**64]]], {"a": []}])
def test_what_no_field_can_be_is_refused_in_a_list_too(cache: kiln.Cache, value: Any) -> None:
    one = recipe()
    with pytest.raises(kiln.InvalidError):
        one.add("x", value)
    with pytest.raises(kiln.InvalidError):
        cache.put(one, b"A")


# --- errors --------------------------------------------------------------------------------------------------------


def test_errors_of_the_system_have_its_number() -> None:
    storage = errors.StorageError("read a file", "Input/output error", "", "", errno.EIO)
    assert (storage.errno, storage.strerror, storage.vendor_code) == (errno.EIO, "Input/output error", errno.EIO)
    assert str(storage) == "read a file: Input/output error"
    assert errors.StorageError("read a file", "no number").errno is None
    assert errors.TimeLimitError("wait", "it took too long").errno == errno.ETIMEDOUT
