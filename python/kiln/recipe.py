"""Recipes: all that decides what a compile gives, and the keys that they make."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Optional, Union

from kiln import _structs as s
from kiln._library import decode, encode, lib
from kiln.blob import Bytes
from kiln.errors import InvalidError, check

#: What a field of a recipe may be: text, bytes, a number of 64 bits, or several of these.
Field = Union[str, Bytes, int, "list[Any]", "tuple[Any, ...]"]


class Key:
    """The SHA-256 of a recipe.

    Parameters
    ----------
    text : str or bytes
        64 hexadecimal digits, or 32 bytes.

    Raises
    ------
    InvalidError
        It is neither.

    Examples
    --------
    >>> import kiln
    >>> key = kiln.Recipe("example.spirv", 1, source="void main() {}").key
    >>> kiln.Key(str(key)) == key
    True
    """

    __slots__ = ("_struct",)

    def __init__(self, text: Union[str, bytes]) -> None:
        if isinstance(text, bytes) and len(text) == 32:
            self._struct = s.Key.from_buffer_copy(text)
            return
        diag, self._struct = s.Diag(), s.Key()
        digits = encode(text) or b""
        check(lib.kiln_key_parse(digits, ctypes.byref(self._struct), ctypes.byref(diag)), diag)

    @classmethod
    def _of(cls, struct: s.Key) -> Key:
        key = cls.__new__(cls)
        key._struct = struct
        return key

    def __bytes__(self) -> bytes:
        return bytes(self._struct)

    def __str__(self) -> str:
        return bytes(self._struct).hex()

    def __repr__(self) -> str:
        return f"kiln.Key('{self}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and bytes(self) == bytes(other)

    def __hash__(self) -> int:
        return hash(bytes(self))


class Recipe:
    """Everything that decides the output of one compile, field by field.

    What is not in a recipe must not change the output; what does not change the output must not be in it: no paths, no
    times, no process ids. Order counts, and fields are framed, so that ``("ab", "c")`` differs from ``("a", "bc")``.

    Parameters
    ----------
    stage : str
        Names the cached function: 1 to 64 letters, digits, ``.``, ``-``, ``_``.
    revision : int, optional
        Raise it whenever the function itself changes.
    target : str, optional
        The directory of the entry in the store (``"cuda-sm_90"``): it groups entries for listing and pruning.
    **fields : str, bytes-like, int, or a list of these
        Added in this order, by `add`.

    Raises
    ------
    InvalidError
        A name, or the type of a value.

    Notes
    -----
    One thread at a time may use a recipe.

    Examples
    --------
    >>> import kiln
    >>> recipe = kiln.Recipe("example.spirv", 1, source="void main() {}", level=2)
    >>> recipe.add("option", ["-O2", "-g"]).key == recipe.key
    True
    >>> print(recipe.text.splitlines()[-1])
    option text "-g"
    """

    __slots__ = ("__weakref__", "_destroy", "_pointer")

    def __init__(self, stage: str, revision: int = 1, *, target: Optional[str] = None, **fields: Field) -> None:
        diag, out = s.Diag(), ctypes.c_void_p()
        self._pointer = 0
        self._destroy = lib.kiln_recipe_destroy
        check(lib.kiln_recipe_create(encode(stage), revision, ctypes.byref(out), ctypes.byref(diag)), diag)
        self._pointer = out.value or 0
        if target is not None:
            check(lib.kiln_recipe_set_target(self._pointer, encode(target), ctypes.byref(diag)), diag)
        for name, value in fields.items():
            self._add(name.encode(), value, diag)

    def __del__(self) -> None:
        if self._pointer:
            self._destroy(self._pointer)

    def add(self, name: str, value: Field) -> Recipe:
        """Adds one field, or one for each item of a list.

        Parameters
        ----------
        name : str
            1 to 64 letters, digits, ``.``, ``-``, ``_``; it may repeat.
        value : str, bytes-like, int, or a list of these
            Text and numbers stay readable in `text`; text over 4 KiB, and bytes, are kept there as length and SHA-256.
            A number is between 0 and 2**64 - 1; truth values are 0 and 1.

        Returns
        -------
        Recipe
            This one.

        Raises
        ------
        InvalidError
            The name, or the type of the value. The cache refuses the recipe from then on.
        """
        self._add(name.encode(), value, s.Diag())
        return self

    def set_native(self) -> Recipe:
        """Says that the entries run on the host (libraries, pickles).

        They are then taken from a remote only with a trusted signature, or where its URL says ``unsigned-native``. The
        key changes: it adds the field ``device.code``. May change with 0.2.

        Returns
        -------
        Recipe
            This one.
        """
        diag = s.Diag()
        check(lib.kiln_recipe_set_native(self._pointer, ctypes.byref(diag)), diag)
        return self

    def _add(self, name: bytes, value: Field, diag: s.Diag) -> None:
        if isinstance(value, str):
            text = value.encode("utf-8", "surrogatepass")
            status = lib.kiln_recipe_add_text(self._pointer, name, text, len(text), ctypes.byref(diag))
        elif isinstance(value, int) and 0 <= value < 1 << 64:
            status = lib.kiln_recipe_add_u64(self._pointer, name, value, ctypes.byref(diag))
        elif isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
            status = lib.kiln_recipe_add_bytes(self._pointer, name, data, len(data), ctypes.byref(diag))
        elif isinstance(value, (list, tuple)):
            for item in value:
                self._add(name, item, diag)
            return
        else:
            # The library refuses a field without a name, and from then on the cache the recipe: without this field it
            # would describe something else.
            lib.kiln_recipe_add_u64(self._pointer, b"", 0, ctypes.byref(diag))
            raise InvalidError(
                f"add the field {decode(name)} to a recipe",
                f"{value!r:.80} is not text, bytes, or a number of 64 bits",
                "give it as text",
            )
        check(status, diag)

    @property
    def key(self) -> Key:
        """The key of the recipe as it stands."""
        return Key._of(lib.kiln_recipe_key(self._pointer))

    @property
    def text(self) -> str:
        """One ``name type value`` line a field; the key is the SHA-256 of it."""
        return decode(lib.kiln_recipe_text(self._pointer))

    def __repr__(self) -> str:
        return f"<kiln.Recipe {self.key}>"


def key_of(what: Union[Recipe, Key, str, bytes]) -> Key:
    """The key of a recipe, or a key in any of its forms."""
    if isinstance(what, Recipe):
        return what.key
    return what if isinstance(what, Key) else Key(what)


if sys.maxsize < 2**62:
    raise ImportError("kiln: this Python is not of 64 bits (use one that is)")
