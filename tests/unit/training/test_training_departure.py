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


def test_a_library_that_aborts_at_exit_costs_no_result(training):
    out, _ = training.train(framework="aborts-at-exit")
    check_files(out)


def test_everything_is_written_before_a_rank_parts(training):
    out, _ = training.train(strategy="aborts-when-it-leaves", expect=-6)
    check_files(out)


def test_a_fault_while_parting_is_told_and_costs_no_result(training):
    out, log = training.train(strategy="raises-when-it-leaves")
    assert "the peer has gone" in log
    check_files(out)


def test_what_a_library_has_printed_in_c_is_not_lost(training):
    out, log = training.train(framework="prints-in-c")
    assert "said by a library in C" in log
    check_files(out)


@pytest.mark.parametrize("strategy", ["mpi-allreduce", "mpi-sendrecv"])
def test_mpi_ranks_end_in_order(training, strategy):
    out, log = training.train(ranks=2, strategy=strategy)
    assert "abort" not in log.lower() and "finalize" not in log.lower()
    check_files(out, ranks=2)
