"""kiln.nvrtc, with the suite's fake NVRTC (KILN_TEST_TOOLKIT names its toolkit)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import kiln

SOURCE = '#include "by.h"\nextern "C" __global__ void scale(float *x) { x[threadIdx.x] *= BY; }\n'


@pytest.fixture
def toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    if "KILN_TEST_TOOLKIT" not in os.environ:
        pytest.skip("KILN_TEST_TOOLKIT does not name a toolkit")
    monkeypatch.setenv("CUDA_PATH", os.environ["KILN_TEST_TOOLKIT"])


def test_no_architecture_is_an_error(cache: kiln.Cache, toolkit: None) -> None:
    with pytest.raises(kiln.InvalidError, match="arch"):
        kiln.nvrtc.compile(SOURCE, [], headers={"by.h": ""}, cache=cache)


def test_compiled_once(cache: kiln.Cache, toolkit: None, tmp_path: Path) -> None:
    header = tmp_path / "by.h"
    header.write_text("#define BY 2\n")
    options = ["-arch=sm_80", f"-I{tmp_path}"]
    results = [kiln.nvrtc.compile(SOURCE, options, expressions=["scale"], cache=cache) for _ in range(2)]
    assert [result.origin for result in results] == ["compiled", "memory"]
    assert results[0].binary == results[1].binary and not results[0].is_ptx
    assert results[0].lowered == results[1].lowered and set(results[0].lowered) == {"scale"}
    assert results[0].log == results[1].log
    header.write_text("#define BY 3\n")
    assert kiln.nvrtc.compile(SOURCE, options, expressions=["scale"], cache=cache).origin == "compiled"


def test_headers_in_memory(cache: kiln.Cache, toolkit: None) -> None:
    origins = [
        kiln.nvrtc.compile(SOURCE, ["-arch=compute_80"], headers={"by.h": text}, cache=cache).origin
        for text in ("#define BY 2\n", "#define BY 3\n", "#define BY 2\n")
    ]
    assert origins == ["compiled", "compiled", "memory"]


def test_a_failure_has_the_log(cache: kiln.Cache, toolkit: None) -> None:
    with pytest.raises(kiln.CompileError) as caught:
        kiln.nvrtc.compile("#error broken\n", ["-arch=sm_80"], cache=cache)
    assert caught.value.log
