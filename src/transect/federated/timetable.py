"""Who trains when, on which of the server's models: the same for every engine, and known before a client trains.

In rounds a cohort is drawn, all of it begins on the newest model, and the server waits for the slowest. With a buffer
as many clients train at any time, each from the model that was the newest when it began; as soon as that many updates
are there the server makes a model of them (J. Nguyen et al., "Federated learning with buffered asynchronous
aggregation", AISTATS 2022). Time is simulated: a turn takes its client's duration, and all else no time.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from transect.federated.draws import Purpose, draw, shuffled


@dataclass(frozen=True, kw_only=True, slots=True)
class Timetable:
    """The turns that each of the server's updates is made of, in their order: rounds by turns of one.

    `client`, `number` (among all turns) and `version` (the model that it began on: the number of updates made by
    then), int64 (rounds, turns); `time`: when each update is made, float64 (rounds,), 1 being the median turn.
    """

    client: np.ndarray
    number: np.ndarray
    version: np.ndarray
    time: np.ndarray


def in_rounds(rounds: int, cohort: int, durations: np.ndarray, seed: int) -> Timetable:
    """Return the timetable of synchronous rounds; the clients of each in the order of their numbers."""
    clients = len(durations)
    client = np.stack([np.sort(shuffled(seed, Purpose.COHORT, clients, number)[:cohort]) for number in range(rounds)])
    number = np.arange(rounds * cohort).reshape(rounds, cohort)
    version = np.repeat(np.arange(rounds)[:, None], cohort, axis=1)
    return Timetable(client=client, number=number, version=version, time=np.cumsum(durations[client].max(axis=1)))


def buffered(rounds: int, cohort: int, buffer: int, durations: np.ndarray, seed: int) -> Timetable:
    """Return the timetable where the server waits for `buffer` updates while `cohort` clients train.

    Who is done is replaced by a client that is not training. Those wait in a row, at first by their numbers: a draw of 64
    bits times the row's length, over 2^64, is the place of the next one, who changes places with the last and leaves.
    Who is done comes to the end.
    """
    waiting = list(range(len(durations)))
    draws = draw(seed, Purpose.NEXT_CLIENT, np.arange(cohort + rounds * buffer)).tolist()
    # By when they end: the time, the turn's number, its client, and the version it began on.
    running: list[tuple[float, int, int, int]] = []
    begun = 0

    def begin(now: float, version: int) -> None:
        nonlocal begun
        place = draws[begun] * len(waiting) >> 64
        waiting[place], waiting[-1] = waiting[-1], waiting[place]
        chosen = waiting.pop()
        heapq.heappush(running, (now + float(durations[chosen]), begun, chosen, version))
        begun += 1

    for _ in range(cohort):
        begin(0.0, 0)
    found = np.empty((3, rounds, buffer), np.int64)
    time = np.empty(rounds)
    for update in range(rounds):
        for place in range(buffer):
            now, number, client, version = heapq.heappop(running)
            waiting.append(client)
            found[:, update, place] = client, number, version
            # The last one's update makes the next model, on which its successor begins.
            begin(now, update + (place == buffer - 1))
        time[update] = now
    return Timetable(client=found[0], number=found[1], version=found[2], time=time)
