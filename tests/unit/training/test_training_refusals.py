"""What strategies, frameworks, memories and their options take on, which ranks divide how, and why not."""

from __future__ import annotations

from typing import Any

import pytest

from factories import train_cell
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.stages.reference import reference_of
from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.numpy_ import NumpyFramework
from transect.training.layout import Layout
from transect.training.memory import DIVIDED_LAYERS, too_small, whole_models
from transect.training.strategies import STRATEGIES, strategy_options
from transect.training.strategies.single import Single
from transect.training.support import reason_to_skip
from transect.training.workloads import WORKLOADS, Parameters

PIPELINE, TORCH_PIPELINE, PAIRS, ROWS = "mpi-pipeline", "torch-pipeline", "tensor-parallel", "spatial"
RING, SENT = "multiworker-ring", "published-sendrecv"
TEXT = {"workload": "tickets-transformer"}
SUM = {"reduce": "sum", "workload": "iris-mlp-ce", "batch": 12, "ranks_per_node": 3, "framework": "numpy"}


def cell_of(strategy: str, options: dict[str, Any] | None = None, **axes: Any) -> Cell:
    """Return a cell of torch on two ranks, on one of `single`, unless other axes are given."""
    chosen = strategy_options(strategy, options or {}, "here")
    usual = {"framework": "torch", "workload": "digits-cnn", "batch": 64}
    usual |= {} if strategy == "single" else {"ranks_per_node": 2}
    return train_cell(strategy=strategy, options=chosen, **usual | axes)


@pytest.mark.parametrize(
    ("strategy", "axes", "reason"),
    [
        ("mpi-allreduce", {}, None),
        ("mpi-allreduce", {"framework": "numpy", "precision": "bf16"}, "not in bf16"),
        (
            "mpi-allreduce",
            {"framework": "old", "rule": {"optimiser": "adamw"}},
            "old cells update by sgd, not by adamw",
        ),
        ("mpi-allreduce", {"framework": "old"}, None),
        (
            "single",
            {"framework": "caffe"},
            "would need a build from source, with Boost.Python, protobuf, glog and HDF5",
        ),
        ("mpi-allreduce", {"framework": "cntk"}, "whose wheels on PyPI are for Python 2.7, 3.5 and 3.6"),
        ("ddp-mpi", {}, "a torch built from source with MPI (USE_MPI, beside an mpicc)"),
        ("single", {"framework": "go", "rule": {"optimiser": "lamb"}}, "not by lamb"),
        ("single", {"framework": "keras-2", "rule": {"optimiser": "rmsprop"}}, "not by rmsprop"),
        ("single", {"framework": "go", "rule": {"loss": "huber"}}, "go cells minimise cross-entropy or mse, not huber"),
        ("single", {"framework": "go", "rule": {"label_smoothing": 0.1}}, "go does not follow label_smoothing: 0.1"),
        ("single", {"framework": "keras-2", "rule": {"loss": "huber", "label_smoothing": 0.1}}, None),
        *(("single", {"framework": name, "workload": "iris-mlp-normalised"}, None) for name in ("go", "torch", "jax")),
        *(
            ("single", {"framework": name, "workload": "iris-mlp-normalised"}, "does not build LayerNorm")
            for name in ("mxnet", "keras-jax", "go-gorgonia")
        ),
        ("single", {"framework": "go", "rule": {"decay": "matrices"}}, "go does not follow decay: matrices"),
        ("mpi-allreduce", {"framework": "go+numpy", "rule": {"decay": "matrices"}}, "not follow decay"),
        ("fsdp", {"rule": {"optimiser": "lamb"}}, "the optimiser lamb looks at each weight as a whole"),
        ("fsdp", {"rule": {"optimiser": "function"}}, "an optimiser of your own may look at each weight as a whole"),
        ("tensor-parallel", {"rule": {"optimiser": "lamb"}, "workload": "digits-mlp"}, "a rank of tensor-parallel"),
        ("fsdp", {"rule": {"clip_norm": 1.0}}, "clip_norm needs the norm of all gradients, and fsdp updates parts"),
        (PIPELINE, {"rule": {"clip_norm": 1.0}}, "mpi-pipeline updates parts"),
        ("mpi-overlap", {"rule": {"clip_norm": 1.0}}, "mpi-overlap updates parts"),
        ("ddp-gloo", {"rule": {"clip_norm": 1.0}}, None),
        ("single", {"framework": "go", "rule": {"clip_norm": 1.0}}, "go does not follow clip_norm: 1.0"),
        ("ddp-gloo", {"rule": {"accumulation": 2}}, None),
        ("fsdp", {"rule": {"accumulation": 2}}, None),
        ("horovod-mpi", {"rule": {"accumulation": 2}}, None),
        (
            "ddp-gloo",
            {"framework": "keras-torch", "rule": {"accumulation": 2}},
            "at once under ddp-gloo: accumulation is for mpi-allreduce, mpi-bcast-reduce, mpi-sendrecv, single",
        ),
        ("single", {"rule": {"accumulation": 65}}, "a rank's 64 samples cannot be taken in 65 micro-batches"),
        ("mpi-allreduce", {"rule": {"accumulation": 32}}, None),
        ("single", {"framework": "go", "rule": {"accumulation": 2}}, "go does not follow accumulation: 2"),
        ("fsdp", {"rule": {"ema": 0.9}}, None),
        ("single", {"framework": "go", "rule": {"ema": 0.9}}, "go does not follow ema: 0.9"),
        (PIPELINE, {"rule": {"ema": 0.9}}, "mpi-pipeline updates parts of the model by themselves"),
        ("async", {"rule": {"ema": 0.9}}, "async updates parts"),
        ("fsdp", {"rule": {"optimiser": "rmsprop", "decay": "matrices"}}, None),
        ("mpi-allreduce", {"input": "files"}, "not files"),
        ("mpi-allreduce", {"ranks_per_node": 3}, "64 cannot be cut in 3"),
        ("single", {"ranks_per_node": 2}, "not on 2"),
        ("single", {"framework": "keras-jax", "device": "cuda"}, None),
        ("mpi-allreduce", {"framework": "keras-jax", "device": "cuda"}, "strategy single"),
        ("ddp-nccl", {"framework": "keras-torch", "device": "cuda"}, "strategy single"),
        ("single", {"framework": "keras-tensorflow", "device": "cuda"}, "has no CUDA"),
        ("single", {"framework": "keras-2", "precision": "amp-bf16"}, "not in amp-bf16"),
        ("single", {"framework": "keras-torch", "precision": "fp64"}, None),
        ("single", {"framework": "mxnet", "device": "cuda"}, "on cpu"),
        ("single", {"framework": "tensorflow", "precision": "fp16"}, "not in fp16"),
        ("single", {"framework": "tensorflow", "device": "rocm"}, "not on rocm"),
        ("single", {"framework": "go", "precision": "bf16"}, "fp32 or fp64"),
        ("single", {"framework": "go", "device": "cuda"}, "not on cuda"),
        ("single", {"framework": "go", "input": "files"}, "JPEG decoder"),
        (PIPELINE, {"framework": "go"}, "knows the strategies async, "),
        ("mpi-overlap", {"framework": "go"}, "takes reduce all of mpi-overlap, not root"),
        ("mpi-overlap", {"framework": "go", "options": {"reduce": "all", "bucket_bytes": 4096}}, None),
        ("single", {"framework": "go-gorgonia", "device": "cuda"}, None),
        ("mpi-allreduce", {"framework": "go-gorgonia", "device": "cuda"}, "without MPI"),
        ("single", {"framework": "go-gorgonia", "workload": "images-inception"}, None),
        ("single", {"framework": "go-gorgonia", "workload": "images-mobilenet"}, "no groups, and layer 3 has 8"),
        ("single", {"framework": "go", "workload": "images-mobilenet"}, None),
        ("single", {"framework": "go-gorgonia", "device": "cuda", "precision": "amp-bf16"}, "fp32 or fp64"),
        ("kvstore-dist-sync", {"framework": "mxnet"}, None),
        ("kvstore-dist-sync", {"framework": "mxnet", "precision": "fp64"}, "float32"),
        ("kvstore-dist-sync", {}, "not of torch"),
        ("jax-data-parallel", {"framework": "keras-jax"}, None),
        ("jax-data-parallel", {"framework": "keras-jax", "options": {"devices": 2}}, "one device of each rank"),
        ("jax-data-parallel", {"framework": "jax", "options": {"devices": 2}}, None),
        ("jax-data-parallel", {"framework": "jax", "options": {"devices": 3}}, "64 cannot be cut in 6"),
        ("jax-data-parallel", {"framework": "jax", "device": "cuda"}, "strategy single"),
        ("single", {"framework": "jax", "device": "cuda", "precision": "amp-bf16"}, None),
        ("single", TEXT | {"framework": "jax"}, None),
        ("single", {"framework": "torchax"}, "takes modules of torch"),
        ("single", {"framework": "torchax", "precision": "amp-bf16"}, "fp32 or fp64"),
        ("single", TEXT | {"framework": "keras-jax"}, "not a transformer"),
        ("jax-data-parallel", {"framework": "keras-torch"}, "not of keras-torch"),
        (RING, {"framework": "tensorflow", "reduce": "sum", "precision": "fp64"}, None),
        (RING, {"framework": "tensorflow", "device": "cuda"}, "works on cpu"),
        (RING, {"framework": "keras-tensorflow"}, "Keras 3"),
        (RING, {}, "not of torch"),
        ("multiworker-nccl", {"framework": "tensorflow"}, "works on cuda"),
        ("fsdp", {"device": "cuda", "reduce": "sum"}, None),
        ("fsdp", {"framework": "numpy"}, "torch, not of numpy"),
        ("horovod-mpi", {"reduce": "sum", "device": "cuda"}, None),
        ("horovod-mpi", {"framework": "numpy"}, "not with numpy"),
        ("async", {"ranks_per_node": 1}, "at least 2 ranks"),
        ("published-allreduce", SUM, None),
        ("published-allreduce", SUM | {"reduce": "mean"}, "`reduce: [sum]`"),
        ("published-allreduce", SUM | {"rule": {"momentum": 0.9}}, "got sgd with 0.9 and 0"),
        ("published-allreduce", SUM | {"rule": {"optimiser": "adamw"}}, "got adamw with 0 and 0"),
        (SENT, SUM | {"ranks_per_node": 1}, "at least 2 ranks"),
        (SENT, SUM | {"workload": "images-resnet20"}, "no batch"),
        (SENT, SUM | {"ranks_per_node": 6}, "cannot be cut in 5 equal parts"),
        ("mpi-overlap", {}, None),
        ("mpi-overlap-bcast", TEXT, "it cuts lists of layers, and a transformer is not one"),
        ("mpi-overlap", {"framework": "whole"}, "whole cannot train a part"),
        (PIPELINE, {"ranks_per_node": 4}, None),
        (PIPELINE, {"ranks_per_node": 9}, "into 9 stages"),
        (PIPELINE, {"ranks_per_node": 6, "options": {"stages": 4}}, "replicas of 4 stages"),
        (PIPELINE, {"options": {"cut": "9"}}, "without one"),
        (PIPELINE, TEXT, "a transformer is not one"),
        (PIPELINE, {"framework": "whole"}, "whole models"),
        (TORCH_PIPELINE, {"reduce": "sum", "precision": "fp64", "ranks_per_node": 4}, None),
        (TORCH_PIPELINE, {"framework": "numpy"}, "of torch, not of numpy"),
        (TORCH_PIPELINE, {"device": "cuda"}, "runs on cuda"),
        (TORCH_PIPELINE, {"precision": "amp-bf16"}, "not in amp-bf16"),
        (TORCH_PIPELINE, {"memory": "recompute"}, "memory recompute"),
        (TORCH_PIPELINE, {"ranks_per_node": 3, "options": {"stages": 2}}, "replicas of 2"),
        (TORCH_PIPELINE, {"options": {"micro_batches": 1}}, "2 stages, not 1"),
        (TORCH_PIPELINE, {"options": {"schedule": "gpipe", "micro_batches": 1}}, None),
        (TORCH_PIPELINE, {"options": {"schedule": "looped-bfs", "loops": 5}}, "takes 1, 2, 3, 4 stages on each rank"),
        (TORCH_PIPELINE, {"options": {"cut": "3-7"}}, "cut 3-7 makes 3 stages, not 2"),
        (PAIRS, {"workload": "digits-mlp"}, None),
        (PAIRS, {"workload": "digits-mlp", "ranks_per_node": 1024, "batch": 1024}, "in 1024 parts"),
        (PAIRS, {}, "no two linear"),
        (PAIRS, TEXT, "a transformer is not one"),
        (ROWS, {"ranks_per_node": 8}, None),
        (ROWS, {"ranks_per_node": 16}, "16 ranks"),
        (ROWS, {"workload": "iris-mlp"}, "have no rows"),
        (ROWS, {"workload": "digits-mlp"}, "the first layer"),
        (ROWS, TEXT, "a transformer"),
        ("single", {"memory": "recompute"}, None),
        ("single", {"memory": "offload-file"}, None),
        ("single", {"memory": "offload-host"}, "the host's memory"),
        ("single", {"memory": "managed"}, "a GPU's"),
        ("single", {"memory": "managed", "device": "cuda"}, "set TRANSECT_MANAGED_MEMORY=1"),
        ("single", {"memory": "offload-file", "device": "cuda"}, "see offload-host"),
        ("single", {"memory": "planned"}, "plans for"),
        ("single", {"memory": "recompute", "framework": "numpy"}, "torch, not numpy"),
        ("fsdp", {"memory": "recompute"}, "with fsdp none does"),
        ("single", {"memory_budget": 1 << 20, "framework": "numpy"}, "needs torch"),
        ("single", {"memory_budget": 1 << 20, "device": "cuda"}, "does not limit a GPU's memory"),
        ("mpi-overlap", {"memory_budget": 1 << 30}, "mpi-overlap trains parts"),
        ("single", {"memory_budget": 100_000}, "layer 1 alone holds 786,432 bytes"),
        ("single", {"memory_budget": 1 << 30}, None),
    ],
)
def test_what_can_run_and_why_not(monkeypatch, strategy, axes, reason):
    class Old(NumpyFramework):
        """A plug-in from before there were optimisers and parts."""

        optimisers = ("sgd",)

    monkeypatch.delenv("TRANSECT_MANAGED_MEMORY", raising=False)
    monkeypatch.setitem(FRAMEWORKS._entries, "old", Old)
    whole = {"supports": lambda self, cell: None}
    monkeypatch.setitem(FRAMEWORKS._entries, "whole", type("Whole", (), whole))
    rule = axes.pop("rule", {}) if "rule" in (axes := dict(axes)) else {}
    cell = cell_of(strategy, **axes)
    plain = {"momentum": 0.0, "weight_decay": 0.0} if strategy.startswith("published") else {}
    given = WORKLOADS.get(cell.workload).defaults.model_dump() | {"batch": cell.batch} | plain | rule
    found = reason_to_skip(cell, Parameters(**given))
    assert found is None if reason is None else reason in str(found), found


@pytest.mark.parametrize(
    ("strategy", "given", "expected"),
    [
        (TORCH_PIPELINE, {"schedule": "gpip"}, "here.schedule: strategy torch-pipeline takes one of gpipe, 1f1b"),
        (TORCH_PIPELINE, {"micro_batches": 0}, "takes a whole number from 1 on, got 0"),
        (TORCH_PIPELINE, {"schedul": "gpipe"}, "schedule"),
        ("async", {"staleness": 1.5}, "here.staleness: strategy async takes a whole number"),
        ("async", {"staleness": True}, "here.staleness: strategy async takes a whole number"),
        ("mpi-hierarchical", {"group": None}, "got None"),
        *(
            (PIPELINE, {"cut": cut}, "parameters, or a text in quotes such as '3-7'")
            for cut in (3, "fair", "3--4", "03", "", "3/7", "\N{ARABIC-INDIC DIGIT THREE}")
        ),
    ],
)
def test_options_that_are_none_are_refused(strategy, given, expected):
    with pytest.raises(BadInput) as caught:
        strategy_options(strategy, given, "here")
    assert expected in str(caught.value)


def test_options_have_one_way_to_be_written():
    for known in ("3", "3-7", "10-20", "equal"):
        assert strategy_options(PIPELINE, {"cut": known}, "here") == (("cut", known),)
    assert strategy_options("async", {"staleness": None}, "here") == (("staleness", "unbounded"),)
    assert strategy_options("async", {"staleness": 2}, "here") == ()


@pytest.mark.parametrize(
    ("strategy", "options", "ranks", "layout"),
    [
        (PIPELINE, {}, 4, Layout(1, 4, 4)),
        (PIPELINE, {"stages": 1, "micro_batches": 1}, 4, Layout(4, 1, 1)),
        (TORCH_PIPELINE, {"stages": 2, "micro_batches": 3, "schedule": "gpipe"}, 8, Layout(4, 2, 3)),
        # As many ranks, whatever the number of stages on each.
        (TORCH_PIPELINE, {"schedule": "zbv-zero-bubble"}, 4, Layout(1, 4, 4)),
        (PAIRS, {}, 4, Layout(1, 4)),
        (ROWS, {"parts": 2}, 4, Layout(2, 2)),
        # Cells that are refused have one too.
        (ROWS, {"parts": 8}, 2, Layout(1, 8)),
        ("async", {}, 4, Layout(3, servers=1)),
        (SENT, {}, 4, Layout(3, servers=1)),
        ("published-allreduce", {}, 4, Layout(4)),
        ("jax-data-parallel", {"devices": 2}, 4, Layout(4, devices=2)),
    ],
)
def test_ranks_divide_and_the_reference_cuts_as_the_cell_does(strategy, options, ranks, layout):
    reduce = "sum" if strategy.startswith("published") else "mean"
    cell = cell_of(strategy, options, ranks_per_node=ranks, workload="images-resnet20", batch=96, reduce=reduce)
    assert STRATEGIES.get(strategy).layout(cell) == layout
    reference = reference_of(cell)
    assert (reference.shards, reference.micro_batches) == (layout.replicas * layout.devices, layout.micro_batches)


def test_ranks_share_the_data_where_they_do_not_share_the_model():
    for name in STRATEGIES:
        ranks = 1 if name == "single" else 4
        layout = STRATEGIES.get(name).layout(train_cell(strategy=name, ranks_per_node=ranks))
        assert layout.ranks == ranks
        shared = name in (PIPELINE, TORCH_PIPELINE, PAIRS, ROWS)
        assert layout.model_parts == (ranks if shared else 1), name
        assert layout.servers == (name in ("async", SENT)), name


def test_strategies_that_compute_whole_models_are_told_by_their_trainer(monkeypatch):
    """One from outside needs to be in no list."""
    parts = {*DIVIDED_LAYERS, "mpi-overlap", "mpi-overlap-bcast", PIPELINE, TORCH_PIPELINE}
    assert {name for name in STRATEGIES if not whole_models(name)} == parts
    monkeypatch.setitem(STRATEGIES._entries, "as-single", type("AsSingle", (Single,), {}))
    monkeypatch.setitem(STRATEGIES._entries, "sharded", type("Sharded", (Single,), {"sharded": True}))
    assert whole_models("as-single") and not whole_models("sharded")


@pytest.mark.parametrize("strategy", DIVIDED_LAYERS)
def test_a_layer_that_ranks_divide_may_exceed_the_budget_of_one(strategy):
    assert too_small(cell_of(strategy, memory_budget=100_000), 64) is None  # type: ignore[arg-type]
