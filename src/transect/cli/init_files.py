"""The files of `transect init`: each fact with the place where it was read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from transect.domain.paths import ROOT
from transect.domain.system import System
from transect.domain.terminal import printable

# A first study does not ask for a whole large cluster.
_MOST_NODES = 16
_MOST_RANKS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """A key of the system file, its value, and where that was read."""

    key: str
    value: str | int | Sequence[str]
    source: str

    def lines(self) -> Iterator[str]:
        """Yield it as YAML; what others named stands in quotes, so that no word of it is read as anything else."""
        yield f"# {printable(self.source)}"
        yield f"{self.key}: {json.dumps(self.value, ensure_ascii=False)}"


def files(folder: Path, name: str, facts: Sequence[Fact], notes: Sequence[str]) -> dict[Path, str]:
    """Return the text of every file. Raises BadInput where the facts make no system."""
    system = System.model_validate({"name": name, **{fact.key: fact.value for fact in facts}})
    place = f"config/systems/{name}.yaml"
    profiles = {
        folder / "profiles" / profile / "config.yaml": ROOT / "profiles" / profile / "config.yaml"
        for profile in ("local", "slurm")
    }
    return {
        folder / "Snakefile": _snakefile(),
        folder / "config/config.yaml": _config(place),
        folder / place: _system(name, facts, notes),
        folder / "config/studies/first.yaml": _study(system),
        **{path: source.read_text(encoding="utf-8") for path, source in profiles.items()},
        folder / ".gitignore": "# Results are made, and Snakemake's notes of its jobs too.\n/results/\n/.snakemake/\n",
    }


def _snakefile() -> str:
    return """\
# The workflow of the transect that is installed.
from transect.domain.paths import ROOT


configfile: "config/config.yaml"


module transect:
    snakefile:
        str(ROOT / "workflow" / "Snakefile")
    config:
        config


use rule * from transect
"""


def _config(system: str) -> str:
    return f"""\
# Which study on which system; override with --config study=NAME_OR_PATH system=NAME_OR_PATH.
study: config/studies/first.yaml
system: {system}
# Where records, environments' stamps and the report go.
results: results
# true: exit non-zero when a cell failed (the report is made all the same).
strict: false
"""


def _system(name: str, facts: Sequence[Fact], notes: Sequence[str]) -> str:
    lines = [
        "# Made by `transect init`: above each fact stands where it was read.",
        f"# Try it: transect doctor --system config/systems/{name}.yaml",
        f"name: {json.dumps(name)}",
    ]
    for fact in facts:
        lines += fact.lines()
    return "\n".join([*lines, *(f"# {printable(note)}" for note in notes)]) + "\n"


def _counts(most: int) -> list[int]:
    """Return 1, 2, 4 and so on, and `most` itself at the end."""
    return [*(2**power for power in range(most.bit_length()) if 2**power < most), most]


def _flow(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _study(system: System) -> str:
    """Return a study of minutes: whether more nodes pay, or more ranks where there is one node."""
    cores = system.cores_per_node or 1
    nodes = min(system.nodes, _MOST_NODES)
    counts = _counts(nodes if nodes > 1 else min(cores, _MOST_RANKS))
    axis, many = ("nodes", "nodes") if nodes > 1 else ("ranks", "ranks on this node")
    # Divisible by each number of ranks: all of them take the same path.
    batch = math.lcm(*counts) * math.ceil(64 / math.lcm(*counts))
    bound = "no more than half of what is asked for each node" if system.memory_mb_per_node else "a limit, not a need"
    memory = min(4000, (system.memory_mb_per_node or 8000) // 2)
    asked = f"Do {counts[-1]} {many} pay, and how far is that from {counts[-1]} times as fast?"
    some = f", {nodes} of its {system.nodes} nodes" if nodes < system.nodes else ""
    lines = [
        f"# A first study for the system {system.name}{some}: minutes, with one small environment.",
        "name: first",
        f'title: "First study: the same training on {" and ".join(map(str, counts[-2:]))} {many}"'
        if len(counts) > 1
        else 'title: "First study: one training"',
        "questions:",
        f"  - ask: {asked if len(counts) > 1 else 'How fast is a training here, and what is a step of it made of?'}",
        f"    answered_by: [{'training.fastest, training.scaling' if len(counts) > 1 else 'training.fastest, training.limit'}]",
        "limits:",
        "  seconds: 120",
        f"  # Of one cell on a node: {bound}.",
        f"  memory_mb: {memory}",
        "workloads:",
        f"  # A batch that can be shared by {_flow(counts)} ranks. The reference follows the first steps.",
        f"  digits-mlp: {{epochs: 32, batch: {batch}, learning_rate: 0.005, quality_target: 0.9, reference_steps: 20}}",
        "train:",
        "  # Three runs of each: what it takes to call anything sure.",
        "  repeats: 3",
        "  grids:",
        "    - {workloads: [digits-mlp], frameworks: [numpy], strategies: [single]}",
    ]
    if len(counts) > 1:
        lines.append(
            f"    - {{workloads: [digits-mlp], frameworks: [numpy], strategies: [mpi-allreduce], {axis}: {_flow(counts[1:])}}}"
        )
    if system.gpus_per_node:
        lines += [
            "    # Beside one GPU, by PyTorch: a large environment.",
            "    - {workloads: [digits-mlp], frameworks: [torch], strategies: [single], device: cuda}",
        ]
    return (
        "\n".join([*lines, "bench:", "  grids: [{benchmarks: [memory-bandwidth-probe, matrix-multiply-probe]}]"]) + "\n"
    )
