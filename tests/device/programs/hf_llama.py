"""Hugging Face's Llama with random weights, attention as it comes: a training step, then some tokens."""
import json

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(1)
torch.use_deterministic_algorithms(False)
config = LlamaConfig(vocab_size=1000, hidden_size=512, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=8,
                     num_key_value_heads=8, max_position_embeddings=512)
model = LlamaForCausalLM(config).to("cuda", torch.float16)
tokens = torch.randint(0, 1000, (2, 128), device="cuda")
losses = []
for _ in range(2):
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    losses.append(round(float(loss), 2))
with torch.no_grad():
    made = model.generate(input_ids=tokens[:1, :16], max_new_tokens=8, do_sample=False, pad_token_id=0)
print(json.dumps({"losses": losses, "tokens": list(made.shape), "finite": bool(torch.isfinite(loss))}))
