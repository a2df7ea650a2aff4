"""A model that is no list of layers goes through data, reference and ranks."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rank_runs import Training, arrays

from transect.domain.errors import BadInput
from transect.training.frameworks import only_layers
from transect.training.layered import LayeredModel
from transect.training.layers import BatchNorm2d, Conv2d, Flatten, Linear
from transect.training.workloads import WORKLOADS, model_of

# Next token of a sequence, from the mean of its embeddings and the last one's own: tokens in, no
# class per sample, a score that is not a share, and lower is better.
PLUGINS = '''
from math import prod

import numpy as np

from transect.domain.errors import BadInput
from transect.domain.metrics import Direction, Mean, register_metric
from transect.training.datasets import DATASETS, LoadedDataset, Samples
from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.frameworks.numpy_ import NumpyFramework
from transect.training.layers import Weight
from transect.training.models import ModelCosts
from transect.training.workloads import WORKLOADS, Parameters, Workload

register_metric("next_token_loss", "1", Direction.LOWER, Mean.ARITHMETIC, "mean over test tokens")
TOKENS, LENGTH, WIDTH = 12, 6, 8


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


class Bound:
    def __init__(self, weights, gradients):
        self.weights, self.gradients = weights, gradients

    def hidden(self, x):
        """(n, t, 2 d): each token's embedding, and the mean of those until there."""
        embedded = self.weights["embedding"][x]
        counts = np.arange(1, x.shape[1] + 1, dtype=embedded.dtype)[:, None]
        return np.concatenate([embedded, embedded.cumsum(axis=1) / counts], axis=2)

    def outputs(self, x):
        return self.hidden(x) @ self.weights["head"].T

    def loss(self, x, y):
        hidden = self.hidden(x)
        logs = log_softmax(hidden @ self.weights["head"].T)
        n, t = y.shape
        rows, columns = np.ogrid[:n, :t]
        g = np.exp(logs)
        g[rows, columns, y] -= 1
        g /= n * t
        self.gradients["head"][...] = np.einsum("ntk,ntd->kd", g, hidden)
        back = g @ self.weights["head"]
        own, mean = back[..., :WIDTH], back[..., WIDTH:]
        counts = np.arange(1, t + 1, dtype=back.dtype)[:, None]
        own = own + (mean / counts)[:, ::-1].cumsum(axis=1)[:, ::-1]
        self.gradients["embedding"][...] = 0
        np.add.at(self.gradients["embedding"], x, own)
        return float(-logs[rows, columns, y].mean())


class NextToken:
    sample, inputs, score, parts_matter = (LENGTH,), "int64", "next_token_loss", False

    def check_data(self, shape, y, classes):
        if shape != self.sample or y.shape[1:] != self.sample or classes:
            raise BadInput(f"sequences of {LENGTH} tokens with as many targets are needed")

    def weight_shapes(self):
        return [Weight("embedding", (TOKENS, WIDTH)), Weight("head", (TOKENS, 2 * WIDTH))]

    def initial_weights(self, seed):
        generator = np.random.default_rng(seed)
        return {w.name: 0.3 * generator.standard_normal(w.shape) for w in self.weight_shapes()}

    def draw(self, generator):
        drawn = generator.integers(TOKENS, size=LENGTH + 1)
        return drawn[:-1], drawn[1:]

    def costs(self, parameters):
        count = sum(prod(w.shape) for w in self.weight_shapes())
        # Of the head: outputs, gradients of its weights and of its input. Looking up adds to one
        # gradient for each number of an embedding.
        products, looked_up = 2 * LENGTH * 2 * WIDTH * TOKENS, LENGTH * WIDTH
        return ModelCosts(parameters=count, training_flops=3 * products + looked_up,
                          prediction_flops=products, prediction_weights=(2 * TOKENS + 1) * WIDTH,
                          activations=LENGTH * (2 * WIDTH + TOKENS), inputs=LENGTH,
                          outputs=LENGTH * TOKENS)

    def longest_sum(self, batch):
        return max(2 * WIDTH, batch * LENGTH)

    def computation(self, parameters, weights, gradients):
        return Bound(weights, gradients)

    def score_sum(self, outputs, y):
        rows, columns = np.ogrid[:len(y), :LENGTH]
        return float(-log_softmax(outputs)[rows, columns, y].mean(axis=1).sum())


@DATASETS.register("chains")
class Chains(LoadedDataset):
    """Sequences of a Markov chain: the next token is mostly three further."""

    def load(self, options):
        generator = np.random.default_rng(7)
        jumps = np.where(generator.random((200, LENGTH)) < 0.8, 3, generator.integers(TOKENS, size=(200, LENGTH)))
        whole = (np.cumsum(np.column_stack([generator.integers(TOKENS, size=200), jumps]), axis=1)) % TOKENS
        from pathlib import Path
        return Samples(x=whole[:, :-1], y=whole[:, 1:], classes=(), source="generated", file=Path(__file__))

    def normalise(self, train, other):
        return train, other


@WORKLOADS.register("chains-next-token")
class ChainsNextToken(Workload):
    dataset = "chains"
    model = NextToken()
    defaults = Parameters(batch=16, epochs=4, learning_rate=0.01, optimiser="adamw", quality_target=1.0)


class Wrong(NumpyTrainer):
    def update(self, learning_rate):
        self.flat_gradient[:] **= 3
        super().update(learning_rate)


@FRAMEWORKS.register("wrong")
class WrongFramework(NumpyFramework):
    def trainer(self, plan):
        return Wrong(plan)
'''


@pytest.fixture(scope="module")
def training(base_python, tmp_path_factory) -> Training:
    rule = {
        "batch": 16,
        "epochs": 4,
        "learning_rate": 0.02,
        "optimiser": "adamw",
        "weight_decay": 0.01,
        "quality_target": 1.0,
    }
    made = Training(
        python=base_python,
        folder=tmp_path_factory.mktemp("training"),
        plugins=PLUGINS,
        workload="chains-next-token",
        rule=rule,
    )
    made.prepare()
    return made


@pytest.fixture(scope="module")
def reference(training) -> tuple[dict, dict]:
    out = training.reference(["fp32", "fp64"])
    return json.loads((out / "result.json").read_text()), arrays(out / "trajectory.npz")


def test_tokens_stay_integers_and_targets_need_no_classes(training):
    details = json.loads((training.folder / "data" / "result.json").read_text())["details"]
    assert details["classes"] == [] and details["class_balance"] == {}
    data = arrays(training.folder / "data" / "data.npz")
    assert data["x_train"].dtype == np.int64 and data["x_train"].shape == (150, 6)
    assert data["y_train"].shape == (150, 6)


def test_the_reference_learns_and_names_its_own_score(reference):
    result, path = reference
    metrics = {metric["name"]: metric["value"] for metric in result["metrics"]}
    # Guessing among twelve tokens costs log 12.
    assert path["loss"][0] == pytest.approx(np.log(12), abs=0.2)
    assert metrics["next_token_loss"] < 2.2
    assert result["details"]["longest_sum"] == 96


@pytest.mark.parametrize(("ranks", "strategy"), [(1, "single"), (2, "mpi-allreduce")])
def test_ranks_follow_its_path(training, reference, ranks, strategy):
    _, path = reference
    out, _ = training.train(ranks=ranks, strategy=strategy)
    series = [arrays(out / f"rank-{rank:03d}.npz") for rank in range(ranks)]
    loss = np.mean([rank["loss"] for rank in series], axis=0)
    assert (np.abs(loss - path["loss"]) <= path["tolerance_fp32"]).all()
    facts = json.loads((out / "rank-000.json").read_text())
    assert facts["parameters"] == 12 * 8 + 12 * 16
    assert facts["test_total"] == 50
    score = series[0]["score_sum"][-1] / facts["test_total"]
    metrics = {metric["name"]: metric["value"] for metric in reference[0]["metrics"]}
    assert score == pytest.approx(metrics["next_token_loss"], rel=1e-4)


# What the driver makes of a cell's files, in a process of its own: the plug-in stays there.
def merged(training, **axes) -> dict:
    reference = training.reference(["fp32"])
    out, _ = training.train(reference=reference, **axes)
    return training.merge(out, reference)


def test_the_result_has_the_models_score_and_its_direction(training):
    result = merged(training, ranks=2, strategy="mpi-allreduce")
    assert (result["status"], result["message"]) == ("ok", "")
    quality = result["details"]["quality"]
    # The lower, the better: at most 1.0 nats a token is not reached in four epochs.
    assert quality == {"metric": "next_token_loss", "target": 1.0, "reached": False}
    assert 1.0 < result["metrics"]["next_token_loss"] < 2.2
    assert "accuracy_ci_low" not in result["metrics"]
    assert "next_token_loss" in result["samples"] and "accuracy" not in result["samples"]
    layout = {"replicas": 2, "model_parts": 1, "micro_batches": 1, "servers": 0, "devices": 1, "workers": []}
    assert result["details"]["layout"] == layout
    # 8 sequences a rank: three products and the looked up numbers; AdamW's 11 with a decay.
    work = 8 * (3 * 6 * 4 * 8 * 12 + 6 * 8) + 11 * 288
    assert result["details"]["flops_per_step"] == work


def test_a_wrong_update_is_a_wrong_result(training):
    result = merged(training, framework="wrong")
    assert result["status"] == "failed"
    assert "float64 reference" in result["message"]


def test_a_twin_without_data_draws_tokens(training):
    out, _ = training.train(input="synthetic")
    assert np.isfinite(arrays(out / "rank-000.npz")["loss"]).all()


def test_torch_refuses_what_gives_it_no_module(training):
    out, _ = training.train(framework="torch", expect=1)
    (error,) = out.glob("*.error.json")
    facts = json.loads(error.read_text())
    assert facts["cause"] == "bad-input"
    assert "NextToken" in facts["message"]


def test_layers_are_one_model():
    model = model_of(WORKLOADS.get("iris-mlp"))
    assert isinstance(model, LayeredModel)
    assert (model.score, model.inputs, model.parts_matter) == ("accuracy", "float", False)
    assert only_layers(model) is None
    normed = LayeredModel((Conv2d(1, 2, 3), BatchNorm2d(2), Flatten(), Linear(8, 3)), (1, 4, 4))
    assert normed.parts_matter
    model.check_data((4,), np.zeros(9, np.int64), ("a", "b", "c"))
    with pytest.raises(BadInput, match=r"shape \(5,\), the model takes \(4,\)"):
        model.check_data((5,), np.zeros(9, np.int64), ("a", "b", "c"))
    with pytest.raises(BadInput, match=r"\(3,\) outputs for 2 classes"):
        model.check_data((4,), np.zeros(9, np.int64), ("a", "b"))
