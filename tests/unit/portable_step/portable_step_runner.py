"""Trains a portable step's folder with ONNX Runtime: runs in the environment `torch`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

from transect import portable_step


class Runner:
    """Trains a step's folder with ONNX Runtime alone, as a program in another language does."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.manifest = portable_step.read_manifest(folder)
        self.state = portable_step.read_state(folder / self.manifest.state_file, self.manifest)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.sessions = {
            name: onnxruntime.InferenceSession(str(folder / graph.file), options, providers=["CPUExecutionProvider"])
            for name, graph in self.manifest.graphs.items()
        }
        self.hyper = {parameter.name: np.float64(parameter.default) for parameter in self.manifest.hyper}
        self.seed = np.int64(seed)

    def run(self, graph: str, batch: tuple[torch.Tensor, ...]) -> dict[str, np.ndarray]:
        data = {d.name: t.numpy() for d, t in zip(self.manifest.data, batch, strict=False)}
        given = {**data, **self.hyper, **self.state, "seed": self.seed}
        facts = self.manifest.graphs[graph]
        feed = {name: np.asarray(given[name]) for name in facts.inputs}
        outputs = self.sessions[graph].run(list(facts.outputs), feed)
        return dict(zip(facts.outputs, outputs, strict=True))

    def update(self, batches: list[tuple[torch.Tensor, ...]]) -> float:
        losses = []
        for number, batch in enumerate(batches):
            made = self.run("step" if number == len(batches) - 1 else "accumulate", batch)
            for tensor in self.manifest.state:
                if tensor.next in made:
                    self.state[tensor.name] = made[tensor.next]
            losses.append(float(made["loss"]))
        return float(np.mean(losses))


def difference(given: Any, expected: Any) -> float:
    """Largest difference, relative to the largest number."""
    given, expected = np.asarray(given, np.float64), np.asarray(expected, np.float64)
    assert given.shape == expected.shape, (given.shape, expected.shape)
    return float(np.abs(given - expected).max() / max(np.abs(expected).max(), 1e-30))
