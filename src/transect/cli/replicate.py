"""`transect replicate`: a published work's claims, decided by what this machine can run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transect.cli.compare import NOTHING
from transect.cli.output import print_lines, print_table
from transect.domain.errors import BadInput, Complaints, Interruption
from transect.domain.terminal import say

if TYPE_CHECKING:
    from transect.domain.claims import Work
    from transect.engine.decidable import PlannedStudy, Planner
    from transect.report.replication.held import Replication

# As a shell tells of a command that a person stopped.
_STOPPED = 130


def replicate(
    work: Annotated[str | None, typer.Argument(help="a work's name or file; without it: the index alone")] = None,
    only_list: Annotated[
        bool, typer.Option("--list", help="only say which claims this machine can decide; without WORK of all")
    ] = False,
    others: Annotated[
        list[Path] | None,
        typer.Option("--with", help="results of another machine, to stand beside; may be given several times"),
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="run nothing: decide by the results that are there")] = False,
    system: Annotated[str, typer.Option(help="a system's name or file")] = "laptop",
    results: Annotated[Path, typer.Option(help="folder of all results")] = Path("results"),
) -> None:
    """Replicate a published work: run what this machine can of the studies that measure its claims, and decide each
    claim by the rule that its file fixed before.

    Writes replication.html, replication.json and badge.svg below RESULTS/replications/WORK, and an index over all works there;
    without WORK the index alone. It is a replication: our own code, not the authors'. On a cluster run the studies
    with `transect run --profile`, then this with --no-run. Exit code: 0 written, 1 written, but a study could not be
    run to its end, 5 nothing could be decided, 2 a work, folder or rule cannot be used: what lay there stays.
    Examples: transect replicate --list; transect replicate my-work.yaml --with results-of-a-friend
    """
    from transect.engine.replications import write_index

    if only_list:
        if others or no_run:
            raise BadInput("--list: runs and writes nothing: expected neither --with nor --no-run")
        _print_list(work, system, results)
        return
    if work is None:
        if others or no_run:
            raise BadInput("replicate: expected the name of a work; transect replicate --list has all")
        file, damaged = write_index(results)
        say(*damaged)
        print_lines(str(file))
        return
    code = _replicate(work, system, results, others or [], run=not no_run)
    if code:
        raise typer.Exit(code)


def _load(given: str, system: str, results: Path) -> tuple[str, Path, Work, Planner]:
    """Return a work by its name or file, checked against what the stages know, and what plans its studies."""
    from transect.domain.claims import Work
    from transect.domain.strict_yaml import load_model
    from transect.engine.decidable import planner
    from transect.planning.claims import check_measured, find_work
    from transect.planning.stage import STAGES

    name, file = find_work(given)
    if name.startswith("."):
        raise BadInput(f"{file}: its name is that of a folder of pages: expected one that begins with no dot")
    found = load_model(file, Work)
    plan = planner(system, results, file)
    wanted = [(claim, measured) for claim in found.claims for measured in claim.measured]
    if any(measured.stage not in STAGES for _, measured in wanted):
        for study in found.studies:
            plan(study)  # it may bring the plug-in that has the stage
    for claim, measured in wanted:
        check_measured(claim, measured, f"{file}: claim {claim.key}")
    return name, file, found, plan


def _replicate(given: str, system: str, results: Path, others: Sequence[Path], *, run: bool) -> int:
    from transect.engine.replications import (
        check_place,
        page_of_work,
        refuse_edited,
        replication,
        unfixed,
        write_replication,
    )

    name, file, work, plan = _load(given, system, results)
    check_place(name, work, results)
    if run:
        # Before hours of running: folders that cannot be used, and rules that were edited since.
        refuse_edited(replication(name, work, results, others=others), file, results)
    refused, failed = _run_all(plan, work, system, results) if run else ({}, {})
    usual = {"--system": (system, "laptop"), "--results": (str(results), "results")}
    words = [word for option, (asked, default) in usual.items() if asked != default for word in (option, asked)]
    again = shlex.join([given, *words])
    made = replication(name, work, results, others=others, troubles=(refused | failed).items(), again=again)
    refuse_edited(made, file, results)
    if not made.runs and (there := page_of_work(name, results)).exists():
        say(*(f"{study}: {why}" for study, why in made.troubles), f"{there} stays as it was: no results can be read")
        return NOTHING
    page = write_replication(made, results)
    _print(made, page)
    if late := unfixed(made):
        say(
            f"rules noted after the runs that they would judge decide nothing: {', '.join(claim.key for claim in late)}"
        )
    say(*(f"{study}: {why}" for study, why in made.troubles))
    return 1 if failed else 0 if made.any_decided else NOTHING


def _print(made: Replication, page: Path) -> None:
    rows = [(held.claim.key, str(held.decided.verdict), held.decided.reason) for held in made.claims]
    print_table(("claim", "verdict", "because"), rows)
    print_lines(f"{made.work.short}: {made.said}", str(page))


def _run_all(plan: Planner, work: Work, system: str, results: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Run one study after another; return which cannot run here and which failed, each with why."""
    from transect.engine.decidable import to_run
    from transect.engine.plan_files import check_origin, fix_rules

    refused, failed = {}, {}
    for name, why in to_run(work, plan).items():
        study = plan(name)
        if why:
            refused[name] = why
            continue
        assert study.plan is not None
        check_origin(study.plan.paths, study.plan.file)
        # Before its cells run, as the rules of a study's own works are.
        fix_rules(study.plan.paths, [work])
        if code := _run(study, system, results):
            failed[name] = f"its run ended with exit code {code}: its own messages say why"
    return refused, failed


def _run(study: PlannedStudy, system: str, results: Path) -> int:
    """Run a study as `transect run` does, in a process of its own: that becomes Snakemake."""
    words = ["run", study.given, "--system", system, "--results", str(results)]
    say(f"transect {shlex.join(words)}")
    # It becomes the workflow, which ends its cells when it is told to: whoever stops us stops it, and waits for it.
    child = subprocess.Popen([sys.executable, "-P", "-m", "transect", *words])
    told: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        told.append(number)
        # A terminal tells all of its processes itself.
        if number != signal.SIGINT or not os.isatty(0):
            child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if told or code in (_STOPPED, -signal.SIGINT, -signal.SIGTERM):
        raise Interruption(128 + told[0] if told else _STOPPED)
    return code


def _print_list(given: str | None, system: str, results: Path) -> None:
    """Say which claims this machine can decide, by the plans of their studies."""
    from transect.planning.study import names_of

    names = [given] if given is not None else [*names_of("work")]
    if not names:
        print_lines("no works: expected files config/claims/NAME.yaml")
        return
    rows: list[tuple[str, ...]] = []
    broken = Complaints()
    for name in names:
        with broken.noted():
            rows += _chances(name, system, results)
    if not rows:
        broken.end()
    columns = ("work", "claim", "kind", "here", "by study", "its last run", "why not")
    print_table(columns, rows)
    able = sum(row[3] == "can be decided here" for row in rows)
    print_lines(f"{able} of {len(rows)} claims can be decided here")
    broken.end()


def _chances(given: str, system: str, results: Path) -> Iterator[tuple[str, ...]]:
    from transect.engine.decidable import chances

    name, _, work, plan = _load(given, system, results)
    for chance in chances(work, plan):
        took = _took(results, chance.study) if chance.study else ""
        yield name, chance.claim.key, str(chance.claim.kind), chance.verdict, chance.study, took, chance.why


def _took(results: Path, study: str) -> str:
    """Say how long a study's cells took here; that nobody knows where it has not run."""
    from transect.analysis.load import load_records
    from transect.report.replication.held import minutes_of

    folder = results / study
    records = load_records(folder).records if folder.is_dir() else []
    return f"{minutes_of(records):.0f} minutes" if records else "not yet"
