"""cuDNN's attention through PyTorch, forward and backward. Its engines are compiled while the program runs, from encrypted
sources. Two calls each: the second finds the plan of the first."""
import json
import warnings

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

warnings.simplefilter("error")
torch.manual_seed(1)


def attend(backend, tensors, causal):
    inputs = [t.detach().clone().requires_grad_() for t in tensors]
    with sdpa_kernel(backend):
        result = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal)
    result.float().pow(2).sum().backward()
    return [result.detach().float(), *(t.grad.float() for t in inputs)]


right = []
for dtype, heads, length, width, causal in ((torch.float16, 8, 256, 64, False), (torch.bfloat16, 4, 128, 128, True)):
    qkv = [torch.randn(2, heads, length, width, device="cuda", dtype=dtype) for _ in range(3)]
    wanted = attend(SDPBackend.MATH, qkv, causal)
    for _ in range(2):
        got = attend(SDPBackend.CUDNN_ATTENTION, qkv, causal)
        right.append(all(torch.allclose(a, b, atol=0.08, rtol=0.08) for a, b in zip(wanted, got)))
print(json.dumps({"right": right}))
