"""cuda.core's programs in kiln's cache.

In place of ``Program(code, "c++", options).compile("cubin")``::

    object_code = kiln.cuda_core.compile(code, "c++", "cubin", options)

which follows the headers that ``options.include_path`` leads to, keeps the lowered names of name expressions, and compiles
once over threads and processes. With cuda.core's own call, a `ProgramCache` is a cache like its others::

    with kiln.cuda_core.ProgramCache() as cache:
        object_code = program.compile("cubin", cache=cache)

and `extra_digest` is the digest of headers that its ``make_program_cache_key`` asks for.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterable, Optional, Union

from kiln.cache import Cache, default_cache
from kiln.errors import Error, UnsupportedError
from kiln.recipe import Recipe
from kiln.runtime import Runtime
from kiln.source import Source

if TYPE_CHECKING:
    _Resource = object
else:
    try:
        from cuda.core.utils import ProgramCacheResource as _Resource
    except ImportError:  # documentation, and checks without cuda.core
        _Resource = object

_TARGET = "cuda-core"
#: What reads files that no scan of the source finds.
_OPAQUE = ("pre_include", "pch", "use_pch", "pch_dir", "create_pch")


class ProgramCache(_Resource):
    """A ``ProgramCacheResource`` on kiln's tiers: memory, disk, packs and remotes.

    Parameters
    ----------
    cache : Cache, optional
        Default: `kiln.default_cache`.

    Notes
    -----
    As cuda.core's interface wants, it keeps bytes alone: the lowered names of name expressions are lost. `compile` keeps them.
    """

    def __init__(self, cache: Optional[Cache] = None) -> None:
        self._cache = cache or default_cache()
        self._seen: set[bytes] = set()

    def _recipe(self, key: Union[bytes, str]) -> Recipe:
        if not isinstance(key, (bytes, bytearray, str)):
            raise TypeError(f"a key is bytes or str, not {type(key).__name__}")
        return Recipe("cuda-core.program", 1, target=_TARGET, key=key.encode() if isinstance(key, str) else bytes(key))

    def __getitem__(self, key: Union[bytes, str]) -> bytes:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: Union[bytes, str], default: Optional[bytes] = None) -> Optional[bytes]:
        """The bytes of an entry, or `default`."""
        blob = self._cache.get(self._recipe(key))
        return default if blob is None else bytes(blob)

    def __setitem__(self, key: Union[bytes, str], value: Any) -> None:
        recipe = self._recipe(key)
        self._cache.put(recipe, _code_of(value))
        self._seen.add(bytes(recipe.key))

    def __delitem__(self, key: Union[bytes, str]) -> None:
        if not self._cache.remove(self._recipe(key)):
            raise KeyError(key)

    def _keys(self) -> set[bytes]:
        kept = self._cache.contains(self._seen)
        self._seen = {key for key, there in zip(list(self._seen), kept) if there}
        return self._seen | {bytes(entry.key) for entry in self._cache.entries(_TARGET)}

    def __len__(self) -> int:
        return len(self._keys())

    def clear(self) -> None:
        """Removes every entry that came from cuda.core; kiln's others stay."""
        for key in self._keys():
            self._cache.remove(key)

    def update(self, items: Any, /) -> None:
        """Stores several entries: a mapping, or pairs."""
        for key, value in items.items() if hasattr(items, "items") else items:
            self[key] = value

    def close(self) -> None:
        """Does nothing: the cache is the process's, or its owner's."""

    def __enter__(self) -> ProgramCache:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()


def _code_of(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    code = value.code if hasattr(value, "code") else None
    if isinstance(code, str):
        return Path(code).read_bytes()
    if isinstance(code, (bytes, bytearray, memoryview)):
        return bytes(code)
    raise TypeError(f"a value is bytes-like or an ObjectCode, not {type(value).__name__}")


# --- headers ------------------------------------------------------------------------------------------------------


def _include_dirs(options: Any) -> tuple[str, ...]:
    named = getattr(options, "include_path", None)
    if named is None:
        return ()
    return (named,) if isinstance(named, str) else tuple(os.fspath(path) for path in named)


def extra_digest(code: str, options: Any = None, *, cache: Optional[Cache] = None) -> bytes:
    """The digest of every header that a source reaches through ``#include``.

    Parameters
    ----------
    code : str
        CUDA C++.
    options : cuda.core.ProgramOptions, optional
        Whose ``include_path``, and the directory of whose ``name``, are searched.
    cache : Cache, optional
        Keeps the lists of headers. Default: `kiln.default_cache`.

    Returns
    -------
    bytes
        32 bytes. It changes with the text of any header, and with one that is found before another; not with a path.

    Raises
    ------
    UnsupportedError
        The headers cannot be known: a computed ``#include``, ``pre_include``, precompiled headers; or one that lies both next
        to the source and in an include directory, which NVRTC may search in either order.

    Notes
    -----
    NVRTC takes the directory of ``name`` for the source's, and the current directory where it has none.
    """
    opaque = [name for name in _OPAQUE if getattr(options, name, None)]
    if opaque:
        raise UnsupportedError("list the headers of a program", f"{opaque[0]} reads files by itself", "leave it out")
    name = os.path.abspath(getattr(options, "name", None) or "default_program")
    source = Source("cuda", code, name=name, include_dirs=_include_dirs(options))
    digest = hashlib.sha256(b"kiln headers 1")
    with Runtime(backend="cuda", compile_only=True, cache=cache) as runtime:
        for path in runtime.headers("cuda:sm_80", source):
            _refuse_two_of_a_name(path, os.path.dirname(name), source.include_dirs)
            text = Path(path).read_bytes()
            digest.update(len(text).to_bytes(8, "little"))
            digest.update(text)
    return digest.digest()


def _refuse_two_of_a_name(path: str, beside: str, include_dirs: Iterable[str]) -> None:
    if not path.startswith(beside + os.sep):
        return
    name = os.path.relpath(path, beside)
    for place in include_dirs:
        other = os.path.join(place, name)
        if os.path.exists(other) and not os.path.samefile(other, path):
            raise UnsupportedError(
                "list the headers of a program", f"{path} and {other} have the same name", "give the program a name elsewhere"
            )


# --- compiling ----------------------------------------------------------------------------------------------------


def compile(
    code: Union[str, bytes],
    code_type: str,
    target_type: str,
    options: Any = None,
    name_expressions: Iterable[Union[str, bytes]] = (),
    *,
    cache: Optional[Cache] = None,
) -> Any:
    """``Program(code, code_type, options).compile(target_type, name_expressions)``, from the cache when it can.

    Parameters
    ----------
    code : str or bytes
        CUDA C++, PTX, or NVVM IR.
    code_type : str
        ``"c++"``, ``"ptx"`` or ``"nvvm"``.
    target_type : str
        ``"cubin"``, ``"ptx"`` or ``"ltoir"``.
    options : cuda.core.ProgramOptions, optional
        Default: cuda.core's.
    name_expressions : iterable of str or bytes, optional
        Whose lowered names ``ObjectCode.get_kernel`` is to know.
    cache : Cache, optional
        Default: `kiln.default_cache`.

    Returns
    -------
    cuda.core.ObjectCode
        The same on a hit as on a compile.

    Raises
    ------
    Exception
        What cuda.core raises where the code does not compile.

    Notes
    -----
    What no key describes (side effects such as ``time``, headers that cannot be known) is compiled by cuda.core as
    it is, and not stored.
    """
    from cuda.core import Program, ProgramOptions

    used = options if options is not None else ProgramOptions()
    expressions = tuple(name_expressions)

    def compile_now() -> Any:
        return Program(code, code_type, used).compile(target_type, name_expressions=expressions)

    store = cache or default_cache()
    key = _key(code, code_type, used, target_type, expressions, store)
    if key is None:
        return compile_now()
    made: list[Any] = []

    def compile_and_keep() -> tuple[bytes, bytes]:
        made.append(compile_now())
        return _code_of(made[0]), _pack_names(made[0])

    recipe = Recipe("cuda-core.compile", 1, target="cuda-core-compile", key=key, code_type=code_type, target_type=target_type)
    blob = store.get_or_compile(recipe, compile_and_keep)
    return made[0] if made else _object_code(bytes(blob), target_type, used, _unpack_names(bytes(blob.facts)))


def _key(
    code: Any, code_type: str, options: Any, target_type: str, expressions: tuple[Any, ...], store: Cache
) -> Optional[bytes]:
    """None for what no key describes."""
    from cuda.core.utils import make_program_cache_key

    try:
        digest = extra_digest(code, options, cache=store) if code_type == "c++" else None
        key: bytes = make_program_cache_key(
            code=code,
            code_type=code_type,
            options=options,
            target_type=target_type,
            name_expressions=expressions,
            extra_digest=digest,
        )
        return key
    except (Error, ValueError, OSError):
        return None


def _pack_names(code: Any) -> bytes:
    names = getattr(code, "symbol_mapping", None) or getattr(code, "_sym_map", None) or {}
    texts = [[_tagged(name), _tagged(lowered)] for name, lowered in names.items()]
    return json.dumps(texts).encode()


def _tagged(text: Union[str, bytes]) -> list[str]:
    return ["b", text.decode("latin-1")] if isinstance(text, bytes) else ["s", text]


def _untagged(pair: list[str]) -> Union[str, bytes]:
    return pair[1].encode("latin-1") if pair[0] == "b" else pair[1]


def _unpack_names(facts: bytes) -> dict[Any, Any]:
    return {_untagged(name): _untagged(lowered) for name, lowered in json.loads(facts or b"[]")}


def _object_code(code: bytes, target_type: str, options: Any, names: dict[Any, Any]) -> Any:
    from cuda.core import ObjectCode

    make = {"cubin": ObjectCode.from_cubin, "ptx": ObjectCode.from_ptx, "ltoir": ObjectCode.from_ltoir}[target_type]
    return make(code, name=getattr(options, "name", None) or "", symbol_mapping=names)
