"""torch.compile of five layers: Inductor's kernels are Triton's, which assembles with ptxas."""
import torch

from clock import Clock

torch.zeros(1, device="cuda")
torch.manual_seed(1)
layers = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.LayerNorm(256))
          for _ in range(5)]
model = torch.nn.Sequential(*layers).cuda()
clock = Clock()
with torch.no_grad():
    y = torch.compile(model)(torch.ones(64, 256, device="cuda"))
clock.result(y.float().cpu().numpy())
clock.end()
