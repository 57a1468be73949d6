"""kiln.inductor against a stand-in of torch._inductor.remote_cache as PyTorch 2.11 has it, written to its interface;
`python/by_hand/adapters.py` runs against the real one."""

from __future__ import annotations

import contextvars
import json
import os
import sys
import threading
import types
from typing import Any, Iterator

import pytest

import kiln
from kiln import _entries, inductor


class ConfigEntry:
    """As torch.utils._config_module has them: what is set counts in the context that set it, the default everywhere."""

    def __init__(self, name: str) -> None:
        self.default: Any = None
        self.override: contextvars.ContextVar[Any] = contextvars.ContextVar(name)


class ConfigModule(types.ModuleType):
    """As torch.utils._config_module: what is not configured cannot be read or set."""

    _config: dict[str, ConfigEntry]

    def __getattr__(self, name: str) -> Any:
        entry = self._entry(name)
        return entry.override.get(entry.default)

    def __setattr__(self, name: str, value: Any) -> None:
        self._entry(name).override.set(value)

    def _entry(self, name: str) -> ConfigEntry:
        try:
            return self._config[name]
        except KeyError:
            raise AttributeError(f"{self.__name__}.{name} does not exist") from None


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
    for name in (*inductor.CACHES, "RemoteDynamoPGOCache"):
        setattr(module, name, type(name, (RedisRemoteCache,), {}))
    return module


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    made = remote_cache_module()
    _entries._said.clear()
    before = torchs_variables()
    for place in ("torch._inductor.config", "torch._functorch.config"):
        config = ConfigModule(place)
        vars(config)["_config"] = {name: ConfigEntry(name) for where, name in inductor.CACHES.values() if where == place}
        monkeypatch.setitem(sys.modules, place, config)
    monkeypatch.setitem(sys.modules, "torch._functorch", types.ModuleType("torch._functorch"))
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    monkeypatch.setitem(sys.modules, "torch._inductor", types.ModuleType("torch._inductor"))
    monkeypatch.setitem(sys.modules, made.__name__, made)
    yield made
    assert torchs_variables() == before  # children inherit them, who may have no kiln


def torchs_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("TORCH")}


def switches() -> list[Any]:
    return [getattr(sys.modules[place], name) for place, name in inductor.CACHES.values()]


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
    sys.modules["torch._inductor.config"].autotune_remote_cache = False  # type: ignore[attr-defined]
    inductor.install(module)
    assert module.RemoteFxGraphCache.backend_override_cls is Mine
    assert switches() == [None, True, False, True]  # Mine is the user's to switch on


def test_all_threads_are_switched_on(module: Any) -> None:
    inductor.install(module)
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.extend(switches()))
    thread.start()
    thread.join()
    assert seen == switches() == [True] * 4


def test_profiles_of_dynamo_are_left_alone(module: Any) -> None:
    """Their key is the name of a job: the first profile would be everybody's for ever."""
    inductor.install(module)
    assert module.RemoteDynamoPGOCache.backend_override_cls is None


def test_a_class_that_is_missing_is_said_once_and_not_switched_on(
    module: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Inductor would look for a Redis."""
    sys.modules["torch"].__version__ = "9.9"  # type: ignore[attr-defined]
    del module.RemoteAutotuneCache
    del sys.modules["torch._functorch.config"]._config["enable_remote_autograd_cache"]
    for _ in range(2):
        inductor.install(module)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2 and all("torch 9.9" in line for line in said), said
    assert "enable_remote_autograd_cache" in said[0] and "RemoteAutotuneCache" in said[1]
    config = sys.modules["torch._inductor.config"]
    assert (config.fx_graph_remote_cache, config.autotune_remote_cache) == (True, None)


def test_a_broken_cache_is_a_miss(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inductor.install(module)
    monkeypatch.setenv("KILN_CACHE_MAX_SIZE", "much")
    cache = module.RemoteFxGraphCache("id")
    cache.put("key", 1)
    assert cache.get("key") is None


def test_pickles_are_not_taken_from_anybody() -> None:
    assert inductor._ENTRIES.stage.startswith("cpu.")
