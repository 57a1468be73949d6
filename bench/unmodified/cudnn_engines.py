"""cuDNN through PyTorch: convolutions and attention, whose engines cuDNN compiles at run time. What is
looked at is that kiln changes neither results nor engines."""
import warnings

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from clock import Clock

torch.backends.cudnn.benchmark = False
torch.backends.cudnn.deterministic = True
torch.manual_seed(1)
torch.zeros(1, device="cuda")
clock = Clock()
x = torch.randn(4, 32, 32, 32, device="cuda", dtype=torch.float16)
x = x.to(memory_format=torch.channels_last)
layer = torch.nn.Conv2d(32, 64, 3, device="cuda", dtype=torch.float16)
layer = layer.to(memory_format=torch.channels_last)
clock.result(layer(x).detach().float().cpu().numpy())
q = torch.randn(2, 8, 256, 64, device="cuda", dtype=torch.float16)
with warnings.catch_warnings(), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    warnings.simplefilter("error")
    y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
clock.result(y.float().cpu().numpy())
clock.end()
