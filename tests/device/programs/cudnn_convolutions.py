"""Grouped, depthwise and plain convolutions, forward and backward, with cudnn.benchmark: cuDNN tries every engine that it
finds. One that fails falls out without a word, so what ran is compared, and not the results alone."""
import json

import torch

torch.manual_seed(1)
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.allow_tf32 = False


def convolve(layer, x, enabled):
    layer.zero_grad()
    inputs = x.detach().clone().requires_grad_()
    with torch.backends.cudnn.flags(enabled=enabled, benchmark=True):
        result = layer(inputs)
        result.float().pow(2).mean().backward()
    torch.cuda.synchronize()
    return [t.detach().float() for t in (result, inputs.grad, layer.weight.grad)]


right = []
for groups, channels, kind, layout in ((1, 32, torch.float16, torch.channels_last), (4, 32, torch.float16, torch.channels_last),
                                       (32, 32, torch.float16, torch.contiguous_format),
                                       (32, 32, torch.float32, torch.contiguous_format), (1, 16, torch.bfloat16, torch.channels_last)):
    layer = torch.nn.Conv2d(channels, 2 * channels, 3, padding=1, groups=groups, device="cuda", dtype=kind)
    layer = layer.to(memory_format=layout)
    x = torch.randn(4, channels, 32, 32, device="cuda", dtype=kind).to(memory_format=layout)
    wanted = convolve(layer, x, enabled=False)
    got = [convolve(layer, x, enabled=True) for _ in range(2)][-1]
    right.append(all(torch.allclose(a, b, atol=0.05, rtol=0.05) for a, b in zip(wanted, got)))
print(json.dumps({"right": right}))
