"""Temporary."""

from contextlib import contextmanager

import numpy as np

from transect.federated.engines import ENGINES, Engine, Session, Turned
from transect.federated.flat import arrays_of, flat_of
from transect.training.frameworks import ModelPlan, TrainingState
from transect.training.frameworks._numpy_trainer import NumpyTrainer


class _S(Session):
    def __init__(self, task):
        self.t = task
        self.tr = NumpyTrainer(
            ModelPlan(
                model=task.model,
                parameters=task.parameters,
                weights=task.weights,
                batch=task.cell.batch,
                precision=task.cell.precision,
                device="cpu",
                threads=1,
            )
        )
        self.rest = self.tr.state().states

    def turns(self, turns):
        for t in turns:
            self.tr.resume(TrainingState(weights=arrays_of(self.t.model, t.given), states=self.rest, updates=0))
            ls = []
            for r in t.rows:
                x, y = self.tr.batch(self.t.x[r], self.t.y[r])
                ls.append(self.tr.forward_backward(x, y))
                self.tr.update(self.t.parameters.learning_rate)
            yield Turned(weights=flat_of(self.t.model, self.tr.weights())[None], losses=np.array([np.mean(ls)]))


@ENGINES.register("loop")
class Loop(Engine):
    @contextmanager
    def session(self, task):
        yield _S(task)
