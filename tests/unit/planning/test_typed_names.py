"""Names as people type them: one cell and one fingerprint whatever was typed, or an error with those that may be meant."""

from __future__ import annotations

import pytest

from factories import plan_study
from transect.domain.errors import BadInput, unknown_name
from transect.domain.precisions import find_precision, named_precision
from transect.domain.registry import Registry
from transect.runtimes import RUNTIMES, named_onnx_precision
from transect.training.frameworks import FRAMEWORKS
from transect.training.optimisers import OPTIMISERS
from transect.training.strategies import STRATEGIES
from transect.training.workloads import Parameters

STUDY = """
name: typed
workloads: {{digits-cnn: {{optimiser: {optimiser}}}}}
train:
  repeats: 1
  grids:
    - {{workloads: [digits-cnn], frameworks: [{framework}], strategies: [single], precisions: [{precision}]}}
    - {{workloads: [digits-cnn], frameworks: [{framework}], strategies: [{strategy}], ranks: [2]}}
export: {{workloads: [digits-cnn], exporters: [dynamo]}}
infer:
  grids: [{{workloads: [digits-cnn], runtimes: [{runtimes}], precisions: [{converted}]}}]
retrain:
  grids: [{{workloads: [digits-cnn], runtimes: ["{turns}"], optimisers: [{optimiser}]}}]
"""
HOUSE = {
    "framework": "torch",
    "strategy": "jax-data-parallel",
    "precision": "fp32",
    "converted": "fp32",
    "optimiser": "adamw",
    "runtimes": "cpp, javascript",
    "turns": "rust>javascript",
}
TYPED = {
    "framework": "PyTorch",
    "strategy": "JAX_Data_Parallel",
    "precision": "float32",
    "converted": "Single",
    "optimiser": "AdamW",
    "runtimes": "C++, node.js",
    "turns": "Rust>JS",
}


def test_what_was_typed_is_in_no_id_and_in_no_fingerprint(tmp_path):
    made = []
    for name, words in (("house", HOUSE), ("typed", TYPED)):
        (folder := tmp_path / name).mkdir()
        made.append(plan_study(folder, STUDY.format(**words)))
    house, typed = ({p.key: (p.fingerprint, p.spec) for p in plan} for plan in made)
    assert len(house) > 5 and house == typed


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"strategy": "ddp"}, ["grids.1.strategies: unknown strategy 'ddp': did you mean 'ddp-gloo' or 'ddp-nccl'?"]),
        (
            {"framework": "Keras"},
            ["unknown framework 'Keras': did you mean 'keras-jax', 'keras-tensorflow' or 'keras-torch'?"],
        ),
        ({"runtimes": "pytorch"}, ["unknown runtime 'pytorch': did you mean 'torch-compile', 'torch-eager' or"]),
        ({"converted": "int8"}, ["unknown precision 'int8'", "did you mean 'int8-dynamic' or 'int8-static'?"]),
        ({"optimiser": "Lion"}, ["unknown optimiser 'Lion'"]),
        (
            {"framework": "pytroch", "strategy": "Horovod"},
            ["did you mean 'torch'?", "'horovod-gloo' or 'horovod-mpi'?"],
        ),
    ],
)
def test_what_may_mean_several_or_nothing_is_an_error_that_names_them(tmp_path, words, expected):
    with pytest.raises(BadInput) as caught:
        plan_study(tmp_path, STUDY.format(**HOUSE | words))
    for part in expected:
        assert part in str(caught.value)


def test_a_name_is_what_is_exactly_called_so_and_nothing_else_is_silently_another():
    class Base:
        pass

    registry: Registry[Base] = Registry("thing", "transect.domain", Base)
    registry._discovered = True
    for name, others in (("swift", ("Quick",)), ("Swift", ()), ("quick-sort", ("quick", "slow")), ("slow", ())):
        registry.register(name, *others)(type(name, (Base,), {"__module__": __name__}))
    assert registry.named("swift") == "swift" and registry.named("Swift") == "Swift"
    # The other names of none hide one that has it.
    assert registry.named("slow") == "slow"
    assert registry.named("Quick_Sort") == "quick-sort"
    for unsure in ("SWIFT", "quick", "", "swif"):
        assert registry.named(unsure) == unsure
        with pytest.raises(BadInput):
            registry.get(unsure)


@pytest.mark.parametrize(
    ("named", "pairs"),
    [
        (
            FRAMEWORKS.named,
            {"PyTorch": "torch", "TF": "tensorflow", "golang": "go", "JAX": "jax", "Keras-JAX": "keras-jax"},
        ),
        (
            STRATEGIES.named,
            {"FSDP": "fsdp", "allreduce": "mpi-allreduce", "ddp": "ddp", "shard_map": "jax-data-parallel"},
        ),
        (OPTIMISERS.named, {"AdamW": "adamw", "SGD": "sgd", "NAG": "nesterov"}),
        (
            RUNTIMES.named,
            {"c++": "cpp", "JS": "javascript", "golang": "go", "Python": "python", "onnxruntime": "onnxruntime"},
        ),
        (
            named_precision,
            {"float32": "fp32", "BF16": "bf16", "bfloat16": "bf16", "bf16-mixed": "amp-bf16", "double": "fp64"},
        ),
        (named_onnx_precision, {"FP32": "fp32", "half": "fp16", "int8": "int8", "INT8_static": "int8-static"}),
    ],
)
def test_usual_names_are_known(named, pairs):
    assert {given: named(given) for given in pairs} == pairs


def test_hyper_parameters_keep_the_houses_name():
    assert Parameters(batch=1, epochs=1, learning_rate=1, quality_target=1, optimiser="AdamW").optimiser == "adamw"


def test_a_misspelt_other_name_is_answered_with_the_name():
    error = unknown_name("framework", "PyTorhc", ["torch", "numpy"], others={"torch": ("pytorch",)})
    assert "did you mean 'torch'?" in str(error)
    with pytest.raises(BadInput, match="did you mean 'amp-bf16'"):
        find_precision("amp")
