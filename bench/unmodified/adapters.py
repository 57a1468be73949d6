#!/usr/bin/env python3
"""adapters.py [--kiln KILN] [--runs N] [--cold-runs N] [PROGRAM ...]: run.py's table for the programs that kiln's Python adapters serve.

The package `kiln` is installed where this Python finds it. The remote takes code for the host without a signature, as it
is of this run alone. Inductor's and JAX's entries are counted as well as what stands under their compilers."""
import argparse
import json
import shutil
import tempfile
from pathlib import Path

import run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln", default="kiln")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cold-runs", type=int)
    parser.add_argument("--audit", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("programs", nargs="*", default=["triton_matmul", "torch_compile", "jax_layers", "cuda_core_cached"])
    arguments = parser.parse_args()
    arguments.kiln = shutil.which(arguments.kiln) or str(Path(arguments.kiln).resolve())
    everything = {}
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        server = run.Redis(root)
        try:
            bench = run.Bench(arguments, root, server.url and f"{server.url}?unsigned-native")
            print(f"{'':18s}" + "".join(f"{name:>9s}" for name in ("cold", "own", "kiln", "warm", "pack", "redis")))
            for name in arguments.programs:
                columns = everything[name] = bench.program(name, arguments.runs)
                run.show(name, columns)
                for column, rows in columns.items():
                    if rows and rows[0]["kiln"]:
                        counts = {k: v for k, v in rows[0]["kiln"].items() if k in ("hits", "compiled", "bypassed", "failed")}
                        print(f"{'':18s}  {column}: {json.dumps(counts)}", flush=True)
        finally:
            server.stop()
            if arguments.json:
                Path(arguments.json).write_text(json.dumps(everything), encoding="utf-8")


if __name__ == "__main__":
    main()
