"""Hugging Face's Whisper with random weights: convolutions, then attention of an encoder and a decoder, in half precision."""
import json

import torch
from transformers import WhisperConfig, WhisperModel

torch.manual_seed(1)
config = WhisperConfig(vocab_size=1000, num_mel_bins=80, d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                       decoder_attention_heads=4, encoder_ffn_dim=512, decoder_ffn_dim=512, max_source_positions=1500,
                       pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
model = WhisperModel(config).to("cuda", torch.float16).eval()
sound = torch.randn(1, 80, 3000, device="cuda", dtype=torch.float16)
tokens = torch.ones(1, 8, dtype=torch.long, device="cuda")
with torch.no_grad():
    shapes = [list(model(input_features=sound, decoder_input_ids=tokens).last_hidden_state.shape) for _ in range(2)]
state = model(input_features=sound, decoder_input_ids=tokens).last_hidden_state
state.float().pow(2).mean().backward()
print(json.dumps({"shapes": shapes, "finite": bool(torch.isfinite(state).all())}))
