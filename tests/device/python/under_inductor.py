"""torch.compile under `kiln exec`: its remote caches are kiln's, and a child without kiln has none switched on."""

import leak

leak.skip_without("torch")
import torch  # noqa: E402

import kiln  # noqa: E402

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).cuda()
given = torch.randn(16, 64, device="cuda")
with torch.no_grad():
    assert torch.allclose(torch.compile(model)(given), model(given), atol=1e-4)

import torch._functorch.config as functorch  # noqa: E402
import torch._inductor.config as config  # noqa: E402
import torch._inductor.remote_cache as remote  # noqa: E402

import kiln.inductor  # noqa: E402

for name in kiln.inductor.CACHES:
    cache = getattr(remote, name)
    assert isinstance(cache("by-hand").backend, kiln.inductor.Backend), name
assert config.fx_graph_remote_cache is True and functorch.enable_remote_autograd_cache is True
stored = {entry.target for entry in kiln.default_cache().entries()}
assert "inductor" in stored, stored
child = leak.check(
    "import torch._inductor.config as c, torch._functorch.config as f\n"
    "print(c.fx_graph_remote_cache, c.autotune_remote_cache, c.bundled_autotune_remote_cache, f.enable_remote_autograd_cache)"
)
assert child == "None None None None", child
print(f"torch {torch.__version__}: entries of {sorted(stored)}; a child without kiln has {child}")
