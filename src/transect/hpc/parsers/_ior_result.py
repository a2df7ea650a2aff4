"""The results of one test of IOR as a run: its metrics, and whether they may be believed."""

from __future__ import annotations

from transect.domain.metrics import Direction
from transect.hpc.base import Parameter, Series
from transect.hpc.draft import Draft
from transect.hpc.parsers._ior_tests import Session, Test, contradicted, not_a_number
from transect.hpc.values import number


def parameters_of(session: Session, test: Test) -> dict[str, Parameter]:
    """Return what the head says, and what only the summary knows for certain."""
    out: dict[str, Parameter] = {**session.facts, **test.options}
    for cells in test.summary.values():
        for key, name in (("xsize", "xsize"), ("blksiz", "blksiz"), ("segcnt", "segments")):
            if cells.get(key, "").isdecimal():
                out[name] = int(cells[key][:18])
        for key, name in (("tasks", "tasks"), ("reps", "repetitions"), ("tpn", "clients_per_node")):
            if cells.get(key, "").isdecimal():
                out.setdefault(name, int(cells[key][:18]))
        api = str(out.get("api", ""))
        if cells.get("api") and api != cells["api"]:
            # 3.0 and older: `MPIIO (version=3, subversion=1)`.
            out["api"] = cells["api"]
            if api.startswith(cells["api"]):
                out["apiVersion"] = api[len(cells["api"]) :].strip()
    return out


def add_metrics(draft: Draft, test: Test) -> None:
    """Add the summary of each operation, or its best repetition when there is none."""
    for operation in test.operations():
        cells = test.summary.get(operation, {})
        for which, printed in test.bandwidths(operation).items():
            way = Direction.NEUTRAL if which == "stddev" else None
            registered = "storage_bandwidth" if which in ("max", "mean") else None
            draft.add_metric(f"bandwidth_{which}", printed, "MiB/s", way, registered=registered, phase=operation)
        for which in ("max", "min", "mean"):
            draft.add_metric(f"iops_{which}", cells.get(f"{which}_ops"), "1/s", phase=operation)
        group = test.groups.get(operation)
        # Without a summary one repetition's time is the mean.
        only = group.rows[0][1] if group is not None and group.count == 1 else ""
        draft.add_metric("time_mean", cells.get("mean_s") or only, "s", registered="benchmark_time", phase=operation)


def samples_of(test: Test) -> dict[str, Series]:
    """Return bandwidth and total time of the first repetitions."""
    out = {}
    for operation, group in test.groups.items():
        values = [number(bandwidth) for bandwidth, _, _ in group.rows]
        times = [number(total) for _, total, _ in group.rows]
        out[operation] = Series(unit="MiB/s", values=[v for v in values if v is not None])
        if any(t is not None for t in times):
            kept = [t for t in times if t is not None]
            out[f"{operation}_total_time"] = Series(unit="s", values=kept)
    return out


def judge(draft: Draft, session: Session, test: Test, *, last: bool) -> None:
    """Climb the ladder; `last` tells whether it is the last test of the program."""
    draft.mark_invalid(test.wrong_data)
    if not test.operations():
        if session.form == "csv" and session.version:
            what = "IOR's summaryFormat=CSV wrote its options without separators and no results"
            draft.mark_no_result(what)
        draft.mark_truncated("before the first result")
    elif (missing := _missing(session, test, last)) is not None:
        draft.mark_incomplete(missing)
    if draft.ok:
        draft.mark_invalid(not_a_number(test))
    draft.mark_impossible()
    if draft.ok:
        draft.mark_invalid(contradicted(test, str(session.facts.get("command", ""))))


def _missing(session: Session, test: Test, last: bool) -> str | None:
    """Say what of a test's output is not there, or return None when it is whole."""
    if session.form == "csv":
        return None
    lacking = [op for op in test.groups if op not in test.summary]
    if session.version.startswith("2.") and not test.groups:
        lacking = [op for op in test.summary if op not in test.maxima]  # which come after it
        return f"no line 'Max {lacking[0].title()}'" if lacking else None
    if not lacking:
        return None
    # The summary stands at the very end; without it a later test tells that this one was whole.
    whole = all(op in test.maxima for op in lacking)
    if whole and (not last or session.version.startswith("2.")):
        return None
    if rows_alone(session, test):
        return None
    return f"no summary of {' and '.join(lacking)}"


def rows_alone(session: Session, test: Test) -> bool:
    """Tell whether all that was asked for has its rows, and nothing came after them.

    IO500 starts IOR so that it prints neither `Max Write` nor a summary nor `Finished`. A log that was cut
    right behind its last row looks the same, and has every result too.
    """
    asked, repetitions = session.asked, test.options.get("repetitions")
    if not asked or not isinstance(repetitions, int) or test.summary or test.maxima:
        return False
    groups = [test.groups.get(operation) for operation in asked]
    return all(group is not None and group.count == repetitions for group in groups)
