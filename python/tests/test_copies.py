"""Copies, deep copies and pickles of what owns memory of the library's: never two owners of one object."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any, Callable

import pytest

import kiln
from kiln import _library


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_recipes_copy_is_its_own(copied: Callable[[Any], Any]) -> None:
    """Two owners of one C recipe were freed twice."""
    recipe = kiln.Recipe("test.copy", 1, target="here", source="a")
    before = recipe.key
    other = copied(recipe)
    assert other.key == before and other.text == recipe.text
    other.add("x", 2)
    assert recipe.key == before and other.key != before
    assert recipe.add("x", 2).key == other.key
    del other, recipe


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_what_is_missing_in_a_recipe_is_missing_in_its_copy(cache: kiln.Cache, copied: Callable[[Any], Any]) -> None:
    recipe = kiln.Recipe("test.copy", 1)
    with pytest.raises(kiln.InvalidError):
        recipe.add("x", None)  # type: ignore[arg-type]
    with pytest.raises(kiln.InvalidError):
        cache.put(copied(recipe), b"A")
    with pytest.raises(kiln.InvalidError):
        copied(kiln.Recipe("test.copy", 1, target="here")).__init__("test.copy", 1, target="\0")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_blobs_copy_holds_a_reference(copied: Callable[[Any], Any]) -> None:
    blob = kiln.Blob(b"payload" * 1000, b"facts")
    other = copied(blob)
    del blob
    assert bytes(other) == b"payload" * 1000 and bytes(other.facts) == b"facts" and other.origin == "none"
    third = copied(other)
    del other
    assert bytes(third.data) == b"payload" * 1000


def test_a_key_goes_anywhere() -> None:
    key = kiln.Recipe("test.copy", 1).key
    for other in (copy.copy(key), copy.deepcopy(key), pickle.loads(pickle.dumps(key))):
        assert other == key and hash(other) == hash(key)


def test_handles_are_neither_copied_nor_pickled(cache: kiln.Cache) -> None:
    source = kiln.Source("c", "#include <kiln_kernel.h>\nKILN_KERNEL(one, KILN_INOUT(int, x)) { KILN_ITEMS_X(i) { x[i] = 1; } }")
    with kiln.Runtime(backend="cpu", cache=cache) as runtime:
        device = runtime.select()
        program, queue = device.build(source), device.queue()
        buffer = device.buffer(64)
        event = queue.launch_event(program, "one", 16, buffer)
        event.wait()
        # A device has no object of its own, but its runtime's.
        for owner in (cache, runtime, device, program, queue, buffer, event, cache._handle):
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                if owner is device and copied is copy.copy:
                    continue
                with pytest.raises(TypeError, match=r"cannot (copy or )?pickle"):
                    copied(owner)
        del event, buffer, queue, program
    assert cache.stats()  # still open


def test_recipes_and_blobs_are_not_pickled() -> None:
    for owner in (kiln.Recipe("test.copy", 1), kiln.Blob(b"A")):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(owner)


def test_what_could_not_be_made_is_not_freed(capfd: pytest.CaptureFixture[str]) -> None:
    for call in (lambda: kiln.Recipe(), lambda: kiln.Recipe("bad name"), lambda: kiln.Blob("text")):  # type: ignore[call-arg]
        with pytest.raises((TypeError, kiln.InvalidError)):
            call()
    kiln.Recipe.__new__(kiln.Recipe)
    kiln.Blob.__new__(kiln.Blob)
    assert capfd.readouterr().err == ""


def test_a_view_gives_no_way_to_write(cache: kiln.Cache) -> None:
    """`blob.data.obj` was a writable array of 2^62 bytes over the cache's memory."""
    cache.put(kiln.Recipe("test.copy", 1), b"payload")
    found = cache.get(kiln.Recipe("test.copy", 1))
    assert found is not None
    for view in (found.data, found.data[2:], memoryview(found.data)):
        with pytest.raises(TypeError):
            view.obj[0] = 1
    again = cache.get(kiln.Recipe("test.copy", 1))
    assert again is not None and bytes(again) == b"payload"


def test_a_view_keeps_its_owner(tmp_path: Path) -> None:
    import ctypes
    import gc
    import weakref

    class Owner:
        pass

    owner, memory = Owner(), ctypes.create_string_buffer(b"abcd")
    view = _library.view(ctypes.addressof(memory), 4, owner)
    alive = weakref.ref(owner)
    part = view[1:3]
    del owner, view
    gc.collect()
    assert alive() is not None and bytes(part) == b"bc" and part.readonly
    del part
    gc.collect()
    assert alive() is None
