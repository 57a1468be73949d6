"""A stand-in of triton.compiler.compile and CompiledKernel: they call a cache manager as Triton 3.6 does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin")


def compile_kernel(manager: Any, name: str, writer: str) -> dict[str, str]:
    """What triton.compiler.compile does with a manager; each file says who made it."""
    metadata = f"{name}.json"
    group: dict[str, str] = manager.get_group(metadata) or {}
    if group.get(metadata) is not None:
        return group
    for stage in STAGES:
        text = f"{stage} by {writer}"
        group[f"{name}.{stage}"] = manager.put(text.encode() if stage == "cubin" else text, f"{name}.{stage}")
    group[metadata] = manager.put(json.dumps({"name": name, "by": writer}), metadata, binary=False)
    manager.put_group(metadata, group)
    return group


def load_kernel(group: dict[str, str]) -> set[str]:
    """What triton.compiler.CompiledKernel reads; the writers of its files."""
    metadata = next(Path(path) for name, path in group.items() if name.endswith(".json"))
    writers = {json.loads(metadata.read_text())["by"]}
    for name, path in group.items():
        if not name.endswith(".json"):
            stage = Path(path).suffix[1:]
            content = Path(path).read_bytes() if stage == "cubin" else Path(path).read_text().encode()
            said, _, writer = content.decode().partition(" by ")
            assert said == stage
            writers.add(writer)
    assert len(group) == len(STAGES) + 1
    return writers
