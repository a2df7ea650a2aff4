"""How a study stands now, from its files alone: nothing is written, no lock is taken, on whatever host."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import while_unchanged
from transect.domain.owner import Owner
from transect.domain.paths import StudyPaths
from transect.domain.record import raw_record, run_fingerprint
from transect.engine.locks import Held
from transect.engine.plan_files import planned_cells, read_block
from transect.engine.progress import Journal, text_of

_LAST = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """One look at a study.

    `state` is `not begun`, `running`, `died` (its run did not end by itself), `stopped` (it ended before all cells had) or
    `done`; `words` say more of it. The counts are of all cells as planned: `damaged` records cannot be read, `left` have
    no record of this plan and do not run. `left_s` estimates what the cells of this run take one after another; None
    where nothing runs or none has ended. `last` are cells that ended last, the newest at the end, `report_age_s` the report's age.
    """

    study: str
    folder: str
    state: str
    words: str
    cells: int
    ok: int
    failed: int
    skipped: int
    damaged: int
    left: int
    running: tuple[str, ...]
    left_s: float | None
    last: tuple[str, ...]
    report: str | None
    report_age_s: float | None

    @property
    def goes_on(self) -> bool:
        """Whether there is more to see: it runs, or may begin."""
        return self.state in ("running", "not begun")


class Watcher:
    """Looks at one study again and again; a record or line of the journal is read once as long as it stays."""

    def __init__(self, paths: StudyPaths) -> None:
        self._paths = paths
        self._begin("")

    def _begin(self, head: str) -> None:
        self._head, self._journal, self._last = head, Journal(self._paths), deque[str](maxlen=_LAST)

    def look(self) -> View:
        """Return how the study stands."""
        paths = self._paths
        claim = _holder(paths.claim)
        blocks = [facts for facts in map(_holder, _files(paths.lease("", "").parent)) if facts is not None]
        lives = claim is not None or bool(blocks)
        planned = planned_cells(paths)
        counts, without = self._count(planned or {})
        running = tuple(_running(paths, blocks, without))
        left = len(without) - len(running)
        state, words = self._state(planned, claim, lives=lives, left=left)
        self._read_journal()
        known = lives and self._journal.left_s() > 0
        try:
            report_age = max(0.0, time.time() - paths.report.stat().st_mtime)
        except OSError:
            report_age = None
        return View(
            study=paths.study,
            folder=str(paths.folder),
            state=state,
            words=words,
            cells=len(planned or {}),
            **{name: counts[name] for name in ("ok", "failed", "skipped", "damaged")},
            left=left,
            running=running,
            left_s=self._journal.left_s() if known else None,
            last=tuple(self._last),
            report=None if report_age is None else str(paths.report),
            report_age_s=report_age,
        )

    def _count(self, planned: dict[str, str]) -> tuple[Counter[str], set[str]]:
        """Count the records of the plan by status; return also the cells that have none."""
        counts: Counter[str] = Counter()
        without = set()
        for name, fingerprint in planned.items():
            try:
                status, made_from, inputs = _record(self._paths.record(*name.split("/", 1)))
            except FileNotFoundError:
                without.add(name)
            except (OSError, BadInput):
                counts["damaged"] += 1
            else:
                # One whose inputs could not be known carries the plan's part alone.
                if made_from in (fingerprint, run_fingerprint(fingerprint, inputs)):
                    counts[status] += 1
                else:
                    without.add(name)  # of an earlier plan: it runs again
        return counts, without

    def _state(
        self, planned: dict[str, str] | None, claim: dict[str, Any] | None, *, lives: bool, left: int
    ) -> tuple[str, str]:
        if lives:
            if claim is None:
                return "running", "its Snakemake has gone, and blocks of it still run"
            return "running", f"by {_who(claim)}"
        if planned is None:
            if self._paths.plan.exists():
                return "stopped", f"{self._paths.plan} cannot be read: a run of the study writes it anew"
            return "not begun", f"{self._paths.plan} is not there"
        if self._paths.claim.exists():
            return "died", f"it was run by {_who(_facts(self._paths.claim))}, which ended without a word"
        if left:
            return "stopped", "its last run ended before all cells had"
        return "done", ""

    def _read_journal(self) -> None:
        """Read on in the journal, or from its start where another run has begun it anew."""
        try:
            with self._paths.progress.open(encoding="utf-8", errors="replace") as stream:
                head = stream.readline()
        except OSError:
            head = ""
        if head != self._head:
            self._begin(head)
        self._last.extend(map(text_of, self._journal.read()))


@while_unchanged
def _record(path: Path) -> tuple[str, str, tuple[str, ...]]:
    """Return a record's status, fingerprint and inputs. Raises BadInput for what is no record."""
    raw = raw_record(path)
    try:
        return str(raw["status"]), str(raw["fingerprint"]), tuple(map(str, raw["inputs"]))
    except (KeyError, TypeError) as error:
        raise BadInput(f"{path}: no record: {error}") from None


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def _holder(file: Path) -> dict[str, Any] | None:
    try:
        return Held(file, lambda: None).holder(probe=False)
    except OSError:
        return None


def _facts(file: Path) -> dict[str, Any]:
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _who(facts: dict[str, Any]) -> str:
    user, pid, host, since = (facts.get(key, "?") for key in ("user", "pid", "host", "since"))
    return f"{user}'s pid {pid} on {host}, since {since}"


def _running(paths: StudyPaths, blocks: list[dict[str, Any]], without: set[str]) -> Iterator[str]:
    """Yield the cells of blocks at work that have begun and have no record yet."""
    for facts in blocks:
        rule, _, name = str(facts.get("block", "")).partition(".")
        try:
            _, specs = read_block(paths.block(rule, name))
            cells = [(str(spec["cell"]["stage"]), str(spec["cell_id"])) for spec in specs]
        except (BadInput, KeyError, TypeError):
            continue  # it is just being written, or its lease is
        for stage, cell in cells:
            if f"{stage}/{cell}" in without and _begun(paths.cell(stage, cell) / "attempt.json"):
                yield f"{stage}/{cell}"


def _begun(attempt: Path) -> bool:
    """Whether the runner that began a cell is there: a run before may have been killed in it."""
    try:
        return Owner.of(_facts(attempt)).lives()
    except (ValueError, KeyError, TypeError):
        return False
