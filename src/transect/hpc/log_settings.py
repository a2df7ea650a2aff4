"""Which of the parameters that a log tells are settings of its run, and whether these say what was run."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from transect.domain.files import canonical_json
from transect.hpc.log_paths import DATE

# Parameters that say who measured, where, when and on what, or what came of it: a whole name, or a name's last word.
# All others are settings: one that is taken for a setting by mistake keeps two runs apart and is named, one that is
# left out mixes unlike work.
_NO_SETTING = re.compile(
    r"(?:began|ended|started|time|total time|\w*fft_time\d|\w+_lcg_time|hosts?|hostname|machine|node_?name|(?:data_)?file|program|driver|sut name|fill_s|cache_bytes|numpy|python|blas|"
    r"build|tensorflow|hplinpack|platform|label|job_?id|state|exit_code|last_\w+|submission_(?:org|platform|poc_\w+)|"
    r"number of cg sets|(?:optimized cg |reference cg )?iterations per set|steps_this_run|(?:copy|scale|add|triad)_block)"
    r"|(?:.*[_\W])?(?:date|timestamp|path|dir|\w*filename|command|compile\w*|(?:api)?version\w*|headers|library|"
    r"(?<!config-)hash|seed|residual\w*|errors\w*|maxerr|max_diff\w*|success|verification|status|evaluations|overhead|mean|"
    r"variance|not_run|unscored|also_prints|rnormi|[abx]norm\w*|checktime|exeupdates|mpi_wtick|avail\w*|cpu_utilized)\W*",
    re.I,
)
# Settings that decide the speed of these benchmarks and that some logs lack; () where logs never have them.
_NEEDED: dict[str, tuple[str, ...]] = {
    "deep500": (),
    "dl-training": (),
    "fio": ("direct",),
    "io500": ("procs",),
    "ior": ("xfersize", "xsize"),
    "minibude": ("poses",),
    "mlperf-hpc": ("number_of_nodes", "number_of_ranks"),
    "mlperf-inference": (),
    "mlperf-training": ("number_of_nodes", "number_of_ranks"),
    "onnxruntime-perf-test": (),
    "osu": (),
    "slurm-accounting": (),
    "superbench-results": (),
}
# Parameters that name the machine that a run was on.
_MACHINE = re.compile(r"(?:device|gpu|gpu_name|machine|platform|cpu|driver_version)", re.I)
# One of them whose value is the kind of processor that was asked for is a setting.
_KINDS = frozenset({"cpu", "gpu", "cuda", "rocm"})


def tell_what_ran(benchmark: str, settings: Collection[str]) -> bool:
    """Whether names of settings are those of what was run, and on how many ranks; else two runs may be different work."""
    needed = _NEEDED.get(benchmark)
    return bool(settings) and (needed is None or not set(needed).isdisjoint(settings))


def of_machine(name: str, value: Any) -> bool:
    """Whether a parameter names the machine that a run was on."""
    return _MACHINE.fullmatch(name) is not None and str(value).lower() not in _KINDS


def settings_of(parameters: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the settings among parameters, sorted, their values as JSON without quotes."""
    # Arguments of the program other than paths, such as mdtest's -w, which its log has nowhere else.
    arguments = [
        word for word in str(parameters.get("command", "")).split()[1:] if "/" not in word and not DATE.search(word)
    ]
    if arguments:
        parameters = {**parameters, "arguments": " ".join(arguments)}
    return tuple(
        (name, canonical_json(value).strip('"'))
        for name, value in sorted(parameters.items())
        if not (_NO_SETTING.fullmatch(name) or of_machine(name, value))
    )
