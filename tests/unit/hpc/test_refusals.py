"""What refuses a run: the log itself, never a guess. For each rule a log that is refused, and one that is not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from io500_logs import bash
from learning_logs import T0, mllog, mlperf, only_run
from log_scan import scan
from storage_logs import LOGS

from transect.domain.errors import BadInput
from transect.hpc.ingest import ingest
from transect.hpc.parsers._ior_tests import asked_for
from transect.hpc.refusal import Refusal, checked_limits, refusal_of

# IO500's way to start IOR: its rows alone, behind a command line that says what was asked for.
ROWS_ALONE = LOGS["ior 3.3.0"].split("Max Write")[0]


def product_total(text: str) -> str:
    """Give the score as the rule of 2017 did."""
    found = re.search(r"Bandwidth (\S+) GB/s : IOPS (\S+) kiops : TOTAL", text)
    assert found is not None
    total = float(found[1]) * float(found[2])
    return re.sub(r"TOTAL \S+", f"TOTAL {total:.6g}", text)


def negated(value: float) -> str:
    return mlperf("cosmoflow", values=(-0.3, value)) + mllog("eval_target", T0 + 10, 0.124)


def targeted(value: float) -> str:
    text = mlperf(values=(0.5, value))
    return text.replace(mllog("run_start", T0), mllog("run_start", T0) + mllog("eval_target", T0 + 1, 0.749))


OLD = (
    ":::MLPv0.5.0 resnet 1500000000.0 (a.py:1) run_start\n"
    ':::MLPv0.5.0 resnet 1500000900.0 (a.py:1) eval_accuracy: {"epoch": 9, "value": 0.7501}\n'
    ':::MLPv0.5.0 resnet 1500001000.0 (a.py:2) run_stop: {"success": SAID}\n'
)


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        (product_total(bash()), re.sub(r"TOTAL \S+", "TOTAL 7777.7", bash()), "the log prints the total"),
        (ROWS_ALONE, ROWS_ALONE.replace("repetitions         : 3", "repetitions         : 4"), "no summary"),
        (ROWS_ALONE, ROWS_ALONE[: ROWS_ALONE.index("\nread ") + 1].replace("ior -i", "ior -r -w -i"), "no summary"),
        (OLD.replace("SAID", '"true"'), OLD.replace("SAID", '"false"'), "'aborted'"),
        (OLD.replace("SAID", "true"), OLD.replace("SAID", "false"), "'aborted'"),
        (negated(-0.1239), mlperf(values=(0.3, -0.1)), "is negative"),
        (targeted(0.74899995), targeted(0.7489), "misses the target"),
        (
            mlperf() + mllog("init_start", T0 + 5200) + mllog("run_stop", T0 + 5124),
            mllog("init_start", T0) + mllog("run_stop", T0 + 9),
            "without run_start",
        ),
    ],
    ids=["product", "repetitions", "flags", "word", "boolean", "negated", "rounding", "run_stop twice"],
)
def test_a_log_refutes_itself_or_is_believed(right: str, wrong: str, why: str) -> None:
    (run,) = scan(right)
    assert (run.status, run.reason) == ("ok", "")
    refused = scan(wrong)[-1]
    assert refused.status in ("invalid", "truncated", "failed") and why in refused.reason


def test_what_is_believed_against_a_guess_says_so() -> None:
    assert any("its rows alone" in suspicion for suspicion in scan(ROWS_ALONE)[0].suspicions)
    assert any("negated error" in suspicion for suspicion in only_run(negated(-0.1239)).suspicions)
    product = scan(product_total(bash()))[0]
    score = product.metric("score")
    assert any("2017" in warning for warning in product.warnings)
    assert score is not None and score.normalised is None, "it would lead the table of roots"
    assert scan(bash())[0].suspicions == []


@pytest.fixture
def suspicious(tmp_path: Path) -> Path:
    path = tmp_path / "out.log"
    path.write_text(LOGS["mdtest 3.3.0"].replace("\r", ""))
    path.write_text(re.sub(r"(File stat +:).*", r"\1 9e13 9e13 9e13 0.000", path.read_text()))
    return path


def test_a_guessed_limit_refuses_only_where_it_is_asked_to(suspicious: Path) -> None:
    (run,) = ingest([suspicious])
    assert run.status == "ok" and "9e13" in run.suspicions[0]
    (strict,) = ingest([suspicious], refusal=Refusal(strict=True))
    assert strict.status == "invalid" and "strict" in strict.reason
    limits = checked_limits({"metadata_rate": [None, 1e12]}, "x")
    (limited,) = ingest([suspicious], refusal=Refusal(limits=limits))
    assert limited.status == "invalid" and "the given limits" in limited.reason
    wide = checked_limits({"metadata_rate": [0, 1e15]}, "x")
    (kept,) = ingest([suspicious], refusal=Refusal(limits=wide))
    assert kept.status == "ok", "limits do not make what is suspicious wrong"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metadata_rat": [0, 1]}, "metadata_rate"),
        ({"metadata_rate": [1]}, "[lowest, highest]"),
        ({"metadata_rate": [2, 1]}, "above the highest"),
        ({"metadata_rate": [True, 1]}, "two numbers or null"),
        ([1], "expected 'strict'"),
    ],
)
def test_limits_that_cannot_be_used_are_refused(given: object, message: str, tmp_path: Path) -> None:
    file = tmp_path / "limits.json"
    file.write_text(json.dumps(given))
    with pytest.raises(BadInput, match=re.escape(message)):
        refusal_of(str(file))


def test_a_file_of_limits_that_is_none(tmp_path: Path) -> None:
    for text in (None, "{", "\xff"):
        path = tmp_path / "x.json"
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_bytes(text.encode("latin-1"))
        with pytest.raises(BadInput, match="--limits"):
            refusal_of(str(path))


STARTED = "+ srun --mpi=pmix apptainer exec x.sif /workspace/hpl-mxp.sh --n 680,736\n"


def test_a_job_that_died_before_its_first_line_is_named_and_failed() -> None:
    (run,) = scan(f"x\n{STARTED}--n: Value 680,736 not in range [0 - 1]\n+ echo Done\nDone\n")
    assert (run.benchmark, run.status, run.line) == ("hpl-mxp", "failed", 2)
    assert "not in range" in run.reason and not run.metrics
    (silent,) = scan(f"{STARTED}Done\n")
    assert silent.status == "truncated" and "Done" in silent.reason
    (stranger,) = scan("+ srun ./my_program hpl.txt\nerror: x\n")
    assert stranger.benchmark == "unknown"


def test_a_launch_that_worked_leaves_no_run_of_its_own() -> None:
    text = "+ mpirun -n 4 ./ior -w\nwarning: invalid affinity\n" + LOGS["ior 3.3.0"]
    assert [(run.benchmark, run.status) for run in scan(text)] == [("ior", "ok")]


@pytest.mark.parametrize(
    ("flags", "asked"),
    [
        ("-w -k", ["write"]),
        ("-wk", ["write"]),
        ("--readFile", ["read"]),
        ("-R", ["read"]),
        ("-O writeFile=1,keepFile=1", ["write"]),
        ("-O readFile=0", ["write", "read"]),
        ("-wr", ["write", "read"]),
        ("-o /x -w", ["write"]),
        ("-a POSIX", ["write", "read"]),
        ("-t 1m -rp", ["read"]),
        ("-s 8 -m", ["write", "read"]),
    ],
)
def test_what_iors_command_line_asks_for(flags: str, asked: list[str]) -> None:
    assert asked_for(f"/opt/ior {flags}") == asked
