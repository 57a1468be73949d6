"""kiln.jax against a stand-in of jax._src.compilation_cache as JAX 0.11 has it, written to its interface;
`python/by_hand/adapters.py` runs against the real one."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, Optional

import pytest

from kiln import jax


class Config:
    def __init__(self, directory: Optional[str] = None) -> None:
        self.jax_compilation_cache_dir = directory
        self.jax_persistent_cache_min_compile_time_secs = 1.0

    def update(self, name: str, value: Any) -> None:
        assert hasattr(self, name)
        setattr(self, name, value)


class OwnCache:
    """A directory, as JAX's LRUCache without a limit."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._path.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> Optional[bytes]:
        file = self._path / f"{key}-cache"
        return file.read_bytes() if file.exists() else None

    def put(self, key: str, value: bytes) -> None:
        (self._path / f"{key}-cache").write_bytes(value)


def opened(config: Config) -> Any:
    """What JAX does at the first compile."""
    module = types.SimpleNamespace(get_file_cache=lambda path: (OwnCache(path), path))
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


def test_a_broken_cache_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_CACHE_MAX_SIZE", "much")
    cache = opened(Config())
    cache.put("key", b"executable")
    assert cache.get("key") is None
