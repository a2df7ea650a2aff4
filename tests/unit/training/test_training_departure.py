"""A rank's result is on disk before its libraries can take it along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rank_runs import Training, arrays

PLUGINS = '''
import atexit, ctypes, os

from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.numpy_ import NumpyFramework
from transect.training.strategies import STRATEGIES
from transect.training.strategies.single import Single


@FRAMEWORKS.register("aborts-at-exit")
class AbortsAtExit(NumpyFramework):
    """What gloo's threads do when the C++ runtime takes them apart."""

    def trainer(self, plan):
        atexit.register(os.abort)
        return super().trainer(plan)


@FRAMEWORKS.register("prints-in-c")
class PrintsInC(NumpyFramework):
    def trainer(self, plan):
        ctypes.CDLL(None).printf(b"said by a library in C")
        return super().trainer(plan)


@STRATEGIES.register("aborts-when-it-leaves")
class Aborts(Single):
    def leave(self):
        os.abort()


@STRATEGIES.register("raises-when-it-leaves")
class Raises(Single):
    def leave(self):
        raise ConnectionError("the peer has gone")
'''


@pytest.fixture(scope="module")
def training(base_python, tmp_path_factory) -> Training:
    made = Training(python=base_python, folder=tmp_path_factory.mktemp("training"), plugins=PLUGINS)
    made.prepare()
    return made


def check_files(out: Path, ranks: int = 1) -> None:
    expected = {f"rank-{rank:03d}.{kind}" for rank in range(ranks) for kind in ("npz", "json")}
    files = {path.name for path in out.iterdir()}
    expected |= {f"rank-{rank:03d}.place.json" for rank in range(ranks)}
    assert files == expected | {"weights.npz", "checked.npz", "spec.json", "log"}
    for rank in range(ranks):
        facts = json.loads((out / f"rank-{rank:03d}.json").read_text())
        assert len(arrays(out / f"rank-{rank:03d}.npz")["loss"]) == 2 * facts["steps_per_epoch"]


@pytest.mark.parametrize(
    ("axes", "code", "message"),
    [
        ({"framework": "aborts-at-exit"}, 0, ""),
        ({"framework": "prints-in-c"}, 0, "said by a library in C"),
        ({"strategy": "aborts-when-it-leaves"}, -6, ""),
        ({"strategy": "raises-when-it-leaves"}, 0, "the peer has gone"),
    ],
)
def test_everything_is_written_before_a_rank_parts_and_nothing_that_was_said_is_lost(training, axes, code, message):
    out, log = training.train(expect=code, **axes)
    assert message in log
    check_files(out)


@pytest.mark.parametrize("strategy", ["mpi-allreduce", "mpi-sendrecv"])
def test_mpi_ranks_end_in_order(training, strategy):
    out, log = training.train(ranks=2, strategy=strategy)
    assert "abort" not in log.lower() and "finalize" not in log.lower()
    check_files(out, ranks=2)
