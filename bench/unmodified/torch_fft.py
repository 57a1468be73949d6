"""cuFFT through PyTorch: six lengths in two precisions. cuFFT hands PTX to the driver."""
import torch

from clock import Clock

torch.zeros(1, device="cuda")
clock = Clock()
for length in (1000, 4096, 3003, 1 << 17, 999, 2310):
    for kind in (torch.float32, torch.float64):
        y = torch.fft.rfft(torch.ones(4, length, device="cuda", dtype=kind))
        clock.result(torch.view_as_real(y).cpu().numpy())
clock.end()
