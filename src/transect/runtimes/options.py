"""Session options: the set that is equal in every language, and sets that a study defines."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from transect.domain.errors import BadInput, unknown_name

# The ONNX Runtime whose onnxruntime_session_options_config_keys.h these are from, all of them.
CONFIG_KEYS_VERSION = "1.29.0"

_NAMES = """
ep.context_embed_mode ep.context_enable ep.context_file_path ep.context_model_external_initializers_file_name
ep.context_node_name_prefix ep.context_source_model_path ep.dynamic.qnn_htp_performance_mode
ep.dynamic.workload_type ep.enable_weightless ep.enable_weightless_ep_context_nodes
ep.nnapi.partitioning_stop_ops ep.share_ep_contexts ep.stop_share_ep_contexts mlas.disable_kleidiai
mlas.enable_gemm_fastmath_arm64_bfloat16 mlas.kleidiai.conv_igemm_max_work mlas.use_lut_gemm
optimization.constant_folding_max_output_size_in_bytes optimization.disable_specified_optimizers
optimization.enable_cast_chain_elimination optimization.enable_gelu_approximation
optimization.enable_memory_probe_recompute_config optimization.memory_optimizer_config
optimization.minimal_build_optimizations session.allow_released_opsets_only
session.collect_node_memory_stats_to_file session.compile_only session.debug_layout_transformation
session.disable_aot_function_inlining session.disable_cpu_ep_fallback session.disable_double_qdq_remover
session.disable_model_compile session.disable_prepacking session.disable_qdq_constant_folding
session.disable_quant_qdq session.dynamic_block_base session.enable_cpu_mem_arena
session.enable_dq_matmulnbits_fusion session.enable_mem_pattern session.enable_profiling
session.enable_quant_qdq_cleanup session.execution_mode session.fail_on_suboptimal_compiled_model
session.force_spinning_stop session.graph_optimization_level session.graph_optimizations_loop_level
session.inter_op.allow_spinning session.inter_op.spin_backoff_max session.inter_op.spin_duration_us
session.inter_op_num_threads session.intra_op.allow_spinning session.intra_op.spin_backoff_max
session.intra_op.spin_duration_us session.intra_op_num_threads session.intra_op_thread_affinities
session.layer_assignment_settings session.load_model_format session.log_id session.log_severity_level
session.log_verbosity_level session.max_shape_override session.model_external_initializers_file_folder_path
session.name_based_layer_assignment session.node_partition_config_file
session.optimized_model_external_initializers_file_name
session.optimized_model_external_initializers_min_size_in_bytes session.optimized_model_filepath
session.qdq_matmulnbits_accuracy_level session.qdq_matmulnbits_block_size session.qdqisint8allowed
session.record_ep_graph_assignment_info session.resource_cuda_partitioning_settings
session.save_external_prepacked_constant_initializers session.save_model_format session.set_denormal_as_zero
session.strict_shape_type_inference session.use_deterministic_compute
session.use_device_allocator_for_initializers session.use_env_allocators session.use_memory_mapped_ort_model
session.use_ort_model_bytes_directly session.use_ort_model_bytes_for_initializers
session.use_per_session_threads session.x64quantprecision
"""
CONFIG_KEYS = tuple(_NAMES.split())


# Names of the two sets that every study has.
EQUAL, LANGUAGE_DEFAULTS = "equal", "language-defaults"

_THREADS = "intra_op_num_threads"
_EQUAL: dict[str, Any] = {
    _THREADS: 1,
    "inter_op_num_threads": 1,
    "execution_mode": "sequential",
    "graph_optimization_level": "all",
    "enable_cpu_mem_arena": True,
    "enable_mem_pattern": True,
    "session.intra_op.allow_spinning": "1",
    "session.inter_op.allow_spinning": "1",
}
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_CHOICES = {
    "execution_mode": ("sequential", "parallel"),
    "graph_optimization_level": ("disabled", "basic", "extended", "all"),
}
# What an execution provider reads of its own, such as ep.webgpuexecutionprovider.preferredLayout: the
# header names none of these.
_OF_PROVIDER = re.compile(r"ep\.[a-z0-9]+executionprovider\.\w+", re.ASCII)
# TF32 is on by default and is not float32.
_PROVIDER_OPTIONS = {"cuda": {"device_id": "0", "use_tf32": "0"}}


def session_options(name: str, threads: int, provider: str, sets: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the options of a set for a cell: what it says, and for the rest those of `equal`.

    A value of None is an option that is not set, so that the language's default holds.
    Raises BadInput for an unknown set.
    """
    options = _EQUAL | {_THREADS: threads}
    if provider in _PROVIDER_OPTIONS:
        options["provider_options"] = _PROVIDER_OPTIONS[provider]
    if name == LANGUAGE_DEFAULTS:
        return dict.fromkeys(options)
    if name == EQUAL:
        return options
    if name not in sets:
        raise unknown_name("set of session options", name, [EQUAL, LANGUAGE_DEFAULTS, *sets])
    return options | dict(sets[name])


def thread_variables(threads: int) -> dict[str, str]:
    """Return the variables that hold libraries to a number of threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


def check_options(sets: Mapping[str, Mapping[str, Any]], where: str) -> None:
    """Raise BadInput for the first option that no runner would take; `where` is file and key."""
    for name, options in sets.items():
        if name in (EQUAL, LANGUAGE_DEFAULTS):
            raise BadInput(f"{where}.{name}: this set is the same in every study: choose another name")
        for key, value in options.items():
            _check_key(key, f"{where}.{name}")
            expected = expected_value(key, value)
            if value is not None and expected:
                raise BadInput(f"{where}.{name}.{key}: got {value!r}, expected {expected}")


def _check_key(key: str, where: str) -> None:
    if key in _EQUAL or key in CONFIG_KEYS or _OF_PROVIDER.fullmatch(key):
        setting = key.removeprefix("session.")
        if setting != key and setting in _EQUAL:
            raise BadInput(f"{where}: got '{key}', expected '{setting}', which sets the same")
        return
    known = CONFIG_KEYS if "." in key else [name for name in _EQUAL if "." not in name]
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f" did you mean '{near[0]}'?" if near else ""
    raise BadInput(
        f"{where}: unknown session option '{key}':{hint} Expected one of {', '.join(_EQUAL)}, or a "
        f"configuration entry that ONNX Runtime {CONFIG_KEYS_VERSION} names in "
        "onnxruntime_session_options_config_keys.h"
    )


def expected_value(key: str, value: Any) -> str | None:
    """Return what the value of an option should be, where it is another, or None."""
    if key == "provider_options":
        good = isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
        return None if good else "an object of texts"
    if key not in _EQUAL and "." not in key:
        return f"one of {', '.join(name for name in _EQUAL if '.' not in name)}, or a name with a dot"
    if key in _CHOICES:
        return None if value in _CHOICES[key] else f"one of {', '.join(_CHOICES[key])}"
    if key in (_THREADS, "inter_op_num_threads"):
        return None if type(value) is int and value >= 0 else "a whole number >= 0"
    if key in ("enable_cpu_mem_arena", "enable_mem_pattern"):
        return None if isinstance(value, bool) else "true or false"
    return None if isinstance(value, str) else "a text, such as '1'"
