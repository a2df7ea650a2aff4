"""Test frameworks that fail in each way that a study must survive."""

from __future__ import annotations

import os
import signal
import time

from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks.numpy_ import NumpyFramework, NumpyTrainer


@FRAMEWORKS.register("test-raises")
class Raises(NumpyFramework):
    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        raise ValueError("<script>alert('a crash')</script>")


@FRAMEWORKS.register("test-killed")
class Killed(NumpyFramework):
    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        print("about to be killed", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("not reached")


@FRAMEWORKS.register("test-sleeps")
class Sleeps(NumpyFramework):
    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        print("sleeping past the limit", flush=True)
        time.sleep(600)
        raise AssertionError("not reached")


@FRAMEWORKS.register("test-eats-memory")
class EatsMemory(NumpyFramework):
    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        hoard = []
        while True:
            hoard.append(b"x" * 2**24)
            time.sleep(0.01)


@FRAMEWORKS.register("test-needs-module")
class NeedsModule(NumpyFramework):
    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        import transect_no_such_module  # type: ignore[import-not-found]

        return transect_no_such_module


@FRAMEWORKS.register("test-broken-environment")
class BrokenEnvironment(NumpyFramework):
    environment = "broken"


class _WrongTrainer(NumpyTrainer):
    def update(self, learning_rate: float) -> None:
        self.flat_gradient *= 1.01
        super().update(learning_rate)


@FRAMEWORKS.register("test-wrong")
class Wrong(NumpyFramework):
    """Scales every gradient by 1 %: fast, and wrong."""

    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        return _WrongTrainer(plan)


@FRAMEWORKS.register("test-kills-its-runner")
class KillsItsRunner(NumpyFramework):
    """Takes the runner down with it, as the kernel's out-of-memory killer may."""

    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
        raise AssertionError("not reached")
