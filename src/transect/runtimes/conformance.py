"""ONNX's own operator tests under one runtime: what came of each, and what that says together."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.export import ConformanceCell
from transect.domain.errors import BadInput, MissingDependency, Unsupported
from transect.domain.files import write_atomic
from transect.domain.record import Cause, Status
from transect.onnx_models.node_tests import ARCHIVE, EXPECTED, INPUTS, MODEL, OUTPUTS, NodeTest, known_tests, unpack
from transect.onnx_models.results import result
from transect.onnx_models.tensors import DTYPES, NoTensor, read_tensors, tensor_types
from transect.runtimes import RUNTIMES
from transect.runtimes._case_runs import CaseEnd, CaseRun, RunnerFault
from transect.runtimes.options import EQUAL, session_options, thread_variables
from transect.runtimes.programs import RESULT, start_command, write_outputs_header
from transect.runtimes.serving_plans import Case, cases_from, cases_plan

# `wrong`: it ran, and its outputs are others; `failed`: the runtime refused, in its words.
OUTCOMES = ("pass", "wrong", "failed", "unsupported", "crash", "timeout")
# Without a word of the runner for so long, a case hangs: tests take milliseconds, starts seconds.
PATIENCE_S = 120.0
# Beside the record: every test with its whole message, and the runner's output.
VERDICTS, LOG = "verdicts.json", "runner.log"
_WORK = "work"
_MAX_REASON_LENGTH = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What came of one test: `outcome` is one of OUTCOMES, `reason` is empty for a pass."""

    name: str
    opset: str
    outcome: str
    reason: str = ""


def opset_order(opset: str) -> tuple[str, int]:
    """Sort the default domain's versions by number, then those of other domains."""
    domain, _, version = opset.rpartition(" ")
    return domain, int(version)


def chosen_tests(tests: Sequence[NodeTest], only: str, where: str) -> list[NodeTest]:
    """Return the tests whose name matches a pattern. Raises BadInput where there is none."""
    chosen = [test for test in tests if fnmatch.fnmatchcase(test.name, only)]
    if not chosen:
        raise BadInput(
            f"{where}: no test of ONNX is called '{only}'; expected a name or a pattern such as 'test_conv_*'"
        )
    return chosen


def check_runtime(name: str, where: str) -> None:
    """Raise BadInput unless a runtime of that name executes ONNX models."""
    if not RUNTIMES.get(name, where).uses_exporter:
        raise BadInput(f"{where}: runtime '{name}' executes no ONNX models")


def judge(test: NodeTest, end: CaseEnd, folder: Path) -> Verdict:
    """Compare what a case left in `folder`/outputs with what is expected there."""
    outcome, reason = end.status, end.message
    if end.status == "ok":
        outputs, expected = folder / OUTPUTS, folder / EXPECTED
        try:
            reason = difference(outputs, expected, rtol=test.rtol, atol=test.atol) or ""
        except (OSError, ValueError) as error:
            reason = f"outputs cannot be read: {error}"
        outcome = "wrong" if reason else "pass"
    # A runner's message may name files of this very run.
    return Verdict(name=test.name, opset=test.opset, outcome=outcome, reason=reason.replace(str(folder.parent), "…"))


def verdicts_of(
    cell: ConformanceCell,
    tests: Sequence[NodeTest],
    work: Path,
    out: Path,
    python: str,
    *,
    wrap: Sequence[str] = (),
    patience_s: float = PATIENCE_S,
) -> list[Verdict]:
    """Run the tests that are unpacked in `work`; the log goes into `out`. Raises what `CaseRun.run` raises."""
    cases = [
        Case(
            name=test.name,
            model=work / test.name / MODEL,
            inputs=work / test.name / INPUTS,
            outputs=work / test.name / OUTPUTS,
        )
        for test in tests
    ]
    options = session_options(EQUAL, cell.threads, cell.provider, {})
    plan, refused = cases_plan(cases, provider=cell.provider, options=options, out=work)
    # What cannot be asked for has no number: the program sees the others, one behind the other.
    asked = [test for test in tests if test.name not in refused]
    run = CaseRun(
        lambda first: [*wrap, *start_command(cell.runtime, python, cases_from(plan, first))],
        [test.name for test in asked],
        work / RESULT,
        log=out / LOG,
        variables=os.environ | thread_variables(cell.threads),
        patience_s=patience_s,
    )
    ends = {name: CaseEnd(status="unsupported", message=reason) for name, reason in refused.items()}
    for number, (test, end) in enumerate(zip(asked, run.run() if asked else [], strict=True)):
        ends[test.name] = end
        try:
            if end.status == "ok":
                write_outputs_header(plan, number, end.outputs)
        except BadInput as error:
            ends[test.name] = CaseEnd(status="failed", message=str(error))
    return [judge(test, ends[test.name], work / test.name) for test in tests]


def conformance_result(
    cell: ConformanceCell, data: Path, out: Path, python: str, *, only: str = "*", wrap: Sequence[str] = ()
) -> dict[str, Any]:
    """Run those tests of `data` whose name matches `only`; return the cell's result.

    Raises BadInput when the archive cannot be used or no test has such a name, and
    MissingDependency when the runner cannot be started.
    """
    work = (out / _WORK).resolve()
    shutil.rmtree(work, ignore_errors=True)
    try:
        every = known_tests(data / ARCHIVE)
        tests = chosen_tests(every, only, "only")
        unpack(data / ARCHIVE, tests, work)
        verdicts = verdicts_of(cell, tests, work, out.resolve(), python, wrap=wrap)
    except Unsupported as reason:
        return result(skipped=str(reason))
    except RunnerFault as fault:
        return result(status=Status.FAILED, cause=Cause.CRASH, message=str(fault))
    except FileNotFoundError as error:
        raise MissingDependency(f"{error.filename}: no such program") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    write_atomic(out / VERDICTS, json.dumps([asdict(verdict) for verdict in verdicts], indent=1) + "\n")
    return _summary(verdicts, only, len(every))


def _summary(verdicts: Sequence[Verdict], only: str, known: int) -> dict[str, Any]:
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    rows = sorted({verdict.opset for verdict in verdicts}, key=opset_order)
    return result(
        metrics=[
            {"name": "conformance_pass_rate", "value": outcomes["pass"] / len(verdicts)},
            *({"name": "conformance_tests", "value": outcomes[name], "label": name} for name in OUTCOMES),
        ],
        details={
            "only": only,
            "tests": len(verdicts),
            "tests_known": known,
            "opsets": {opset: _row(verdicts, opset) for opset in rows},
            "not_passed": _not_passed(verdicts),
        },
    )


def _row(verdicts: Iterable[Verdict], opset: str) -> dict[str, int]:
    """Count the outcomes of an opset's tests; those that none has are left out."""
    outcomes = Counter(verdict.outcome for verdict in verdicts if verdict.opset == opset)
    return {name: outcomes[name] for name in OUTCOMES if outcomes[name]}


def _not_passed(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.outcome != "pass":
            reasons[verdict.outcome, own_words(verdict.reason)[:_MAX_REASON_LENGTH]].append(verdict.name)
    found = [{"outcome": outcome, "reason": reason, "tests": names} for (outcome, reason), names in reasons.items()]
    return sorted(found, key=lambda group: (OUTCOMES.index(str(group["outcome"])), -len(group["tests"])))


# onnx.backend.test.runner: two steps of a bfloat16, whose mantissa has seven bits.
BFLOAT16_RTOL = 2.0**-6


def difference(given: Path, expected: Path, *, rtol: float, atol: float) -> str | None:
    """Return what differs in the first output that does, or None. Both are folders with a header.

    Names, shapes and types are equal; floating-point numbers lie within `atol + rtol |expected|`,
    a NaN where one is expected; everything else is exactly the same. Raises BadInput naming a file
    that is missing or is not what its header says.
    """
    types, wanted = tensor_types(given), tensor_types(expected)
    if list(types) != list(wanted):
        return f"outputs are {', '.join(types) or 'none'}, expected {', '.join(wanted)}"
    for name, dtype in wanted.items():
        if types[name] != dtype:
            return f"output '{name}' is {types[name]}, expected {dtype}"
    # The driver's environment has no bfloat16.
    got, right = read_tensors(given, bits=True), read_tensors(expected, bits=True)
    for name, dtype in wanted.items():
        if wrong := _wrong(got[name], right[name], dtype, rtol, atol):
            return f"output '{name}' {wrong}"
    return None


def _wrong(
    given: np.ndarray | NoTensor, expected: np.ndarray | NoTensor, dtype: str, rtol: float, atol: float
) -> str | None:
    assert dtype in DTYPES
    assert not isinstance(given, NoTensor)
    assert not isinstance(expected, NoTensor)
    if given.shape != expected.shape:
        return f"has shape {list(given.shape)}, expected {list(expected.shape)}"
    got, right = _numbers(given, dtype), _numbers(expected, dtype)
    if right.dtype.kind == "f":
        if dtype == "bfloat16":
            rtol = max(rtol, BFLOAT16_RTOL)
        same = np.isclose(got, right, rtol=rtol, atol=atol, equal_nan=True)
    else:
        same = np.asarray(got == right)
    if same.all():
        return None
    wrong = np.flatnonzero(~same.reshape(-1))
    first = int(wrong[0])
    return (
        f"differs in {len(wrong)} of {same.size}, first at {first}: {_shown(got, first)}, "
        f"expected {_shown(right, first)}"
    )


def _numbers(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return what is compared: floating-point numbers as float64, which holds each exactly."""
    if dtype == "bfloat16":
        # The upper half of a float32.
        bits = array.astype(np.uint32) << 16
        return bits.view(np.float32).astype(np.float64)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _shown(array: np.ndarray, place: int) -> str:
    value: Any = array.reshape(-1)[place]
    if isinstance(value, str):
        return repr(value)
    return f"{value:.7g}" if array.dtype.kind == "f" else str(value)


# What languages and interfaces put before the message itself.
_BEFORE = re.compile(r"^.*?(?:\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : |ERROR_CODE: \d+, ERROR_MESSAGE: )", re.DOTALL)
_MODEL = re.compile(r"^\S+\.onnx: ")
_LOADING = re.compile(r"^.*?Load model from \S+ failed: ?", re.DOTALL)
# The place in its sources: file, line, and the function with its types.
_PLACE = re.compile(
    r"/\S+\.(?:cc|cpp|cu|h):\d+ [^(]*\((?:[^()]|\([^()]*\))*\)(?: const)?(?:::<lambda\([^)]*\)>)?"
    r"(?: \[with [^\]]*\])? ?"
)
# An invalid node is written out with all its types before the message tells what is wrong with it.
_NODE = re.compile(r"In Node, .*?, Error ")


def own_words(message: str) -> str:
    """Return the message's own words, on one line.

    >>> own_words("Fail: [ONNXRuntimeError] : 1 : FAIL : Load model from /a/b.onnx failed:no such operator")
    'no such operator'
    """
    text = _BEFORE.sub("", " ".join(message.split()))
    text = _LOADING.sub("", _MODEL.sub("", text))
    return _NODE.sub("", _PLACE.sub("", text)).strip() or "no reason was given"
