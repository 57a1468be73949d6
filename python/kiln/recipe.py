"""Recipes: all that decides what a compile gives, and the keys that they make."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from typing import Any, NoReturn, Optional, Union

from kiln import _structs as s
from kiln._library import decode, encode, lib
from kiln._numbers import u32
from kiln.blob import Bytes
from kiln.errors import InvalidError, check

#: What a field of a recipe may be: text, bytes, a number of 64 bits, or several of these.
Field = Union[str, Bytes, int, "list[Any]", "tuple[Any, ...]"]


#: A recipe, or a mapping of its fields: ``{"stage": "my-engine.spirv", "source": text}``.
RecipeLike = Union["Recipe", Mapping[str, Any]]


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

    def __reduce__(self) -> tuple[Any, ...]:
        return Key, (bytes(self),)


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

    __slots__ = ("__weakref__", "_destroy", "_pointer", "_whole")

    def __init__(self, stage: str, revision: int = 1, *, target: Optional[str] = None, **fields: Field) -> None:
        diag, out = s.Diag(), ctypes.c_void_p()
        number = u32("the revision of a recipe", revision)
        check(lib.kiln_recipe_create(encode(stage), number, ctypes.byref(out), ctypes.byref(diag)), diag)
        self._own(out.value or 0, True)
        if target is not None:
            lib.kiln_recipe_set_target(self._pointer, encode(target))
            self._check()
        for name, value in fields.items():
            self._add(name, value)

    def _own(self, pointer: int, whole: bool) -> None:
        self._pointer, self._destroy = pointer, lib.kiln_recipe_destroy
        self._whole = whole  # no field is missing

    def __del__(self) -> None:
        pointer = getattr(self, "_pointer", 0)  # what could not be created has none
        if pointer:
            self._destroy(pointer)

    def __copy__(self) -> Recipe:
        diag, out = s.Diag(), ctypes.c_void_p()
        check(lib.kiln_recipe_copy(self._pointer, ctypes.byref(out), ctypes.byref(diag)), diag)
        copied = Recipe.__new__(type(self))
        copied._own(out.value or 0, self._whole)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Recipe:
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle kiln.Recipe")

    def add(self, name: str, value: Field) -> Recipe:
        """Adds one field, or one for each item of a list.

        Parameters
        ----------
        name : str
            1 to 64 letters, digits, ``.``, ``-``, ``_``; it may repeat.
        value : str, bytes-like, int, or a list of these
            Text and numbers stay readable in `text`; text over 4 KiB, and bytes, are kept there as length and SHA-256.
            A number is between 0 and 2**64 - 1; truth values are 0 and 1. A list that is empty or has lists in it is one
            field, so that ``[["a"], ["b"]]`` differs from ``[["a", "b"]]``.

        Returns
        -------
        Recipe
            This one.

        Raises
        ------
        InvalidError
            The name, or the type of the value. The cache refuses the recipe from then on.
        """
        self._add(name, value)
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
        lib.kiln_recipe_set_native(self._pointer)
        self._check()
        return self

    def _check(self) -> None:
        diag = s.Diag()
        check(lib.kiln_recipe_status(self._pointer, ctypes.byref(diag)), diag)

    def _add(self, name: str, value: Field) -> None:
        try:
            if isinstance(value, (list, tuple, str)):
                value = _framed(value)
            self._add_fields(encode(name) or b"", value)
            self._check()
        except BaseException:
            # The library refuses a field without a name, and from then on the cache the recipe: without this field it
            # would describe something else.
            self._whole = False
            lib.kiln_recipe_add_u64(self._pointer, b"", 0)
            raise

    def _add_fields(self, name: bytes, value: Field) -> None:
        if isinstance(value, str):
            text = value.encode("utf-8", "surrogatepass")
            lib.kiln_recipe_add_text(self._pointer, name, text, len(text))
        elif isinstance(value, int) and 0 <= value < 1 << 64:
            lib.kiln_recipe_add_u64(self._pointer, name, value)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
            lib.kiln_recipe_add_bytes(self._pointer, name, data, len(data))
        elif isinstance(value, (list, tuple)):
            for item in value:
                self._add_fields(name, item)
        else:
            raise _refusal(value)

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


#: Begins the text of what is framed. A plain text that begins so is framed as well, and so none looks like a list.
_FRAME = "kiln list "


def _framed(value: Field) -> Field:
    """The value as fields: itself, or one text for a list whose items alone do not tell it from others."""
    if isinstance(value, str):
        if not value.startswith(_FRAME):
            return value
    elif not isinstance(value, (list, tuple)):
        return value
    elif value and not any(isinstance(item, (list, tuple)) for item in value):
        return [_framed(item) for item in value]
    import json  # seldom wanted, and slow to import

    return _FRAME + json.dumps(_tagged(value), separators=(",", ":"))


def _tagged(value: Any) -> Any:
    """What JSON says of a value, each type in its own way; what no field can be is left to fail."""
    if isinstance(value, (list, tuple)):
        return [_tagged(item) for item in value]
    if isinstance(value, str):
        return value
    if isinstance(value, int) and 0 <= value < 1 << 64:
        return int(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": bytes(value).hex()}
    raise _refusal(value)


def _refusal(value: Any) -> InvalidError:
    why = f"{value!r:.80} is not text, bytes, or a number of 64 bits"
    return InvalidError("add a field to a recipe", why, "give it as text")


def recipe_of(what: RecipeLike) -> Recipe:
    """A recipe, or the recipe of a mapping: ``stage``, ``revision`` and ``target`` as `Recipe` takes them (default of the
    stage: ``"python"``), then the fields in the order of their names, so that equal mappings have one key."""
    if isinstance(what, Recipe):
        return what
    if not isinstance(what, Mapping):
        raise InvalidError("take a recipe", f"{type(what).__name__} is neither a Recipe nor a mapping", "give a kiln.Recipe")
    fields = dict(what)
    for name in fields:
        if not isinstance(name, str):
            raise InvalidError("take a recipe", f"the name {name!r:.80} is not text", "give text as names of fields")
    recipe = Recipe(fields.pop("stage", "python"), fields.pop("revision", 1), target=fields.pop("target", None))
    for name in sorted(fields):
        recipe.add(name, fields[name])
    return recipe


def key_of(what: Union[RecipeLike, Key, str, bytes]) -> Key:
    """The key of a recipe, or a key in any of its forms."""
    if isinstance(what, (Recipe, Mapping)):
        return recipe_of(what).key
    return what if isinstance(what, Key) else Key(what)


if sys.maxsize < 2**62:
    raise ImportError("kiln: this Python is not of 64 bits (use one that is)")
