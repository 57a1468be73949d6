"""Hugging Face's ViT with random weights: forward passes in half precision, a pass backward."""
import json

import torch
from transformers import ViTConfig, ViTModel

torch.manual_seed(1)
config = ViTConfig(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, image_size=64, patch_size=8)
model = ViTModel(config).to("cuda", torch.float16).eval()
images = torch.randn(4, 3, 64, 64, device="cuda", dtype=torch.float16)
with torch.no_grad():
    shapes = [list(model(images).last_hidden_state.shape) for _ in range(2)]
state = model(images).last_hidden_state
state.float().pow(2).mean().backward()
print(json.dumps({"shapes": shapes, "finite": bool(torch.isfinite(state).all()), "mean": round(float(state.float().abs().mean()), 2)}))
