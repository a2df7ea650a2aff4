"""Level `cases` of the runner contract from the outside: all cases run, whatever becomes of one.

A runner that crashes or hangs is started again after the case that it was at. What it could not
write itself is added to its record, so that the record holds every case in the end.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.domain.errors import TransectError, Unsupported
from transect.launch.processes import end_all

_LOOK_S = 0.2
_GRACE_S = 2.0
# Each costs a start of the runner, and after so many there is nothing left to compare.
_MAX_STARTS = 200
_LOG_BYTES = 2000
_SKIPPED = 3
_BY_RUNNER = ("ok", "failed", "unsupported")
_BY_US = ("crash", "timeout")
_ENDS = ("ok", "failed", "skipped")


class RunnerFault(TransectError):
    """A runner broke the contract, so that nothing is known of its cases."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseEnd:
    """What came of a case: ok, failed, unsupported, crash or timeout, and in whose words.

    `outputs`: what the program says of them, where it is ok.
    """

    status: str
    message: str = ""
    outputs: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Attempt:
    """How one start of the runner ended. `log` is the end of its output."""

    code: int
    hung: bool
    log: str

    @property
    def words(self) -> str:
        """Return how it ended, as a sentence goes on after its subject."""
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        try:
            return f"was ended by {signal.Signals(-self.code).name}"
        except ValueError:
            return f"was ended by signal {-self.code}"

    def saying(self) -> str:
        """Return its last line after a colon, or nothing where it printed nothing."""
        lines = self.log.strip().splitlines()
        return f": {lines[-1].strip()}" if lines else ""


class CaseRun:
    """All cases under one runner.

    `command` returns the argument list that runs the cases from a number on, for `names` cases in all; the
    program says of each in the file `record`. A case that leaves no word for `patience_s` seconds of
    `clock` counts as hung.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        names: Sequence[str],
        record: Path,
        *,
        log: Path,
        variables: Mapping[str, str],
        patience_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command, self._names, self._record, self._log = command, names, record, log
        self._variables, self._patience_s, self._clock = variables, patience_s, clock
        self._ends: list[CaseEnd] = []
        self._open = False

    def run(self) -> list[CaseEnd]:
        """Return an end for each case. Raises Unsupported when the runner cannot run at all here.

        Raises RunnerFault for a runner that breaks the contract, or does not get on.
        """
        self._record.unlink(missing_ok=True)
        self._log.unlink(missing_ok=True)
        for _ in range(_MAX_STARTS):
            before = len(self._ends)
            attempt = self._start(before)
            self._read()
            if self._settle(attempt, before):
                return self._ends
        raise RunnerFault(
            f"the runner was started {_MAX_STARTS} times and has come to case {len(self._ends)} of "
            f"{len(self._names)}; the last time it {attempt.words}{attempt.saying()}"
        )

    def _start(self, skip: int) -> _Attempt:
        with self._log.open("ab") as log:
            begin = log.tell()
            child = subprocess.Popen(
                list(self._command(skip)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(self._variables),
            )
            try:
                hung = self._watch(child)
            finally:
                if child.poll() is None:
                    # Nobody else has this mark: only the child and what it has started.
                    end_all([child.pid], f"case run {child.pid}", _GRACE_S)
                child.wait()
        with self._log.open("rb") as stream:
            stream.seek(max(begin, self._log.stat().st_size - _LOG_BYTES))
            text = stream.read().decode("utf-8", "replace")
        return _Attempt(code=child.returncode, hung=hung, log=text)

    def _watch(self, child: subprocess.Popen[bytes]) -> bool:
        """Return when the runner has ended (False), or its record has not grown for too long."""
        size, since = -1, self._clock()
        while True:
            try:
                child.wait(timeout=_LOOK_S)
                return False
            except subprocess.TimeoutExpired:
                pass
            grown = self._record.stat().st_size if self._record.exists() else 0
            if grown != size:
                size, since = grown, self._clock()
            elif self._clock() - since > self._patience_s:
                return True

    def _settle(self, attempt: _Attempt, before: int) -> bool:
        """Blame the case at which the runner stopped; return whether all have ended."""
        here = f"{len(self._ends)} of {len(self._names)} cases"
        if self._open:
            self._blame(len(self._ends), attempt, "")
        elif len(self._ends) == len(self._names):
            if attempt.hung or attempt.code:
                how = "did not end" if attempt.hung else attempt.words
                raise RunnerFault(f"the runner {how} after its last case{attempt.saying()}")
        elif not attempt.hung and attempt.code == 0:
            raise RunnerFault(f"the runner ended with exit code 0 after {here}")
        elif len(self._ends) == before:
            if attempt.code == _SKIPPED and not attempt.hung:
                raise Unsupported(attempt.saying().removeprefix(": ") or "the runner says so")
            how = f"did nothing for {self._patience_s:g} s" if attempt.hung else attempt.words
            raise RunnerFault(f"the runner {how} after {here}, at none{attempt.saying()}")
        else:
            # It had written the case's end, and stumbled over putting it away.
            self._blame(len(self._ends) - 1, attempt, " after its outputs were written")
        return len(self._ends) == len(self._names)

    def _blame(self, case: int, attempt: _Attempt, when: str) -> None:
        if attempt.hung:
            end = CaseEnd(status="timeout", message=f"nothing came for {self._patience_s:g} s{when}")
        else:
            message = f"the runner {attempt.words}{when}{attempt.saying()}"
            end = CaseEnd(status="crash", message=message)
        line = {"case": case, "status": end.status}
        with self._record.open("a", encoding="utf-8") as record:
            record.write(json.dumps(line | {"message": end.message}) + "\n")
        self._ends[case:] = [end]
        self._open = False

    def _read(self) -> None:
        """Read the record anew. A last line without its end was never written: it is cut off."""
        try:
            content = self._record.read_bytes()
        except FileNotFoundError:
            content = b""
        whole, _, cut = content.rpartition(b"\n")
        if cut:
            with self._record.open("r+b") as record:
                record.truncate(len(content) - len(cut))
        self._ends, self._open = [], False
        for number, line in enumerate(whole.splitlines() if whole else (), 1):
            self._take(line, f"{self._record}: line {number}")

    def _take(self, raw: bytes, where: str) -> None:
        """Take a line of the record. Raises RunnerFault for one that the contract does not have."""
        try:
            line: dict[str, Any] = json.loads(raw.decode("utf-8", "replace"))
            case, status = line.get("case"), line["status"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            shown = raw.decode("utf-8", "replace")
            raise RunnerFault(f"{where}: expected case and status, got {shown:.200}") from None
        if case is None and status in _ENDS:
            # How the program ended: exit code and output say so too.
            return
        at = len(self._ends) - (status in _BY_US and not self._open)
        if case != at or not 0 <= at < len(self._names):
            expected = f"case {at} {self._names[at]!r}" if at < len(self._names) else "no further case"
            raise RunnerFault(f"{where}: case {case!r}, expected {expected}")
        allowed = _BY_RUNNER if self._open else ("started",)
        if status not in (*allowed, *_BY_US):
            raise RunnerFault(f"{where}: status {status!r}, expected {', '.join(allowed)}")
        self._open = status == "started"
        if not self._open:
            message = str(line.get("message") or "")
            self._ends[at:] = [CaseEnd(status=status, message=message, outputs=line.get("outputs"))]
