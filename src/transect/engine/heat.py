"""One heat: payloads that start one after another, are all kept alive, and take turns in blocks of iterations.

Each goes the ordinary way to its record, in a thread of its own; whoever has not the turn is blocked in a read of a
socket, all its ranks. The protocol is in docs/design/execution.md.
"""

from __future__ import annotations

import secrets
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from math import ceil

from transect.domain.errors import Interruption
from transect.domain.record import Record
from transect.engine.job import Job
from transect.engine.seat import Seat
from transect.engine.turns import Turns
from transect.measure.busy import Window
from transect.measure.memory import available_bytes

Run = Callable[[Job, Seat | None], Record]

# A turn of a tenth of a second is short beside a machine's drift, and long beside what a payload loses by its wait: cold
# caches, some 0.1 ms. Twelve turns are what the middle of their ratios takes; more than 64 would tell no more.
TURN_S, FEWEST, MOST = 0.1, 12, 64
# Turns of more than this are not replaced: twice as many could take a cell to its time limit.
_LONG_S = 1.0
# Training of fewer steps than so many turns takes none.
_LEAST = 4
# A call whose time is not known yet: tried by tens until they take this share of a turn.
_TRIED = 0.1
# Threads of a library may go on spinning after the last call: two looks, so far apart, and no longer than this.
_LOOK_S, _PATIENCE_S, _IDLE = 0.002, 0.2, 0.2
# Other threads never rest, such as those of Horovod (0.1 to 0.4 of a core for two ranks): all looks see them use this share.
_LOOKS, _REST_S, _RESTLESS = 5, 0.03, 0.03
# What a payload may yet come to hold that holds less so far.
_LEAST_BYTES = 2**30
_KEY_BYTES, _HELLO_S = 32, 30.0


def too_short(plan: Turns) -> bool:
    """Whether a payload has too few iterations for turns: it runs alone to its end once it is ready."""
    return plan.iterations is not None and plan.iterations - plan.warmup - 1 < _LEAST


def laps_of(plans: Sequence[Turns], seconds: Sequence[float]) -> tuple[int, list[int]]:
    """Return how many turns each takes, the same number for all, and of how many iterations, which take `seconds`.

    A training keeps one step at least for after its last turn: then its end, which takes long, lies between no two turns.

    >>> plan = Turns(connections=1, iterations=1006, warmup=5)
    >>> laps_of([plan, plan], [0.003, 0.006]), laps_of([plan, plan], [1e-5, 9.0])
    ((30, [33, 33]), (12, [83, 83]))
    >>> laps_of([Turns(connections=1, seconds=0.05, least=100)] * 2, [2e-5, 0.2])
    (12, [2500, 10])
    """
    left = [plan.iterations - plan.warmup - 1 for plan in plans if plan.iterations is not None]
    if len(left) < len(plans):
        # The first call of a turn is not timed, where there are more.
        least = [1 + (plan.least > FEWEST) * ceil(plan.least / FEWEST) for plan in plans]
        asked = [ceil(plan.seconds / max(s, 1e-9)) for plan, s in zip(plans, seconds, strict=True)]
        return FEWEST, [max(each) for each in zip(least, asked, strict=True)]
    shortest = min(count * s for count, s in zip(left, seconds, strict=True))
    laps = min(max(FEWEST, min(round(shortest / TURN_S), MOST)), *left)
    return laps, [count // laps for count in left]


class _Contender:
    """A job of a heat with its seat, and the thread that runs it."""

    def __init__(self, job: Job, seat: Seat, run: Run, ringing: socket.socket) -> None:
        self.seat = seat
        self.record: Record | None = None
        self.error: BaseException | None = None
        # Of its last turn, in seconds.
        self.took_s = 0.0
        self.runs = True

        def work() -> None:
            try:
                self.record = run(job, seat)
            except BaseException as error:  # the heat's own thread raises it
                self.error = error
            finally:
                self.runs = False
                ringing.send(b"x")

        self.thread = threading.Thread(target=work, name=job.cell.id)

    @property
    def takes_turns(self) -> bool:
        """Whether all its processes are there and have more work."""
        return self.runs and len(self.seat.connections) == self.seat.plan.connections


class Heat:
    """One run of several jobs, of which each keeps its turn to itself."""

    def __init__(self, run: Run, again: int = 0) -> None:
        self._run, self._again = run, again
        self._name = secrets.token_hex(8)
        self._contenders: list[_Contender] = []
        self._window = Window()
        # Turns without a verdict, by seat and number.
        self._unjudged: list[tuple[Seat, int]] = []

    def run(self, plans: Sequence[tuple[Job, Turns]]) -> list[Record]:
        """Run as many of the jobs as memory holds, the first ones; return their records.

        Raises what one of them raises, such as DiskFull or Interruption; the others have been ended then.
        """
        self._bell, ringing = socket.socketpair()
        with self._bell, ringing, socket.create_server(("127.0.0.1", 0), backlog=256) as self._server:
            try:
                for job, plan in plans:
                    if self._contenders and not self._has_room(job):
                        break
                    seat = Seat(self._name, plan, self._server.getsockname(), self._again)
                    self._start(job, seat, ringing)
                self._take_turns(self._contenders)
                for contender in self._contenders:
                    self._let_end(contender)
            finally:
                self._call_off()
        return [contender.record for contender in self._contenders if contender.record is not None]

    def _start(self, job: Job, seat: Seat, ringing: socket.socket) -> None:
        """Start a contender, and wait until it is ready or has ended."""
        contender = _Contender(job, seat, self._run, ringing)
        # Before its start: an interruption finds it there.
        self._contenders.append(contender)
        contender.thread.start()
        words = b""
        while contender.runs and len(words) < seat.plan.connections:
            words += self._hear(contender, joining=True)
        if contender.runs:
            seat.find_processes()
            self._settle(contender)
            seat.pause()
            self._calm(contender)

    def _has_room(self, job: Job) -> bool:
        """Whether another one may start: memory holds twice what the largest of those that are there holds so far."""
        held = [contender.seat.resident() for contender in self._contenders if contender.runs]
        need, limit = max(_LEAST_BYTES, 2 * max(held, default=0)), job.spec["cell_limits"]["memory_mb"]
        return available_bytes(sum(held)) >= min(need, limit * 2**20 if limit else need)

    def _take_turns(self, contenders: Sequence[_Contender]) -> None:
        for contender in contenders:
            if too_short(contender.seat.plan):
                self._let_end(contender)
        taking = [contender for contender in contenders if contender.takes_turns]
        known = dict(zip(taking, self._try(taking), strict=True))
        if len(taking) > 1:
            # Some threads begin with the first step.
            for contender in taking:
                if contender.takes_turns:
                    self._calm(contender)
        taking = [contender for contender in taking if contender.takes_turns]
        if not taking:
            return
        plans = [contender.seat.plan for contender in taking]
        laps, counts = laps_of(plans, [known[contender] for contender in taking])
        # Calls can be had as many as are asked for, where they are short; a training has no steps to replace a disturbed turn.
        longest = max(count * known[contender] for count, contender in zip(counts, taking, strict=True))
        most = laps if plans[0].iterations is not None or longest > _LONG_S else 2 * laps
        for lap in range(most):
            if lap >= laps and self._quiet_laps(taking, lap) >= laps:
                break
            self._lap(taking, counts, backwards=bool(lap % 2))
        self._judge(self._window.judge())

    def _quiet_laps(self, taking: Sequence[_Contender], laps: int) -> int:
        """Return in how many of the last so many laps all turns were quiet."""
        self._judge(self._window.judge())
        marks = [contender.seat.quiet[-laps:] for contender in taking if contender.takes_turns]
        return sum(map(all, zip(*marks, strict=True)))

    def _try(self, taking: Sequence[_Contender]) -> list[float]:
        """Return how long an iteration of each takes, in laps that do not count: those of a training are its warm-up."""
        plans = [contender.seat.plan for contender in taking]
        if all(plan.iterations is not None for plan in plans):
            self._lap(taking, [max(1, plan.warmup - 2) for plan in plans], trial=True)
            once = [self._lap(taking, [1] * len(taking), trial=True) for _ in range(2)]
            return [min(times) for times in zip(*once, strict=True)]
        counts = [1] * len(taking)
        while True:
            # Twice: one that was interrupted would pass for a slow one.
            took = [
                min(times) for times in zip(*(self._lap(taking, counts, trial=True) for _ in range(2)), strict=True)
            ]
            known = [not s or s >= _TRIED * plan.seconds for s, plan in zip(took, plans, strict=True)]
            if all(known):
                return [s / count for s, count in zip(took, counts, strict=True)]
            counts = [count if is_known else 10 * count for count, is_known in zip(counts, known, strict=True)]

    def _lap(
        self, taking: Sequence[_Contender], counts: Sequence[int], *, trial: bool = False, backwards: bool = False
    ) -> list[float]:
        """Give each its turn, forwards or backwards; return how long each took, 0 of one that has ended."""
        order = list(zip(taking, counts, strict=True))
        for contender, count in reversed(order) if backwards else order:
            if contender.takes_turns:
                self._turn(contender, count, trial=trial)
        return [contender.took_s if contender.takes_turns else 0.0 for contender in taking]

    def _turn(self, contender: _Contender, count: int, *, trial: bool) -> None:
        seat = contender.seat
        used = seat.cpu_s()
        self._window.begin()
        seat.resume()
        begin = time.monotonic()
        seat.send(count)
        words = b""
        while contender.takes_turns and len(words) < seat.plan.connections:
            words += self._hear(contender)
        contender.took_s = time.monotonic() - begin
        if not contender.takes_turns:
            # It has no more work, or died: it keeps the turn to its end.
            self._judge(self._window.judge())
            self._join(contender)
            return
        if not seat.is_stopped_while_waiting:
            self._settle(contender)
        seat.pause()
        seat.counts.append(count)
        seat.quiet.append(False)
        seat.trials += trial
        if not trial:
            self._unjudged.append((seat, len(seat.counts) - 1))
            self._judge(self._window.end(seat.cpu_s() - used))

    def _judge(self, verdicts: Sequence[bool]) -> None:
        for (seat, turn), quiet in zip(self._unjudged, verdicts, strict=False):
            seat.quiet[turn] = quiet
        self._unjudged = self._unjudged[len(verdicts) :]

    def _settle(self, contender: _Contender) -> None:
        """Wait until a contender's processes do nothing any more, or for a while."""
        end, used = time.monotonic() + _PATIENCE_S, contender.seat.cpu_s()
        while time.monotonic() < end:
            time.sleep(_LOOK_S)
            before, used = used, contender.seat.cpu_s()
            if used - before < _IDLE * _LOOK_S:
                break

    def _is_restless(self, contender: _Contender) -> bool:
        """Whether a contender computes although it waits: it would slow down those that have their turn."""
        for _ in range(_LOOKS):
            used = contender.seat.cpu_s()
            time.sleep(_REST_S)
            if contender.seat.cpu_s() - used < _RESTLESS * _REST_S:
                return False
        return True

    def _calm(self, contender: _Contender) -> None:
        """Stop one that never rests, as long as it waits; where it goes on all the same, it measures alone."""
        if self._is_restless(contender):
            contender.seat.stop_while_waiting()
            if self._is_restless(contender):
                self._part(contender)

    def _part(self, contender: _Contender) -> None:
        """Let one that cannot wait measure alone, to its end: what takes no turns is compared by its values."""
        if contender.seat.plan.iterations is None:
            contender.seat.heat = secrets.token_hex(8)
            self._take_turns([contender])
        self._let_end(contender)

    def _let_end(self, contender: _Contender) -> None:
        """Tell a contender that its measurement is over, and wait until its record is written."""
        contender.seat.resume()
        contender.seat.send(0)
        self._join(contender)

    def _join(self, contender: _Contender) -> None:
        while contender.runs:
            self._hear(contender)

    def _hear(self, contender: _Contender, *, joining: bool = False) -> bytes:
        """Wait for something to happen; return the words that were said by the one that has the turn."""
        seat, words = contender.seat, b""
        listening = [self._bell, *([self._server] if joining else ()), *seat.connections]
        for ready in select.select(listening, [], [])[0]:
            if ready is self._bell:
                self._bell.recv(64)
            elif ready is self._server:
                self._welcome(seat)
            elif (word := _said(ready)) in (b"r", b"d"):
                words += word
            else:  # `e`, or it has died
                seat.drop(ready)
        for error in (one.error for one in self._contenders if one.error is not None):
            raise error
        return words

    def _welcome(self, seat: Seat) -> None:
        connection, _ = self._server.accept()
        connection.settimeout(_HELLO_S)
        try:
            key = connection.recv(_KEY_BYTES, socket.MSG_WAITALL)
        except OSError:
            key = b""
        if secrets.compare_digest(key, seat.key.encode("ascii")) and len(seat.connections) < seat.plan.connections:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            seat.connections.append(connection)
        else:
            connection.close()

    def _call_off(self) -> None:
        """End whoever still runs, as it is after an interruption or a full disk; nobody after a heat that went well."""
        for contender in self._contenders:
            contender.seat.call_off()
        for contender in self._contenders:
            while contender.thread.is_alive():
                try:
                    contender.thread.join()
                except Interruption:  # asked a second time: they are being ended
                    continue
            contender.seat.close()
            for connection in list(contender.seat.connections):
                contender.seat.drop(connection)


def _said(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1)
    except OSError:
        return b""
