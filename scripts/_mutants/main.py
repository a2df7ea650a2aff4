"""The commands of `scripts/mutants`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from _mutants import forked
from _mutants.areas import AREAS
from _mutants.edits import Mutant, draw
from _mutants.tests_of import make_map, read_map, state_of
from _mutants.trial import OUTCOMES, Trial

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "mutants.json"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 1 when fewer mutants are caught than were, a tenth has gone, or some were not tried."""
    parser = argparse.ArgumentParser(prog="scripts/mutants")
    parser.add_argument("command", choices=["list", "map", "run", "table", "keep"])
    parser.add_argument("results", nargs="?", type=Path, help="a line for each mutant")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--only", choices=[*AREAS], help="mutants of one area")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="whose source and tests")
    parser.add_argument("--seconds", type=float, default=60, help="what a trial may take at least")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--resume", action="store_true", help="keep the results that are there")
    parser.add_argument("--list", type=Path, default=LIST, help="the mutants")
    asked = parser.parse_args(arguments)
    checkout = asked.checkout.resolve()
    made = checkout / "build" / "mutants"
    results = asked.results or made / "results.jsonl"
    listed = json.loads(asked.list.read_text()) if asked.list.exists() else []
    before = {Mutant(**entry).id: was for entry in listed if (was := entry.pop("was", None))}
    if asked.command == "list":
        drawn = draw(checkout / "src", seed=asked.seed, count=asked.count)
        if not len(drawn) == asked.count > 0:
            sys.exit(f"mutants: {checkout}: {len(drawn)} edits can be made, asked for {asked.count}")
        entries = [
            dataclasses.asdict(mutant) | ({"was": before[mutant.id]} if mutant.id in before else {}) for mutant in drawn
        ]
        asked.list.write_text(_listed(entries))
        return 0
    mutants = [Mutant(**entry) for entry in listed]
    if not mutants:
        sys.exit(f"mutants: {asked.list}: no mutant in it")
    if asked.command in ("map", "run"):
        # Ends by an exception, so that what was forked ends too.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: sys.exit("ended by a signal"))
        made.mkdir(parents=True, exist_ok=True)
        forked.prepare()
        make_map(mutants, checkout, made / "map.jsonl", asked.jobs)
    mutants = [mutant for mutant in mutants if asked.only in (None, mutant.area)]
    if asked.command == "run":
        state = state_of(made / "map.jsonl")
        again = set() if asked.resume else {mutant.id for mutant in mutants}
        # Of other tests or sources is what is known of other areas too.
        left = [one for key, one in _read(results).items() if key not in again and one.get("state") == state]
        print(f"{len(left)} results are of these tests and sources and stay")
        results.write_text("".join(json.dumps(one) + "\n" for one in left))
        trial = Trial(checkout, read_map(made / "map.jsonl"), asked.seconds)
        _run(mutants, trial, results, asked.jobs, state)
    if asked.command in ("keep", "table") and not results.exists():
        sys.exit(f"mutants: {results}: no such file")
    if asked.command == "keep":
        asked.list.write_text(_listed(_keep(listed, _read(results), before)))
    if asked.command in ("run", "table"):
        return _tell(mutants, _read(results), before)
    return 0


def _listed(entries: list[dict[str, Any]]) -> str:
    lines = (json.dumps(entry, ensure_ascii=False) for entry in entries)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _read(results: Path) -> dict[str, dict[str, Any]]:
    lines = results.read_text().splitlines() if results.exists() else []
    return {entry["id"]: entry for entry in map(json.loads, lines)}


def _run(mutants: list[Mutant], trial: Trial, results: Path, jobs: int, state: str) -> None:
    """Try what has no result yet; each result is a line as soon as it is there."""
    known = _read(results)

    def work(mutant: Mutant) -> None:
        told = {"id": mutant.id, "area": mutant.area, **trial.of(mutant), "name": mutant.name, "state": state}
        forked.append(results, told)
        print(told["outcome"], told["seconds"], mutant.name[:120], flush=True)

    # In no order of areas: what is there after a while tells of all.
    left = [mutant for mutant in mutants if mutant.id not in known]
    forked.share(sorted(left, key=lambda mutant: mutant.id), jobs, work)


def _keep(
    listed: list[dict[str, Any]], results: dict[str, dict[str, Any]], before: dict[str, str]
) -> list[dict[str, Any]]:
    """Return the list with what became of each mutant: later runs are held to it."""
    became = before | {mutant: told["outcome"] for mutant, told in results.items()}
    ids = [Mutant(**entry).id for entry in listed]
    return [
        entry | ({"was": became[mutant]} if mutant in became else {}) for entry, mutant in zip(listed, ids, strict=True)
    ]


def _tell(mutants: list[Mutant], results: dict[str, dict[str, Any]], before: dict[str, str]) -> int:
    """Print a table by area, then what was not caught; 1 when less is caught than was."""
    there = [(m, results[m.id]["outcome"]) for m in mutants if m.id in results]
    print(f"{'area':14}{'mutants':>8}" + "".join(f"{outcome:>11}" for outcome in OUTCOMES) + "   share")
    for area in (*AREAS, "all"):
        counted = Counter(outcome for mutant, outcome in there if area in (mutant.area, "all"))
        if stood := counted.total() - counted["gone"]:
            told = "".join(f"{counted[outcome]:>11}" for outcome in OUTCOMES)
            print(f"{area:14}{counted.total():>8}{told}{counted['caught'] / stood:>8.1%}")
    for outcome in OUTCOMES[1:]:
        print(f"\n{outcome}:")
        for mutant in (mutant for mutant, became in there if became == outcome):
            now = " (was caught)" if before.get(mutant.id) == "caught" else ""
            print(f"  {mutant.id} [{mutant.kind}] {mutant.name[:220]}{now}")
    standing = [(mutant, outcome) for mutant, outcome in there if outcome != "gone"]
    was = sum(before.get(mutant.id) == "caught" for mutant, _ in standing)
    caught = sum(outcome == "caught" for _, outcome in standing)
    held_to = f"{was} were" if before else "the list does not say how many were (keep)"
    print(f"\nof {len(standing)} that stand, {caught} are caught; {held_to}")
    # A module that moved takes its mutants with it: the list is to be made anew then.
    went = sum(outcome == "gone" and before.get(mutant.id, "gone") != "gone" for mutant, outcome in there)
    many_gone = went > len(there) / 10
    if many_gone:
        print("more than a tenth of the mutants have gone: list them anew")
    if untried := len(mutants) - len(there):
        print(f"{untried} of {len(mutants)} have no result: run them")
    return int(caught < was or many_gone or untried > 0)
