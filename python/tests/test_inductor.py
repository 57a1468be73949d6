"""kiln.inductor against a stand-in of torch._inductor.remote_cache as PyTorch 2.11 has it, written to its interface;
`python/by_hand/adapters.py` runs against the real one."""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any, Iterator

import pytest

import kiln
from kiln import inductor


def remote_cache_module() -> types.ModuleType:
    """RemoteCacheBackend, a cache with JSON in front of it, and the classes that have a backend of their own."""
    module = types.ModuleType("torch._inductor.remote_cache")

    class RemoteCacheBackend:
        def __init__(self) -> None:
            self._name = f"backend:{type(self).__name__}"
            self.hits = 0

        def get(self, key: str) -> Any:
            value = self._get(key)  # type: ignore[attr-defined]
            self.hits += value is not None
            return value

        def put(self, key: str, data: Any) -> None:
            self._put(key, data)  # type: ignore[attr-defined]

    class RedisRemoteCache:
        backend_override_cls: Any = None

        def __init__(self, cache_id: str) -> None:
            if self.__class__.backend_override_cls is None:
                raise RuntimeError("redis not available but required for remote cache")
            self.backend = self.__class__.backend_override_cls()
            self._format = f"pt2:{cache_id}::{{key}}:c1"

        def get(self, key: str) -> Any:
            data = self.backend.get(self._format.format(key=key))
            return json.loads(data) if data else None

        def put(self, key: str, value: Any) -> None:
            self.backend.put(self._format.format(key=key), bytes(json.dumps(value), "ascii"))

    vars(module).update(RemoteCacheBackend=RemoteCacheBackend)
    for name in inductor.CACHES:
        setattr(module, name, type(name, (RedisRemoteCache,), {}))
    return module


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    made = remote_cache_module()
    for name in inductor.SWITCHES:
        monkeypatch.setenv(name, "restored afterwards")
        monkeypatch.delenv(name)
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    monkeypatch.setitem(sys.modules, "torch._inductor", types.ModuleType("torch._inductor"))
    monkeypatch.setitem(sys.modules, made.__name__, made)
    yield made


def test_what_is_put_is_found(module: Any) -> None:
    inductor.install()
    for name in inductor.CACHES:
        cache = getattr(module, name)(name)
        assert cache.get("key") is None
        cache.put("key", {"data": name})
    for name in inductor.CACHES:
        again = getattr(module, name)(name)
        assert again.get("key") == {"data": name} and again.backend.hits == 1
        assert isinstance(again.backend, module.RemoteCacheBackend)
    assert len(list(kiln.default_cache().entries("inductor"))) == len(inductor.CACHES)


def test_the_users_word_counts(module: Any) -> None:
    class Mine:
        pass

    module.RemoteFxGraphCache.backend_override_cls = Mine
    os.environ["TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE"] = "0"
    inductor.install(module)
    assert module.RemoteFxGraphCache.backend_override_cls is Mine
    assert [os.environ[name] for name in inductor.SWITCHES] == ["1", "1", "0", "1"]


def test_an_imported_configuration_is_switched_on(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config = types.ModuleType("torch._inductor.config")
    vars(config).update(fx_graph_remote_cache=None, autotune_remote_cache=False)
    monkeypatch.setitem(sys.modules, config.__name__, config)
    inductor.install(module)
    assert (vars(config)["fx_graph_remote_cache"], vars(config)["autotune_remote_cache"]) == (True, False)


def test_a_broken_cache_is_a_miss(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inductor.install(module)
    monkeypatch.setenv("KILN_CACHE_MAX_SIZE", "much")
    cache = module.RemoteFxGraphCache("id")
    cache.put("key", 1)
    assert cache.get("key") is None


def test_pickles_are_not_taken_from_anybody() -> None:
    assert inductor._ENTRIES.stage.startswith("cpu.")
