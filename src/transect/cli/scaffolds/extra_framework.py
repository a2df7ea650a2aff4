"""A framework in one file: multilayer perceptrons in numpy, the backward pass by hand."""

import numpy as np

from transect.training.frameworks import FRAMEWORKS, Framework, Trainer, only_layers, runs_on
from transect.training.layers import Linear, ReLU, Sigmoid


class MlpTrainer(Trainer):
    """One rank's model."""

    def __init__(self, plan):
        self.layers, self.rule = list(enumerate(plan.layers)), plan.parameters
        self.dtype = np.dtype({"fp32": np.float32, "fp64": np.float64}[plan.precision])
        self.load(plan.weights)
        self.gradients = {name: np.zeros_like(array) for name, array in self.arrays.items()}
        self.velocity = {name: np.zeros_like(array) for name, array in self.arrays.items()}

    def batch(self, x, y):
        return x.astype(self.dtype), y

    def forward(self, x):
        """Return what comes before each layer, and the outputs."""
        values = [x]
        for i, layer in self.layers:
            if isinstance(layer, Linear):
                x = x @ self.arrays[f"{i}.weight"].T + self.arrays[f"{i}.bias"]
            elif isinstance(layer, ReLU):
                x = np.maximum(x, 0)
            else:
                x = 1 / (1 + np.exp(-x))
            values.append(x)
        return values

    def forward_backward(self, x, y):
        values = self.forward(x)
        target = np.eye(values[-1].shape[1], dtype=self.dtype)[y]
        if self.rule.loss == "mse":
            g = values[-1] - target
            losses = (g**2).sum(1) / 2
        else:
            shares = np.exp(values[-1] - values[-1].max(1, keepdims=True))
            shares /= shares.sum(1, keepdims=True)
            g = shares - target
            losses = -np.log(shares[target == 1])
        # The loss is a mean over the batch, and so are the gradients.
        g /= len(y)
        for i, layer in reversed(self.layers):
            if isinstance(layer, Linear):
                self.gradients[f"{i}.weight"][...] = g.T @ values[i]
                self.gradients[f"{i}.bias"][...] = g.sum(0)
                g = g @ self.arrays[f"{i}.weight"]
            else:
                g *= values[i + 1] > 0 if isinstance(layer, ReLU) else values[i + 1] * (1 - values[i + 1])
        return float(losses.mean())

    def gradient(self):
        return np.concatenate([g.ravel() for g in self.gradients.values()])

    def set_gradient(self, flat):
        for g in self.gradients.values():
            g[...] = flat[: g.size].reshape(g.shape)
            flat = flat[g.size :]

    def update(self, learning_rate):
        for name, array in self.arrays.items():
            self.velocity[name] *= self.rule.momentum
            self.velocity[name] += self.gradients[name] + self.rule.weight_decay * array
            array -= learning_rate * self.velocity[name]

    def predict(self, x):
        return self.forward(x.astype(self.dtype))[-1]

    def weights(self):
        return {name: array.copy() for name, array in self.arrays.items()}

    def load(self, weights):
        self.arrays = {name: array.astype(self.dtype) for name, array in weights.items()}


@FRAMEWORKS.register("extra-framework")
class ExtraFramework(Framework):
    """Lists of Linear, ReLU and Sigmoid."""

    environment = "base"

    def supports(self, cell):
        return runs_on(cell, "extra-framework")

    def builds(self, model):
        strange = () if only_layers(model) else [x for x in model.layers if not isinstance(x, Linear | ReLU | Sigmoid)]
        return only_layers(model) or (f"it has no {type(strange[0]).__name__}" if strange else None)

    def trainer(self, plan):
        return MlpTrainer(plan)

    def libraries(self):
        return {"numpy": np.__version__}
