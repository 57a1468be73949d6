"""PyTorch: special functions that it compiles at run time (jiterator)."""
import torch

from clock import Clock

torch.zeros(1, device="cuda")
clock = Clock()
x = torch.linspace(0.1, 5, 4096, device="cuda")
for function in (torch.special.bessel_j0, torch.special.i1, torch.special.modified_bessel_k0,
                 torch.special.airy_ai, torch.special.spherical_bessel_j0):
    clock.result(function(x).cpu().numpy())
clock.end()
