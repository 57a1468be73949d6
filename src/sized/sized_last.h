/* Of every public struct that a caller gives, with its own size in it: the last member that it had
 * when it was first published. What a caller must reach is the end of that member, for ever.
 *
 * A member that is added later goes behind all that are there, and not into the room at the end of
 * the struct that its last version left unused. Old callers own those bytes, and what is in them is
 * anything. (tests/unit/sized/test_sized.c knows how large each struct was.) kiln_variant ends with
 * a kiln_launch: it grows with that, and by nothing else. */
#ifndef KILN_SIZED_SIZED_LAST_H
#define KILN_SIZED_SIZED_LAST_H

#define KN_SIZED_LAST_kiln_runtime_options fresh_probe
#define KN_SIZED_LAST_kiln_cache_options no_fsync
#define KN_SIZED_LAST_kiln_claim_options user
#define KN_SIZED_LAST_kiln_source builtin_count
#define KN_SIZED_LAST_kiln_build_options fallback_entry
#define KN_SIZED_LAST_kiln_launch cluster
#define KN_SIZED_LAST_kiln_variant launch
#define KN_SIZED_LAST_kiln_kernel bytes
#define KN_SIZED_LAST_kiln_tune_options rows
#define KN_SIZED_LAST_kiln_warm_options user
#define KN_SIZED_LAST_kiln_warm_state running
#define KN_SIZED_LAST_kiln_executor_options idle_bytes
#define KN_SIZED_LAST_kiln_work user
#define KN_SIZED_LAST_kiln_executor_stats used_bytes_high
#define KN_SIZED_LAST_kiln_pack_writer_options base
#define KN_SIZED_LAST_kiln_nvrtc_request expression_count
#define KN_SIZED_LAST_kiln_hiprtc_request expression_count
#define KN_SIZED_LAST_kiln_opencl_unit header_count
#define KN_SIZED_LAST_kiln_opencl_request user
#define KN_SIZED_LAST_kiln_vulkan_device get_instance_proc_addr
#define KN_SIZED_LAST_kiln_opengl_options user
#define KN_SIZED_LAST_kiln_remote_module_ops drop
#define KN_SIZED_LAST_kiln_prune_options target
#define KN_SIZED_LAST_kiln_prune_result temporaries_removed
#define KN_SIZED_LAST_kiln_verify_result bytes
#define KN_SIZED_LAST_kiln_probe_report remembered
#define KN_SIZED_LAST_kiln_build_info log
#define KN_SIZED_LAST_kiln_pack_info kiln_version
#define KN_SIZED_LAST_kiln_pack_copied skipped
#define KN_SIZED_LAST_kiln_tune_row reason
#define KN_SIZED_LAST_kiln_tuning took_ns

#endif
