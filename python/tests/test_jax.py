"""kiln.jax against a stand-in of jax._src.compilation_cache as JAX 0.11 has it, written to its interface;
`python/by_hand/adapters.py` runs against the real one."""

from __future__ import annotations

import abc
import types
from pathlib import Path
from typing import Any, Optional

import pytest

from kiln import _entries, jax


class Config:
    def __init__(self, directory: Optional[str] = None) -> None:
        self.jax_compilation_cache_dir = directory
        self.jax_persistent_cache_min_compile_time_secs = 1.0
        self.jax_persistent_cache_enable_xla_caches = "xla_gpu_per_fusion_autotune_cache_dir"
        self.jax_compilation_cache_check_contents = False

    def update(self, name: str, value: Any) -> None:
        assert hasattr(self, name)
        setattr(self, name, value)


class StrictABCMeta(abc.ABCMeta):
    """As JAX's: only real subclasses are instances."""

    def register(cls, subclass: Any) -> Any:
        raise NotImplementedError(f"{cls} does not support virtual subclasses")

    __instancecheck__ = type.__instancecheck__


class CacheInterface(metaclass=StrictABCMeta):
    _path: Path

    @abc.abstractmethod
    def get(self, key: str) -> Optional[bytes]:
        """..."""

    @abc.abstractmethod
    def put(self, key: str, value: bytes) -> None:
        """..."""


class OwnCache(CacheInterface):
    """A directory, as JAX's LRUCache without a limit."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._path.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> Optional[bytes]:
        file = self._path / f"{key}-cache"
        return file.read_bytes() if file.exists() else None

    def put(self, key: str, value: bytes) -> None:
        (self._path / f"{key}-cache").write_bytes(value)


def module_of_jax() -> Any:
    return types.SimpleNamespace(get_file_cache=lambda path: (OwnCache(path), path), CacheInterface=CacheInterface)


def opened(config: Config) -> Any:
    """What JAX does at the first compile."""
    module = module_of_jax()
    jax.install(module, config)
    jax.install(module, config)
    if not config.jax_compilation_cache_dir:
        return None
    cache, _ = module.get_file_cache(config.jax_compilation_cache_dir)
    return cache


def test_without_a_directory_it_is_switched_on(home: Path) -> None:
    cache = opened(Config())
    assert cache.get("jit_f-1") is None
    cache.put("jit_f-1", b"executable")
    assert opened(Config()).get("jit_f-1") == b"executable"
    assert not (home / "kiln-jax").exists()


def test_the_programs_own_directory_stays(tmp_path: Path) -> None:
    config = Config(str(tmp_path / "own"))
    OwnCache(str(tmp_path / "own")).put("old", b"from before")
    cache = opened(config)
    assert cache.get("old") == b"from before"
    cache.put("new", b"executable")
    assert OwnCache(str(tmp_path / "own")).get("new") == b"executable"
    assert opened(Config()).get("old") == b"from before"  # kiln has it now
    assert config.jax_compilation_cache_dir == str(tmp_path / "own")


def test_empty_keys_and_thresholds() -> None:
    config = Config()
    for call in (lambda: opened(config).get(""), lambda: opened(config).put("", b"x")):
        with pytest.raises(ValueError):
            call()
    jax.install(types.SimpleNamespace(get_file_cache=None), config, min_compile_seconds=0)
    assert config.jax_persistent_cache_min_compile_time_secs == 0


def test_it_is_of_jaxs_class(tmp_path: Path) -> None:
    """JAX's own compilation_cache_test.py asks for that."""
    for config in (Config(), Config(str(tmp_path / "own"))):
        cache = opened(config)
        assert isinstance(cache, CacheInterface) and isinstance(cache, jax.CompilationCache)
        assert isinstance(cache._path, Path)


def test_an_interface_that_wants_more_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    class More(CacheInterface):
        @abc.abstractmethod
        def contains(self, key: str) -> bool:
            """..."""

    _entries._said.clear()
    module, config = module_of_jax(), Config()
    own, module.CacheInterface = module.get_file_cache, More
    jax.install(module, config)
    assert module.get_file_cache is own and config.jax_compilation_cache_dir is None
    assert "contains" in caplog.text


def test_xla_keeps_no_files_below_a_directory_of_kilns(home: Path, tmp_path: Path) -> None:
    """An unwritable home was PERMISSION_DENIED at the first compile."""
    home.chmod(0o500)
    config = Config()
    cache = opened(config)
    assert config.jax_persistent_cache_enable_xla_caches == ""
    cache.put("key", b"executable")
    assert not (home / "kiln-jax").exists()
    home.chmod(0o700)
    config = Config(str(tmp_path / "own"))
    opened(config)
    assert config.jax_persistent_cache_enable_xla_caches == "xla_gpu_per_fusion_autotune_cache_dir"


def test_where_jax_checks_contents_kiln_is_out_of_the_way(tmp_path: Path) -> None:
    opened(Config()).put("key", b"kiln's")
    config = Config(str(tmp_path / "own"))
    config.jax_compilation_cache_check_contents = True
    assert type(opened(config)) is OwnCache
    # Without a directory JAX has no cache, and so nothing to check.
    config = Config()
    config.jax_compilation_cache_check_contents = True
    assert opened(config) is None and config.jax_compilation_cache_dir is None
    # It may be switched on between the import and the first compile.
    module, config = module_of_jax(), Config()
    jax.install(module, config)
    config.jax_compilation_cache_check_contents = True
    assert module.get_file_cache(config.jax_compilation_cache_dir) is None
    # Or later than that.
    config = Config(str(tmp_path / "own"))
    cache = opened(config)
    cache.put("key", b"kiln's")
    config.jax_compilation_cache_check_contents = True
    OwnCache(str(tmp_path / "own")).put("key", b"JAX's")
    assert cache.get("key") == b"JAX's" and cache.get("other") is None


def test_an_older_jax_has_fewer_options() -> None:
    config = Config()
    del config.jax_persistent_cache_enable_xla_caches, config.jax_compilation_cache_check_contents
    assert opened(config) is not None


def test_a_broken_cache_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_CACHE_MAX_SIZE", "much")
    cache = opened(Config())
    cache.put("key", b"executable")
    assert cache.get("key") is None
