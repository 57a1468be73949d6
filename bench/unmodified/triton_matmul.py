"""Triton: a matrix product at three block sizes. It assembles with ptxas, not with NVRTC."""
import torch
import triton
import triton.language as tl

from clock import Clock

torch.zeros(1, device="cuda")
clock = Clock()


@triton.jit
def matmul(a, b, c, n, block: tl.constexpr):
    row = tl.program_id(0) * block + tl.arange(0, block)
    column = tl.program_id(1) * block + tl.arange(0, block)
    total = tl.zeros((block, block), dtype=tl.float32)
    for k in range(0, n, block):
        inner = k + tl.arange(0, block)
        total += tl.dot(tl.load(a + row[:, None] * n + inner[None, :]),
                        tl.load(b + inner[:, None] * n + column[None, :]))
    tl.store(c + row[:, None] * n + column[None, :], total)


n = 256
a = torch.ones((n, n), device="cuda", dtype=torch.float16)
b = torch.ones((n, n), device="cuda", dtype=torch.float16)
for block in (16, 32, 64):
    c = torch.empty((n, n), device="cuda", dtype=torch.float32)
    matmul[(n // block, n // block)](a, b, c, n, block)
    clock.result(c.cpu().numpy())
clock.end()
