"""A jit of JAX's under `kiln exec`: kiln's cache is JAX's, in a home that cannot be written, too."""

import os
import sys

sys.path.append(sys.path.pop(0))  # this directory has a jax.py
import leak  # noqa: E402

leak.skip_without("jax")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_raise_persistent_cache_errors", True)
value = float(jax.jit(lambda x: jnp.sin(x @ x).sum())(jnp.ones((64, 64))))
assert value == value

from jax._src import compilation_cache  # noqa: E402
from jax._src.compilation_cache_interface import CacheInterface  # noqa: E402

import kiln  # noqa: E402
import kiln.jax  # noqa: E402

cache = compilation_cache._cache
assert isinstance(cache, kiln.jax.CompilationCache) and isinstance(cache, CacheInterface), type(cache)
made = [name for name in os.listdir(os.environ["HOME"]) if name == "kiln-jax"]
assert not made, made  # XLA kept files of its own there
stats = kiln.default_cache().stats()
assert stats["puts"] > 0, stats
print(f"jax {jax.__version__}: {stats['puts']} put, {value}")
