"""A parameter server and a worker that die in the middle of their work; how far others are does not matter."""

import os
import signal

from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.frameworks.numpy_ import NumpyFramework


class Dies(NumpyTrainer):
    count = 0

    def _work(self):
        self.count += 1
        if self.count > 9 and int(os.environ["OMPI_COMM_WORLD_RANK"]) == self.rank:
            os.kill(os.getpid(), signal.SIGKILL)

    def forward_backward(self, x, y):
        self._work()
        return super().forward_backward(x, y)

    def update(self, learning_rate):
        self._work()
        super().update(learning_rate)


class DyingServer(Dies):
    rank = 0


class DyingWorker(Dies):
    rank = 2


@FRAMEWORKS.register("test-server-dies")
class ServerDies(NumpyFramework):
    def trainer(self, plan):
        return DyingServer(plan)


@FRAMEWORKS.register("test-worker-dies")
class WorkerDies(NumpyFramework):
    def trainer(self, plan):
        return DyingWorker(plan)
