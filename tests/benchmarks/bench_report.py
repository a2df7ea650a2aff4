"""Speed, memory and size of a report over many small records, and how soon its page answers.

Run by hand: `python tests/benchmarks/bench_report.py [RECORDS ...] [--workloads N] [--no-browser]`, by default 5000 and
50000 records of 2 workloads. The records are synthetic, of training, inference, benchmarks and ingested logs, some of them
failed and some skipped, with checksum and layout as the pipeline writes them. Each report runs in a process of its own, so
that its peak memory is its own; the second report of a study finds what the first kept of the records.

Prints, beside the seconds, ratios to what no report can do without: reading the bytes, parsing them as JSON, and
reading every record with its checksum, each by one process. Then the page's size, in Chromium the time until it can be
used and until a filter has answered, and how the time per record grows (1 is linear). Asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from many_records import write_study
from report_in_browser import opened

from transect.domain.record import raw_record
from transect.engine.make_report import make_report

# What is younger than this is read again each time, as it may still change; in seconds.
STILL = 2.5
GOALS = {"page": 6e6, "usable": 2000.0, "filter": 200.0}


def limits(results: Path) -> dict[str, float]:
    """Seconds of one process for what every report has to do, after everything was read once."""
    files = sorted(results.glob("many/*/*/record.json"))

    def timed(each: Callable[[Path], Any]) -> float:
        started = time.perf_counter()
        for path in files:
            each(path)
        return time.perf_counter() - started

    timed(Path.read_bytes)
    found = {
        "bytes": timed(Path.read_bytes),
        "JSON": timed(lambda path: json.loads(path.read_bytes())),
        "records": timed(raw_record),
    }
    size = sum(path.stat().st_size for path in files)
    told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found.items())
    print(f"  limits of one process: {told}; {size / 1e6:.0f} MB", flush=True)
    return found


def measure(study: Path, results: Path, pipe: Any) -> None:
    started = time.perf_counter()
    summary = make_report(study, results)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    pipe.send((seconds, peak, summary["counts"], summary["problems"]))


def report(study: Path, results: Path, least: dict[str, float]) -> float:
    """Make the report in a fresh process; return its seconds."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=measure, args=(study, results, theirs))
    process.start()
    theirs.close()
    seconds, peak, counts, problems = ours.recv()
    process.join()
    ratios = ", ".join(f"{seconds / value:.2f} of {name}" for name, value in least.items())
    print(
        f"  {seconds:7.1f} s  {peak / 1e6:6.0f} MB  ratios: {ratios}  {counts}"
        f"  {len(problems)} problems {problems[:3]}",
        flush=True,
    )
    return seconds


def look(page: Path, browser: bool) -> None:
    """Print how large a page is, and how soon it answers, each as a share of its goal too."""
    size = page.stat().st_size
    print(f"  page {size / 1e6:.2f} MB, {size / GOALS['page']:.2f} of the goal", flush=True)
    for name, value in opened(page).items() if browser else ():
        goal = GOALS["filter" if name.startswith("filter") else "usable"]
        print(f"  {name}: {value:.0f} ms, {value / goal:.2f} of the goal", flush=True)


def main(amounts: list[int], workloads: int, browser: bool) -> None:
    found: dict[int, list[float]] = {}
    for amount in amounts:
        with tempfile.TemporaryDirectory() as folder:
            study = write_study(Path(folder), amount, workloads)
            results = Path(folder) / "results"
            time.sleep(STILL)
            print(f"{amount} records, {workloads} workloads", flush=True)
            least = limits(results)
            found[amount] = [report(study, results, least) for _ in ("first", "second")]
            look(results / "many" / "report.html", browser)
    for place, name in enumerate(("first", "second")):
        each = {amount: 1e3 * times[place] / amount for amount, times in found.items()}
        told = ", ".join(f"{value:.2f} ms of {amount}" for amount, value in each.items())
        growth = f", {each[amounts[-1]] / each[amounts[0]]:.2f} times" if len(amounts) > 1 else ""
        print(f"{name} report per record: {told}{growth}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("records", nargs="*", type=int, default=[5_000, 50_000])
    parser.add_argument("--workloads", type=int, default=2)
    parser.add_argument("--no-browser", dest="browser", action="store_false")
    given = parser.parse_args()
    main(given.records, given.workloads, given.browser)
