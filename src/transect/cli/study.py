"""Commands on a study: what it would run, why, and running chosen cells of it."""

from __future__ import annotations

import fnmatch
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from transect.cli.output import Json, print_lines, print_table
from transect.domain.errors import BadInput, Complaints, MissingDependency
from transect.domain.until import MIN_RUNS

StudyName = Annotated[str, typer.Argument(help="a study's name or file")]
SystemName = Annotated[str, typer.Option(help="a system's name or file")]
Results = Annotated[Path, typer.Option(help="folder of all results")]


def plan_of(study: str, system: str, results: Path = Path("results")) -> Any:
    """Plan a study on a system, each by its name or file. Raises BadInput."""
    from transect.planning.plan import make_plan
    from transect.planning.study import find_study, find_system

    return make_plan(find_study(study), find_system(system), results)


def _chosen(plan: Any, patterns: Iterable[str]) -> list[Any]:
    """Return the cells whose id or STAGE/ID a pattern matches; BadInput names one without any."""
    chosen: dict[tuple[str, str], Any] = {}
    for pattern in patterns:
        matching = [
            p
            for p in plan
            if any(
                name == pattern or fnmatch.fnmatchcase(name, pattern)
                for name in (p.id, p.id.split("~")[0], f"{p.cell.stage}/{p.id}", p.cell.stage)
            )
        ]
        if not matching:
            raise BadInput(
                f"{plan.file}: no cell is called '{pattern}'; expected an id, a stage, or a "
                "pattern such as 'train/iris-*'; `transect check` lists the cells"
            )
        chosen |= {p.key: p for p in matching}
    return list(chosen.values())


def check(study: StudyName, system: SystemName = "laptop", as_json: Json = False) -> None:
    """Validate a study; print its cells, why some would be skipped, what is made up for want of a file, what a larger machine would add.

    Shows the same messages as a run. Exit code 2 when the study cannot be used, 1 when nothing of one of its grids
    would run here (on a cluster 0: its nodes are asked when they run it).
    Example: transect check config/studies/quick.yaml
    """
    from transect.engine.questions import check_questions
    from transect.planning.blocks import make_blocks
    from transect.planning.larger import additions
    from transect.planning.skips import empty_grids, skips_of
    from transect.planning.stage import STAGES
    from transect.planning.study import find_study, read_study

    complaints, plan = Complaints(), None
    with complaints.noted():
        plan = plan_of(study, system)
    with complaints.noted():
        file = find_study(study)
        check_questions(read_study(file, complaints)[0], file)
    complaints.end()
    assert plan is not None
    # On a cluster: what no node can hold is refused here too.
    blocks = make_blocks(plan)
    skips = skips_of(plan)
    empty = empty_grids(plan, skips)
    larger = list(additions(plan.file, plan.system))
    # Of a cluster's nodes this machine does not know what they lack.
    end = int(bool(empty) and plan.system.scheduler == "none")
    rows = [
        {"stage": p.cell.stage, "cell": p.id, "environment": p.environment or "driver", "skip": skips[p.key]}
        for p in plan
    ]
    made_up = {p.id: told for p in plan if (told := STAGES.get(p.cell.stage).made_up(p.spec))}
    if as_json:
        more = [asdict(addition) for addition in larger]
        print(
            json.dumps(
                {"study": plan.study.name, "cells": rows, "empty_grids": empty, "larger": more, "made_up": made_up},
                indent=1,
            )
        )
        raise typer.Exit(end)
    print_table(
        ("stage", "cell", "environment", "skip reason"), [[text or "" for text in row.values()] for row in rows]
    )
    skipped = sum(row["skip"] is not None for row in rows)
    print_lines(f"{plan.file}: valid, {len(rows)} cells, {skipped} of them would be skipped")
    print_lines(*(f"{cell}: {told}" for cell, told in made_up.items()))
    if asked := sum(pair.asked for pair in plan.analysis_plan.pairs):
        print_lines(f"{asked} pairs are to be decided: measured in turn, and corrected for each other")
    if few := sum(not pair.asked and plan.study.asks(pair.rules) for pair in plan.analysis_plan.pairs):
        print_lines(
            f"{few} pairs that its questions ask for have fewer than {MIN_RUNS} repeats a side: nothing is sure of them, "
            "nor measured in turn"
        )
    if plan.left_out:
        print_lines(f"{plan.left_out} more cells would need a larger system: where_it_fits leaves them out")
    print_lines(*(f"with {addition}" for addition in larger))
    if plan.system.scheduler != "none":
        jobs = [block for block in blocks if not block.shape.local]
        minutes = sum(block.minutes * block.shape.nodes for block in jobs)
        print_lines(f"{len(jobs)} jobs, which ask for {minutes / 60:.1f} node-hours at most")
    for key, reasons in empty.items():
        print_lines(f"{plan.file}: {key}: no cell of it would run: {'; '.join(reasons)}")
    raise typer.Exit(end)


def why(
    study: StudyName,
    cells: Annotated[list[str] | None, typer.Argument(help="ids, stages, or patterns such as 'train/iris-*'")] = None,
    system: SystemName = "laptop",
    results: Results = Path("results"),
    as_json: Json = False,
) -> None:
    """Say which cells would run again, and why: parameter, source file, environment, input, limit, repeat_until, missing,
    damaged.

    Failed records are kept as long as nothing changes: `transect retry` runs them again.
    Example: transect why quick 'train/digits-*'
    """
    from transect.engine.plan_files import check_origin
    from transect.engine.staleness import Staleness

    plan = plan_of(study, system, results)
    check_origin(plan.paths, plan.file)
    stale = Staleness(plan)
    asked = _chosen(plan, cells) if cells else list(plan)
    stale_cells: list[dict[str, Any]] = [
        {"stage": p.cell.stage, "cell": p.id, "reasons": [{"kind": r.kind, "text": r.text} for r in reasons]}
        for p in asked
        if (reasons := stale.of(p))
    ]
    if as_json:
        print(json.dumps({"study": plan.study.name, "asked": len(asked), "cells": stale_cells}, indent=1))
        return
    if stale_cells:
        rows = [
            (row["stage"], row["cell"], [f"{reason['kind']}: {reason['text']}" for reason in row["reasons"]])
            for row in stale_cells
        ]
        print_table(("stage", "cell", "would run again because of"), rows)
    stages = Counter(row["stage"] for row in stale_cells)
    counts = ", ".join(f"{number} {stage}" for stage, number in stages.items())
    those = f": {counts}" if stale_cells else ""
    print_lines(f"{len(stale_cells)} of {len(asked)} cells would run again{those}")


def run(
    study: StudyName,
    cells: Annotated[list[str] | None, typer.Argument(help="ids, stages, or patterns such as 'train/iris-*'")] = None,
    system: SystemName = "laptop",
    results: Results = Path("results"),
    profile: Annotated[str, typer.Option(help="of a whole study: a name in profiles/ or a folder")] = "local",
    cores: Annotated[str, typer.Option(help="of a whole study: a number [default: the profile's]")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="of a whole study: only say what would run")] = False,
    strict: Annotated[bool, typer.Option(help="of a whole study: exit code 1 when a cell failed")] = False,
    force: Annotated[bool, typer.Option(help="of chosen cells: run them although they are up to date")] = False,
) -> None:
    """Run a whole study with Snakemake, or chosen cells of it and what they take that is not there.

    Only what has changed runs again. The report is made at the end, of all records that the study has by then. Of
    chosen cells, which run here and without Snakemake, one that failed gives exit code 1.

    Examples: transect run quick; transect run my/study.yaml --system mine --profile slurm;
    transect run quick 'train/iris-mlp.torch.single*'
    """
    if not cells:
        if force:
            raise BadInput("--force: expected the cells that are to run again")
        run_workflow(study, system, results, profile, cores, dry_run=dry_run, strict=strict)
    if dry_run or strict or cores or profile != "local":
        raise BadInput(f"{', '.join(cells)}: --profile, --cores, --dry-run and --strict are of whole studies")
    plan = plan_of(study, system, results)
    run_cells(plan, _chosen(plan, cells), force=force)


def run_workflow(
    study: str, system: str, results: Path, profile: str, cores: str, *, dry_run: bool, strict: bool
) -> NoReturn:
    """Become Snakemake, which runs the study by the installed workflow."""
    from transect.domain.paths import ROOT

    asked = {"study": study, "system": system, "results": str(results), "strict": str(strict).lower()}
    # A folder of that name here goes before ours, and Snakemake's own places behind them.
    folders = (folder for folder in (Path("profiles", profile), ROOT / "profiles" / profile) if folder.is_dir())
    words = ["--snakefile", str(ROOT / "workflow" / "Snakefile"), "--profile", str(next(folders, profile))]
    words += ["--cores", cores] if cores else []
    words += ["--dry-run"] if dry_run else []
    words += ["--config", *(f"{key}={_as_text(value)}" for key, value in asked.items())]
    # -P: a file of the folder that it runs in, such as statistics.py, is no module of Python's.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "snakemake", *words])  # noqa: S606 no shell is meant


def _as_text(value: str) -> str:
    """Return a value as Snakemake takes it for text: it reads `2024` as a number, and nothing behind ` #`.

    Marks of quotation at the very beginning or end it takes away.
    """
    from yaml import BaseLoader, YAMLError, load

    for read in (int, float, lambda text: load(text.strip("'\""), Loader=BaseLoader)):  # noqa: S506 it makes texts alone
        try:
            if read(value) != value:
                return f" {json.dumps(value, ensure_ascii=False)} "
        except (ValueError, YAMLError):
            continue
    return value


def check_here(system: Any) -> None:
    """Raise MissingDependency where a system's scheduler has to give nodes first."""
    if system.scheduler != "none" and "SLURM_JOB_ID" not in os.environ:
        raise MissingDependency(
            f"system '{system.name}' has a scheduler: run this inside an allocation (salloc), or the whole study "
            "with snakemake"
        )


def run_cells(plan: Any, cells: list[Any], *, force: bool) -> None:
    """Run cells of a plan here, and say how many ended how; exit code 1 if one failed."""
    from transect.domain.paths import PYTHONPATH
    from transect.engine.run_chosen import run_chosen

    check_here(plan.system)
    os.environ["PYTHONPATH"] = PYTHONPATH
    counts = run_chosen(plan, cells, force=force)
    print_lines(", ".join(f"{number} {status}" for status, number in counts.items()))
    if counts.get("failed"):
        raise typer.Exit(1)
