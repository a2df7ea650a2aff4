"""A study: which questions are asked, with which grids."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "Bench", "BenchGrid", "Export", "Infer", "InferGrid", "Ingest", "Limits", "Study", "Train",
    "TrainGrid",
]  # fmt: skip

Count = Annotated[int, Field(ge=1)]
Names = Annotated[list[str], Field(min_length=1)]
Counts = Annotated[list[Count], Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Limits(_Model):
    """What one cell may use before it is ended."""

    seconds: float = Field(default=300, gt=0)
    memory_mb: int | None = Field(
        default=None, ge=16, description="resident memory of all ranks on one node"
    )
    repeats_if_disturbed: int = Field(
        default=1, ge=0, description="how often a cell is measured again when others disturbed it"
    )
    repeat_seconds: float = Field(
        default=60, ge=0, description="no repeat of a payload that took longer than this"
    )


class TrainGrid(_Model):
    """The cross product of its lists. The workload's batch is the global batch, or each rank's."""

    workloads: Names
    frameworks: Names
    strategies: Names
    ranks: Counts = [1]
    nodes: Counts = [1]
    threads: Counts = [1]
    precisions: Names = ["fp32"]
    networks: list[str | None] = Field(
        default=[None],
        min_length=1,
        description="names among the system's networks; null: its own choice",
    )
    device: str = "cpu"
    scaling: Literal["strong", "weak"] = Field(
        default="strong",
        description="strong: the workload's batch is the global batch; weak: it is each rank's",
    )
    learning_rate_rule: Literal["none", "linear"] = Field(
        default="none",
        description="linear: in proportion to the global batch, after the workload's warmup_steps",
    )
    reduce: list[Literal["mean", "sum"]] = Field(
        default=["mean"],
        min_length=1,
        description="what the gradients of ranks become; sum as in the published Go study",
    )
    inputs: list[Literal["stored", "files", "synthetic"]] = Field(
        default=["stored"],
        min_length=1,
        description="stored: the data stage's arrays; files: decoded in each step; "
        "synthetic: random numbers that lie on the device",
    )
    repeats: Count | None = Field(default=None, description="null: as many as `train.repeats`")


class Train(_Model):
    """All training grids and how often each cell is repeated, each repeat with its own seed."""

    repeats: Count = 3
    grids: list[TrainGrid] = []


class Export(_Model):
    """Which trained workloads are exported, from which framework, by which exporters."""

    workloads: list[str] = []
    framework: str = "torch"
    exporters: list[str] = []


class InferGrid(_Model):
    """The cross product of its lists. A runtime that takes no ONNX model ignores `exporters`."""

    workloads: Names
    runtimes: Names
    exporters: list[str] = []
    providers: Names = ["cpu"]
    batches: Counts = [1]
    threads: Counts = [1]


class Infer(_Model):
    """All inference grids and how long each cell measures."""

    repeats: Count = 1
    warmup: int = Field(default=20, ge=0)
    min_runs: int = Field(default=100, ge=10)
    max_seconds: float = Field(default=1.0, gt=0)
    grids: list[InferGrid] = []


class BenchGrid(_Model):
    """Benchmarks that are run, over a sweep of nodes, ranks on each, threads, networks, options."""

    benchmarks: Names
    threads: Counts = [1]
    ranks: Counts = [1]
    nodes: Counts = [1]
    networks: list[str | None] = Field(default=[None], min_length=1)
    options: list[dict[str, int | float | str]] = Field(
        default=[{}],
        min_length=1,
        description="one cell for each: problem sizes and the like, see docs/benchmarks.md",
    )
    device: str = "cpu"


class Bench(_Model):
    """All benchmark grids."""

    repeats: Count = 1
    grids: list[BenchGrid] = []


class Ingest(_Model):
    """Logs that are read: files or folders, relative to the study file."""

    paths: list[str] = []


class Study(_Model):
    """One study file. `workloads` overrides hyper-parameters by workload name."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    title: str = ""
    questions: list[str] = []
    seed: int = Field(default=20261120, ge=0)
    plugins: list[str] = Field(
        default=[], description="plug-in folders, relative to the study file"
    )
    limits: Limits = Limits()
    workloads: dict[str, dict[str, Any]] = {}
    train: Train = Train()
    export: Export = Export()
    infer: Infer = Infer()
    bench: Bench = Bench()
    ingest: Ingest = Ingest()
    published: list[dict[str, Any]] = Field(
        default=[], description="published figures to compare with"
    )
