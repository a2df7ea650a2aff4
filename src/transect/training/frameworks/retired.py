"""Frameworks of published works that no environment installs today: their cells are planned, and skipped with the reason."""

from __future__ import annotations

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS, Framework, ModelPlan, Trainer


class _Retired(Framework):
    environment = "base"

    def supports(self, cell: TrainCell) -> str:
        """Return what it would need; of no cell None."""
        return self.not_installed

    def trainer(self, plan: ModelPlan) -> Trainer:
        """There is none. Raises TypeError."""
        raise TypeError(self.not_installed)

    def libraries(self) -> dict[str, str]:
        """Nothing."""
        return {}


@FRAMEWORKS.register("caffe")
class Caffe(_Retired):
    """Caffe: no environment has it; its cells say what one would need."""

    not_installed = (
        "Caffe's last release is 1.0, of 2017, and it has no wheel (PyPI's caffe is an empty placeholder) and no package in "
        "Debian 12; conda's packages end at Python 3.7, and transect's own code needs a newer one: it would need a build from "
        "source, with Boost.Python, protobuf, glog and HDF5 of that time"
    )


@FRAMEWORKS.register("cntk", "cognitive-toolkit")
class Cntk(_Retired):
    """CNTK: no environment has it; its cells say what one would need."""

    not_installed = (
        "CNTK's last release is 2.7, of 2019, whose wheels on PyPI are for Python 2.7, 3.5 and 3.6: it would need an environment "
        "of such a Python, and transect's own code needs a newer one"
    )
