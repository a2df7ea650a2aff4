"""A memory in one file: every layer is computed again, by itself."""

from contextlib import nullcontext

from transect.training.memory import MEMORIES, Memory
from transect.training.memory._runs import Run, compute_in_runs, layers_of
from transect.training.memory.plain import PlainActivations


@MEMORIES.register("extra-recompute")
class EachAgain(Memory):
    """Keeps the input of each layer, and nothing that it computes."""

    def arrange(self, model, plan):
        layers, _ = layers_of(model)
        runs = [Run("recompute", index, index + 1) for index in range(len(layers))]
        compute_in_runs(model, runs, nullcontext)
        return PlainActivations()
