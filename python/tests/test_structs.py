"""What ctypes takes the library's structs and functions for is what its headers say."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kiln import _library, errors
from kiln import _structs as s

INCLUDE = Path(__file__).resolve().parents[2] / "include"

STRUCTS = {
    "kiln_diag": s.Diag,
    "kiln_key": s.Key,
    "kiln_cache_options": s.CacheOptions,
    "kiln_claim_options": s.ClaimOptions,
    "kiln_prune_options": s.PruneOptions,
    "kiln_prune_result": s.PruneResult,
    "kiln_entry_info": s.EntryInfo,
    "kiln_difference": s.Difference,
    "kiln_explanation": s.Explanation,
    "kiln_define": s.Define,
    "kiln_header": s.Header,
    "kiln_source": s.Source,
    "kiln_nvrtc_request": s.NvrtcRequest,
    "kiln_nvrtc_result": s.NvrtcResult,
    "kiln_runtime_options": s.RuntimeOptions,
    "kiln_device_info": s.DeviceInfo,
    "kiln_build_options": s.BuildOptions,
    "kiln_build_info": s.BuildInfo,
    "kiln_param": s.Param,
    "kiln_arg": s.Arg,
    "kiln_launch": s.Launch,
    "kiln_probe_report": s.ProbeReport,
}


def test_structs_are_the_headers(tmp_path: Path) -> None:
    if shutil.which("cc") is None or not INCLUDE.exists():
        pytest.skip("no C compiler, or no headers: not a source tree")
    lines, expected = ["#include <stdio.h>", "#include <kiln/kiln.h>", "#include <kiln/unstable.h>"], []
    lines += ["#include <kiln/cuda.h>", "int main(void) {"]
    for name, struct in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {ctypes.sizeof(struct)}")
        for field, *_ in struct._fields_:
            member = field.rstrip("_")
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {member}), sizeof((({name} *)0)->{member}));')
            place = getattr(struct, field)
            expected.append(f"{name}.{field} {place.offset} {place.size}")
    source = tmp_path / "sizes.c"
    source.write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run(["cc", f"-I{INCLUDE}", source, "-o", tmp_path / "sizes"], check=True)
    said = subprocess.run([tmp_path / "sizes"], check=True, capture_output=True, text=True).stdout
    assert said.splitlines() == expected


def test_functions_take_as_many_arguments_as_the_headers_say() -> None:
    if not INCLUDE.exists():
        pytest.skip("no headers: not a source tree")
    text = "".join(path.read_text() for path in INCLUDE.rglob("*.h"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for name, (_, arguments) in {**_library.QUICK, **_library.BLOCKING}.items():
        found = re.search(rf"\b{name}\(([^;]*?)\)(?: KILN_PRINTF\(5, 6\))?;", text, re.S)
        assert found, f"{name} is not declared"
        declared = [] if found[1].strip() == "void" else found[1].split(",")
        assert len(declared) == len(arguments), name
        assert getattr(_library.lib, name)


def test_every_status_has_an_error() -> None:
    text = (INCLUDE / "kiln" / "status.h").read_text() if INCLUDE.exists() else ""
    declared = {int(value): name for name, value in re.findall(r"X\((KILN_E_\w+), (\d+)", text)}
    for number, name in declared.items():
        assert errors._BY_STATUS[number].status == name
