"""Writes a made-up study whose every name and text would run if it were not escaped: SYNTHETIC records."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from make_framework_records import train_record
from make_records import make_record

from factories import bench_cell, ingest_record, log_metric, log_run, train_cell, write_records
from transect.domain.cell import Cell
from transect.domain.record import Cause, LogPoint, MetricValue, Record, Samples, Status

# Each sets `HACKED` to where it ran: markup, attributes, links, templates, Vega expressions, CSS, data URLs.
PAYLOADS = (
    "<script>HACKED='{}'</script>",
    "</script><script>HACKED='{}'</script>",
    '"><img src=x onerror="HACKED=\'{}\'">',
    "'><svg onload=HACKED='{}'>",
    "javascript:HACKED='{}'",
    "datum.x||(HACKED='{}')",
    "{{{{constructor.constructor(\"HACKED='{}'\")()}}}}",
    "${{HACKED='{}'}}",
    "</style><style onload=HACKED='{}'>@import 'http://transect.invalid/{}';",
    "</textarea></title><iframe srcdoc=\"<script>parent.HACKED='{}'</script>\">",
    "<a href=\"javascript:HACKED='{}'\" autofocus onfocus=HACKED='{}'>click</a>",
    "`HACKED='{}'` &lt;b&gt; \u2028 \u202e ]]> <!--",
)


def payload(number: int, where: str) -> str:
    """Return one of the texts, which names where it stands."""
    return PAYLOADS[number % len(PAYLOADS)].replace("{}", where)


TITLE = "".join(payload(number, "title") for number in range(len(PAYLOADS)))
QUESTIONS = [payload(number, "question") for number in range(len(PAYLOADS))]


def _renamed(record: Record, number: int, **changes: Any) -> Record:
    """Put a text where a name stood, and in everything that a record says in words."""
    axes = {**record.cell.axes(), **changes}
    cell = Cell.of(**axes)
    facts = {
        "host": payload(number, "host"),
        "cpu_model": payload(number + 1, "cpu"),
        "cores": 4,
        "kernel": payload(number + 2, "kernel"),
        "git": {"commit": payload(number, "commit")},
        "libraries": {payload(number, "library"): payload(number + 1, "version")},
        "variables": {payload(number, "variable"): payload(number + 3, "value")},
        "environment": {"name": payload(number, "environment"), "lock_hash": "0"},
    }
    return record.model_copy(update={"cell": cell, "cell_id": cell.id, "provenance": facts})


def _records() -> list[Record]:
    rng, records = random.Random(11), []
    for number in range(len(PAYLOADS)):
        for ranks in (1, 2):
            for repeat in range(3):
                strategy = "single" if ranks == 1 else "mpi-allreduce"
                made = train_record("torch", strategy, ranks, repeat, noise=1 + rng.gauss(0, 0.01))
                loss = [1.0 / (1 + step) for step in range(20)]
                made = made.model_copy(update={"samples": {"loss": Samples(unit="1", values=loss, count=20)}})
                records.append(
                    _renamed(
                        made,
                        number,
                        repeat=repeat,
                        # Some share a workload, so that others are told apart by their frameworks.
                        workload=payload(number // 3, "workload"),
                        framework=payload(number, "framework"),
                        network=payload(number, "network"),
                    )
                )
        cell = train_cell(
            payload(number, "framework"),
            workload=payload(number, "workload"),
            batch=8,
            strategy=payload(number, "strategy"),
        )
        records.append(
            make_record(
                cell,
                status=Status.FAILED,
                cause=Cause.CRASH,
                message=payload(number, "message"),
                log_tail="\n".join([payload(number, "log"), *QUESTIONS]),
            )
        )
        cell = bench_cell(payload(number, "benchmark"), threads=1)
        point = LogPoint(series=payload(number, "series"))
        records.append(make_record(cell, [MetricValue.of("flops", 1e9 + number, payload(number, "label"), point)]))
        metric = log_metric(payload(number, "metric"), 2e9, payload(number, "unit"), "flops")
        run = log_run(
            payload(number, "file"),
            payload(number, "parsed"),
            metric | {"printed": payload(number, "printed")},
            reason=payload(number, "reason"),
            variant=payload(number, "variant"),
            parameters={payload(number, "parameter"): payload(number, "given")},
        )
        records.append(ingest_record(run, source=payload(number, "source")))
        # A stage that is not there keeps whatever axes its records have.
        cell = Cell.of(stage="unknown", workload=payload(number, "workload"), **{"axis": payload(number, "axis")})
        records.append(make_record(cell, {"step_time": 1.0 + number}))
    return records


def write_hostile_study(root: Path) -> Path:
    """Write `root/hostile` and return it."""
    study = root / "hostile"
    for record in _records():
        write_records(study, record)
    broken = study / "train" / "half~00000000" / "record.json"
    broken.parent.mkdir()
    broken.write_text('{"message": "' + QUESTIONS[0])
    return study
