"""PyTorch: eager mode, autograd, torch.optim."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import numpy as np

from transect.domain.precisions import find_precision
from transect.training.frameworks import ModelPlan, ResumableTrainer, Trainer, TrainingState
from transect.training.layout import Layout
from transect.training.memory import MEMORIES
from transect.training.memory._limit import MemoryLimit
from transect.training.models import TorchModel
from transect.training.module_model import ModuleModel
from transect.training.optimisers import OWN_OPTIMISER


class TorchTrainer(Trainer, ResumableTrainer):
    """One rank's model with its optimiser.

    A strategy may replace three things, and no more: what computes (`wrap`), which parameters are
    trained (`rebind`), and the optimiser (`wrap_optimiser`). `model` stays the model itself.
    """

    accumulates = True

    def __init__(self, plan: ModelPlan) -> None:
        import torch

        from transect.training.frameworks import _torch_own_optimiser
        from transect.training.frameworks._torch_averages import Averages
        from transect.training.frameworks._torch_losses import loss_function
        from transect.training.frameworks._torch_modules import draw_from, load_weights, module_dtype
        from transect.training.frameworks._torch_optimisers import clip_gradients, make_optimiser, set_optimiser_state

        torch.set_num_threads(plan.threads)
        self.torch = torch
        self.dtype = module_dtype(plan.precision)
        if plan.device == "cuda":
            # One GPU per rank; the launcher numbers the ranks of a node.
            local_rank = int(os.environ.get("LOCAL_RANK", "0"))
            torch.cuda.set_device(local_rank % torch.cuda.device_count())
            # Torch lets cuDNN round convolutions to TF32 (10 bits); float32 means float32 here.
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        self.device = torch.device(plan.device)
        memory = MEMORIES.get(plan.memory)
        memory.prepare(self.device)
        self._load, self._make_optimiser = load_weights, make_optimiser
        self._set_optimiser_state, self._clip = set_optimiser_state, clip_gradients
        self._make_averages, self._own_optimiser = Averages, _torch_own_optimiser
        self._rule = plan.parameters
        own = plan.model.own_optimiser if isinstance(plan.model, ModuleModel) else None
        self._own_maker = own if self._rule.optimiser == OWN_OPTIMISER else None
        assert isinstance(plan.model, TorchModel)
        self._names = plan.weights.keys()
        self.model: Any = plan.model.torch_module().to(self.device, self.dtype)
        self.load(plan.weights)
        self._as_it_is = nullcontext()
        # Only a batch norm does otherwise in prediction, and going through all modules takes time.
        self._has_modes = plan.model.parts_matter
        self._draw_from = draw_from if isinstance(plan.model, ModuleModel) and plan.model.draws else None
        self._seed: int | None = None
        precision = find_precision(plan.precision)
        self._autocast = precision.multiplied != precision.stored
        self._computes: Any = self.model.train()
        self._cuts, self._unsent = Layout(1, 1, self._rule.accumulation), nullcontext
        self.parameters: list[Any] = []
        self.optimiser: Any = None
        # What a wrapped optimiser began with.
        self._begun: dict[str, Any] | None = None
        self.rebind(self.model.parameters())
        self._loss = loss_function(self._rule, plan.model)
        total = sum(parameter.numel() for parameter in self.parameters)
        self._flat = np.empty(total, precision.array)
        self.activations = memory.arrange(self.model, plan)
        watched = plan.memory != "plain" or plan.memory_budget is not None
        self.limit = MemoryLimit(plan.memory_budget) if watched else None

    @property
    def micro_batches(self) -> int:
        """Return how many backward passes a step has."""
        return self._rule.accumulation

    def wrap(self, module: Any) -> None:
        """Compute losses with `module`, which holds the model; predictions stay the model's own."""
        self._computes = module
        self._unsent = getattr(module, "no_sync", nullcontext)

    def rebind(self, parameters: Iterable[Any]) -> None:
        """Train these parameters, which may be shards, with a new optimiser of the same rule."""
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        if self._own_maker is None:
            self.optimiser = self._make_optimiser(self._rule, self.parameters)
        else:
            self.optimiser = self._own_optimiser.make(self._own_maker, self.model, self._rule.learning_rate)
        self._shares = self._own_optimiser.rate_shares(self.optimiser, self._rule.learning_rate)
        self._averages = self._make_averages(self.parameters, self._rule.ema)

    def wrap_optimiser(self, optimiser: Any) -> None:
        """Update with `optimiser`, which holds the trainer's own."""
        self.optimiser, self._begun = optimiser, deepcopy(optimiser.state_dict())

    def load(self, weights: dict[str, np.ndarray]) -> None:
        self._load(self.model, weights, self.dtype)

    def resume(self, state: TrainingState) -> None:
        """Go on from there; where a strategy has sharded the model each rank takes its own part."""
        self.load(state.weights)
        if self._own_maker is None:
            self._set_optimiser_state(self._rule, self.optimiser, self.model, state)
        elif self._begun is None:
            # It may keep what no state has, such as a count.
            self.rebind(self.parameters)
        else:
            self.optimiser.load_state_dict(deepcopy(self._begun))

    def seed(self, seed: int) -> None:
        """Keep it for the next forward pass, if anything draws there."""
        self._seed = seed

    def batch(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Copy to device and precision; integers, such as class numbers, stay."""
        inputs = self.torch.from_numpy(x).to(self.device)
        if inputs.is_floating_point():
            inputs = inputs.to(self.dtype)
        targets = self.torch.from_numpy(y).to(self.device)
        return inputs, targets.to(self.dtype) if targets.is_floating_point() else targets

    def forward_backward(self, x: Any, y: Any) -> float:
        """Run autograd; returns the loss as a Python number, which waits for the device.

        Gradients of micro-batches add up where autograd leaves them. What is sent behind backward passes is sent in the last one.
        """
        number, parts = 0.0, self._cuts.micro(len(y))
        with self.limit.held() if self.limit is not None else self._as_it_is:
            # Of all parameters: an optimiser of the user's may hold some of them.
            self.model.zero_grad()
            for part in parts:
                last = part.stop == len(y)
                with self._as_it_is if last else self._unsent():
                    number += self._add_gradient(x[part], y[part], (part.stop - part.start) / len(y))
        return number

    def _add_gradient(self, x: Any, y: Any, share: float) -> float:
        with self.activations.forward(x):
            loss = self.compute(x, y)
        with self.activations.backward():
            (loss if share == 1 else share * loss).backward()
        return share * float(loss.item())

    def compute(self, x: Any, y: Any = None) -> Any:
        """Return the outputs, or the mean loss where there is a `y`, as tensors of autograd."""
        if self._draw_from is not None and self._seed is not None:
            self._draw_from(self._seed)
            # The micro-batches that follow go on from there.
            self._seed = None
        with self._precision():
            outputs = self._computes(x)
            return outputs if y is None else self.loss_of(outputs, y)

    def loss_of(self, outputs: Any, y: Any) -> Any:
        """Return the mean loss as a tensor of autograd."""
        return self._loss(outputs, y)

    def _precision(self) -> Any:
        if self._autocast:
            return self.torch.autocast(self.device.type, self.torch.bfloat16)
        return self._as_it_is

    def gradient(self) -> np.ndarray:
        start = 0
        for parameter in self.parameters:
            size = parameter.numel()
            self._flat[start : start + size] = parameter.grad.detach().reshape(-1).cpu().numpy()
            start += size
        return self._flat

    def set_gradient(self, flat: np.ndarray) -> None:
        """Make the trainer's own buffer the gradients, until the next step; copy any other."""
        start = 0
        whole = self.torch.from_numpy(flat)
        in_place = flat is self._flat and self.device.type == "cpu"
        for parameter in self.parameters:
            size = parameter.numel()
            part = whole[start : start + size].view_as(parameter)
            if in_place:
                parameter.grad = part
            else:
                parameter.grad.copy_(part)
            start += size

    def update(self, learning_rate: float) -> None:
        self._own_optimiser.set_rates(self.optimiser, self._shares, learning_rate)
        if self._rule.clip_norm is not None:
            self._clip(self.parameters, self._rule.clip_norm)
        self.optimiser.step()

    def average(self) -> None:
        self._averages.move()

    def exchange_averages(self) -> None:
        self._averages.exchange()

    def finish_step(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def predict(self, x: np.ndarray) -> np.ndarray:
        if self._has_modes:
            self.model.eval()
        with self.torch.no_grad(), self._precision():
            inputs, _ = self.batch(x, np.empty(0, np.int64))
            outputs: np.ndarray = self.model(inputs).to(self.dtype).cpu().numpy()
        if self._has_modes:
            self.model.train()
        return outputs

    def weights(self) -> dict[str, np.ndarray]:
        """Return copies in the neutral layout, which is torch's own.

        Where a strategy has sharded the model all ranks must call it: it puts the shards together.
        """
        whole = {}
        for name, tensor in self.model.state_dict().items():
            if name in self._names:
                full = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
                whole[name] = full.detach().cpu().numpy().copy()
        return whole

    def memory(self) -> dict[str, Any]:
        """Return what became of activations, and the most that a step held where it was watched."""
        facts = dict(self.activations.facts())
        return facts if self.limit is None else facts | {"step_bytes": self.limit.most}

    def peak_before(self) -> int:
        """Return what the limit knows of the time before a step, in which the kernel counts anew."""
        return 0 if self.limit is None else self.limit.before
