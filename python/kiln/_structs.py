"""The structs of ``include/kiln`` as ctypes has them.

``tests/test_structs.py`` compiles the headers and compares every size and offset.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    c_bool,
    c_char,
    c_char_p,
    c_int,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)


class Diag(ctypes.Structure):
    """``kiln_diag``: what went wrong, why, and what to do."""

    _fields_ = [
        ("status", c_int),
        ("vendor_code", c_int64),
        ("what", c_char * 256),
        ("why", c_char * 768),
        ("fix", c_char * 512),
        ("log", c_char_p),
        ("log_length", c_size_t),
        ("more", c_void_p),
    ]


class Key(ctypes.Structure):
    """``kiln_key``."""

    _fields_ = [("bytes", c_uint8 * 32)]


class CacheOptions(ctypes.Structure):
    """``kiln_cache_options``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("root", c_char_p),
        ("flags", c_uint32),
        ("disk_max_bytes", c_uint64),
        ("disk_max_files", c_uint64),
        ("memory_max_bytes", c_uint64),
        ("memory_max_count", c_uint32),
        ("wait_ms", c_uint32),
        ("no_fsync", c_bool),
        ("packs", c_char_p),
        ("disk_max_age_s", c_uint64),
        ("disk_min_free", c_uint64),
        ("remote", c_char_p),
        ("record", c_char_p),
        ("record_max_bytes", c_uint64),
        ("name_space", c_char_p),
    ]


class PruneOptions(ctypes.Structure):
    """``kiln_prune_options``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("max_age_ns", c_uint64),
        ("max_bytes", c_uint64),
        ("target", c_char_p),
    ]


class PruneResult(ctypes.Structure):
    """``kiln_prune_result``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("entries_seen", c_uint64),
        ("bytes_seen", c_uint64),
        ("entries_removed", c_uint64),
        ("bytes_removed", c_uint64),
        ("temporaries_removed", c_uint64),
    ]


class EntryInfo(ctypes.Structure):
    """``kiln_entry_info``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("key", Key),
        ("target", c_char_p),
        ("recipe", c_char_p),
        ("stored_size", c_uint64),
        ("payload_size", c_uint64),
        ("facts_size", c_uint64),
        ("created_ns", c_int64),
        ("used_ns", c_int64),
        ("compile_ns", c_uint64),
        ("kiln_version", c_char_p),
        ("label", c_char_p),
    ]


class Difference(ctypes.Structure):
    """``kiln_difference``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("field", c_char_p),
        ("then", c_char_p),
        ("now", c_char_p),
        ("why", c_int),
    ]


class Explanation(ctypes.Structure):
    """``kiln_explanation``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("stage", c_char_p),
        ("why", c_int),
        ("key", Key),
        ("recipe", c_char_p),
        ("detail", c_char_p),
        ("has_nearest", c_bool),
        ("nearest", Key),
        ("nearest_target", c_char_p),
        ("differences", POINTER(POINTER(Difference))),
        ("difference_count", c_size_t),
    ]


class Define(ctypes.Structure):
    """``kiln_define``."""

    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class Header(ctypes.Structure):
    """``kiln_header``."""

    _fields_ = [("name", c_char_p), ("text", c_char_p), ("length", c_size_t)]


class Source(ctypes.Structure):
    """``kiln_source``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("language", c_int),
        ("name", c_char_p),
        ("text", c_char_p),
        ("length", c_size_t),
        ("defines", POINTER(Define)),
        ("define_count", c_size_t),
        ("options", POINTER(c_char_p)),
        ("option_count", c_size_t),
        ("include_dirs", POINTER(c_char_p)),
        ("include_dir_count", c_size_t),
        ("headers", POINTER(Header)),
        ("header_count", c_size_t),
        ("entries", POINTER(c_char_p)),
        ("entry_count", c_size_t),
        ("builtin", c_void_p),
        ("builtin_count", c_size_t),
    ]


class NvrtcRequest(ctypes.Structure):
    """``kiln_nvrtc_request``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("text", c_char_p),
        ("name", c_char_p),
        ("options", POINTER(c_char_p)),
        ("option_count", c_size_t),
        ("headers", POINTER(Header)),
        ("header_count", c_size_t),
        ("expressions", POINTER(c_char_p)),
        ("expression_count", c_size_t),
    ]


class NvrtcResult(ctypes.Structure):
    """``kiln_nvrtc_result``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("binary", c_void_p),
        ("size", c_size_t),
        ("is_ptx", c_bool),
        ("log", c_char_p),
        ("lowered", POINTER(c_char_p)),
        ("lowered_count", c_size_t),
        ("origin", c_int),
    ]


class RuntimeOptions(ctypes.Structure):
    """``kiln_runtime_options``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("backend", c_char_p),
        ("device", c_char_p),
        ("backend_path", c_char_p),
        ("strict", c_bool),
        ("isolate_probe", c_bool),
        ("probe_ms", c_uint32),
        ("cache", c_void_p),
        ("trace", c_char_p),
        ("untuned", c_bool),
        ("compile_only", c_bool),
        ("fresh_probe", c_bool),
        ("skip_probe", c_char_p),
    ]


class DeviceInfo(ctypes.Structure):
    """``kiln_device_info``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("backend", c_char * 32),
        ("name", c_char * 256),
        ("vendor", c_char * 256),
        ("driver", c_char * 256),
        ("version", c_char * 256),
        ("platform", c_char * 256),
        ("target", c_char * 64),
        ("uuid", c_char * 40),
        ("device_class", c_int),
        ("index", c_uint32),
        ("compute_units", c_uint32),
        ("max_group_size", c_uint32),
        ("max_group_dim", c_uint32 * 3),
        ("subgroup_size", c_uint32),
        ("address_bits", c_uint32),
        ("memory_bytes", c_uint64),
        ("max_buffer_bytes", c_uint64),
        ("local_bytes", c_uint64),
        ("fp16", c_bool),
        ("fp64", c_bool),
        ("int8_dot", c_bool),
        ("timestamps", c_bool),
    ]


class BuildOptions(ctypes.Structure):
    """``kiln_build_options``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("progress", c_void_p),
        ("user", c_void_p),
        ("cache_only", c_bool),
        ("background", c_bool),
        ("fallback", POINTER(Source)),
        ("fallback_count", c_size_t),
        ("fallback_entry", c_char_p),
    ]


class BuildInfo(ctypes.Structure):
    """``kiln_build_info``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("origin", c_int),
        ("stage_count", c_uint32),
        ("compiles", c_uint32),
        ("key_ns", c_uint64),
        ("lookup_ns", c_uint64),
        ("compile_ns", c_uint64),
        ("load_ns", c_uint64),
        ("total_ns", c_uint64),
        ("key", Key),
        ("log", c_char_p),
    ]


class Param(ctypes.Structure):
    """``kiln_param``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char * 64),
        ("type", c_char * 64),
        ("kind", c_int),
        ("size", c_size_t),
    ]


class Arg(ctypes.Structure):
    """``kiln_arg``."""

    _fields_ = [
        ("kind", c_int),
        ("buffer", c_void_p),
        ("offset", c_size_t),
        ("value", c_void_p),
        ("size", c_size_t),
    ]


class Launch(ctypes.Structure):
    """``kiln_launch``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("dims", c_uint32),
        ("global_", c_uint64 * 3),
        ("local", c_uint64 * 3),
        ("offset", c_uint64 * 3),
        ("args", POINTER(Arg)),
        ("arg_count", c_size_t),
        ("shared_bytes", c_uint32),
        ("cooperative", c_bool),
        ("cluster", c_uint32 * 3),
    ]


class ProbeReport(ctypes.Structure):
    """``kiln_probe_report``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("outcome", c_int),
        ("backend", c_char * 32),
        ("library", c_char * 512),
        ("version", c_char * 128),
        ("why", c_char * 768),
        ("fix", c_char * 512),
        ("device_count", c_uint32),
        ("probe_ns", c_uint64),
        ("remembered", c_bool),
    ]


InterruptedFn = CFUNCTYPE(c_bool, c_void_p)


class ClaimOptions(ctypes.Structure):
    """``kiln_claim_options``."""

    _fields_ = [("struct_size", c_size_t), ("wait_ms", c_uint32), ("interrupted", InterruptedFn), ("user", c_void_p)]


CompileFn = CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p), POINTER(Diag))
EntryFn = CFUNCTYPE(c_int, c_void_p, POINTER(EntryInfo))
ExplanationFn = CFUNCTYPE(c_int, c_void_p, POINTER(Explanation))
HeaderFn = CFUNCTYPE(c_int, c_void_p, c_char_p)
RunFn = PYFUNCTYPE(c_int, c_void_p)
