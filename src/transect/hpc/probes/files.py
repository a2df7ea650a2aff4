"""Files as ranks write and read them: bandwidth, small records, and metadata of many small files.

A probe of transect, not IOR, mdtest or IO500. Started by an MPI launcher on one rank or more:
`mpiexec -n 2 python -m mpi4py -m transect.hpc.probes.files --folder /scratch/place`. Rank 0 prints.

A sample is the slowest rank's time of a phase which all begin together: opening, moving, syncing where the phase is
synced, closing. Phases take turns in rounds. Each rank reads what another one wrote and looks at the first word of
each record; between the phases every byte is compared.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from transect.hpc.probes._files_data import RECORDS, DataSet
from transect.hpc.probes._files_metadata import SmallFiles
from transect.hpc.probes._files_store import Unusable, file_system, room, takes_direct, what_bounds
from transect.hpc.probes._files_team import Team
from transect.hpc.probes.common import available_memory, head, require_world, say, say_result, say_samples, tail

COUNTING = (
    "B/s: bytes of all ranks over the slowest rank's time; 1/s: files of all ranks over it. direct: past the page "
    "cache (O_DIRECT); dropped: pages dropped before, none was left; cached: from memory; synced: fsync counts"
)
_NOTE = "a transect probe, not IOR, mdtest or IO500: one call per record from Python; do not compare with their results"
_KINDS = ("own", "shared")
_MIN_ROUNDS = 3
_ROUNDS = 5  # that are to fit into the time, with what is done between the phases
_SHARE = 0.25  # of the free room, and of the free memory, which `cached` needs
_LEAST = {"easy": 2, "hard": 16, "random": 16, "files": 16, "synced": 2}
LEAST_BYTES = _LEAST["easy"] * RECORDS["easy"]  # of a rank on the disk at a time
_MOST_FILES = 1000  # of one rank in a round
BAD_FOLDER = 3


def _stop(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


class _Probe:
    """All phases on the same ranks, in rounds until the time is used up."""

    def __init__(self, np: Any, team: Team, limit: int, seconds: float, direct: bool) -> None:
        self._np, self._team, self._direct = np, team, direct
        self._began, self._budget = time.monotonic(), seconds
        free = team.agreed(room(team.folder))
        memory = team.least(available_memory() // team.on_node)
        self.limit = min(limit, int(free * _SHARE) // team.size, int(memory * _SHARE))
        if self.limit < LEAST_BYTES:
            raise Unusable(
                f"{team.folder.parent}: {free} bytes are free there, and {memory} of memory for each rank: expected "
                f"{int(LEAST_BYTES / _SHARE)} for each of {team.size} ranks, of which {_SHARE:.0%} are used"
            )
        self.counts = dict(_LEAST)
        self.samples: dict[str, list[float]] = {}
        self.wrong: dict[str, int] = {}
        self.kept: set[str] = set()

    def fit(self) -> None:
        """Find how many records and files take their share of the time, with the phases that wait for the storage."""
        team, counts = self._team, self.counts
        # 4 or 6 writes, 2 or 3 reads of three patterns; 5 phases of small files; each on own and on shared files.
        target = self._budget / _ROUNDS / (2 * ((18 if self._direct else 12) + 5)) / 2
        data = DataSet(self._np, team, "shared", counts, direct=self._direct)
        past = "direct" if self._direct else "dropped"
        synced = f"{'direct' if self._direct else 'buffered'}-synced"

        def fitted(name: str, most: int, run: Callable[[], float | None]) -> None:
            while (took := run() or target) < target / 4 and counts[name] < most:
                counts[name] = min(most, 4 * counts[name])
            counts[name] = max(min(_LEAST[name], most), min(most, int(counts[name] * target / took)))

        fitted("easy", self.limit // RECORDS["easy"], lambda: data.write("easy", synced))
        data.write("easy", "buffered-synced")
        data.write("random", "buffered-synced")

        def read() -> float | None:
            data.write("random", "buffered-unsynced")
            return data.read("random", past)

        fitted("random", counts["easy"] * RECORDS["easy"] // RECORDS["random"], read)
        data.remove()
        fitted("hard", self.limit // RECORDS["hard"], lambda: data.write("hard", "buffered-synced"))
        data.remove()
        self._files = {kind: SmallFiles(team, kind, 0, 0) for kind in _KINDS}
        for files in self._files.values():
            files.make()
        small = self._files["shared"]
        fitted("files", _MOST_FILES, lambda: small.create(counts["files"]))
        fitted("synced", counts["files"], lambda: small.create(counts["synced"], sync=True))
        for files in self._files.values():
            files.counts = {"plain": counts["files"], "synced": counts["synced"]}

    def measure(self) -> None:
        """Go round while another round fits, three times at least."""
        sets: list[DataSet] = [DataSet(self._np, self._team, kind, self.counts, direct=self._direct) for kind in _KINDS]
        done, took = 0, 0.0
        while not self._team.agreed(done >= _MIN_ROUNDS and took > self._left()):
            begin = time.monotonic()
            parts: tuple[DataSet | SmallFiles, ...] = (*sets, *self._files.values())
            for each in parts:
                each.round(self._keep)
            done, took = done + 1, time.monotonic() - begin
        for files in self._files.values():
            files.remove(self._keep)
        for data in sets:
            self.kept |= {f"{data.kind}-{pattern}" for pattern in data.kept}
            for pattern, wrong in data.wrong.items():
                self.wrong[f"{data.kind}-{pattern}"] = self._team.total(wrong)
        for kind, files in self._files.items():
            self.wrong[f"{kind}-files"] = self._team.total(files.wrong)

    def _left(self) -> float:
        return self._budget - (time.monotonic() - self._began)

    def _keep(self, label: str, seconds: float | None) -> None:
        if seconds is not None:
            self.samples.setdefault(label, []).append(seconds)

    def work(self, label: str) -> tuple[int, str]:
        """Return what a phase moves on all ranks, and the unit of its rate."""
        pattern = label.split("-")[2]
        if pattern == "files":
            return self.counts["synced" if label.endswith("-synced") else "files"] * self._team.size, "1/s"
        return self.counts[pattern] * RECORDS[pattern] * self._team.size, "B/s"

    def print(self) -> list[str]:
        """Print what was measured; return what was wrong."""
        size = self._team.size
        for pattern, record in RECORDS.items():
            say(f"{pattern}_bytes", self.counts[pattern] * record * size)
        say("files", self.counts["files"] * size)
        say("synced_files", self.counts["synced"] * size)
        for kept in sorted(self.kept):
            say("warning", f"{kept}: pages stayed in memory after posix_fadvise: what was read then does not count")
        for name, wrong in self.wrong.items():
            print(f"verify {name} every record, every byte {'FAILED' if wrong else 'passed'}")
        for label, seconds in self.samples.items():
            work, unit = self.work(label)
            say_samples(label, seconds)
            say_result(label, seconds, unit, work)
        return [f"{name}: {wrong} records are not what was written" for name, wrong in self.wrong.items() if wrong]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1: something read was wrong, or a rank is missing; 3: the folder cannot be used."""
    parser = argparse.ArgumentParser(prog="transect.hpc.probes.files", description=__doc__)
    parser.add_argument("--folder", required=True, help="what is made begins with this path: its folder has to exist")
    parser.add_argument("--ranks", type=int, help="how many ranks the cell has")
    parser.add_argument("--limit", type=int, default=1 << 30, help="most bytes that a rank has on the disk at a time")
    parser.add_argument("--seconds", type=float, default=40.0, help="budget, but for the least of three rounds")
    given = parser.parse_args(arguments)
    import mpi4py
    import numpy as np
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if world.rank == 0:
        head("file", _NOTE, np.__version__)
        say("mpi", f"{MPI.Get_library_version().split(',')[0].strip()}, mpi4py {mpi4py.__version__}")
        say("ranks", world.size)
    if problems := require_world(world.size, given.ranks):
        return _end(world.rank, problems)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    team = None
    try:
        team = Team(MPI, given.folder)
        team.see()
        kind, direct = team.agreed((file_system(team.folder), takes_direct(team.folder)) if team.rank == 0 else None)
        bounds, why = what_bounds(team.folder.parent, kind)
        if team.rank == 0:
            say("nodes", team.nodes)
            say("file_system", kind)
            say("storage", bounds)
            say("free_bytes", room(team.folder))
            say("past_the_cache", "O_DIRECT" if direct else "posix_fadvise after fsync: O_DIRECT is refused here")
            say("counting", COUNTING)
            if why:
                say("warning", why)
        probe = _Probe(np, team, given.limit, given.seconds, direct)
        probe.fit()
        probe.measure()
        team.leave()
    except Unusable as error:
        _flee(team)
        if world.rank:
            return 0
        say("status", f"unusable: {error}")
        print("end of transect probe file", flush=True)
        return BAD_FOLDER
    except BaseException:
        _flee(team)
        raise
    return _end(world.rank, probe.print() if world.rank == 0 else [])


def _end(rank: int, problems: list[str]) -> int:
    """Let rank 0 alone tell: a launcher may end all ranks at the first failure."""
    return tail("file", problems) if rank == 0 else 0


def _flee(team: Team | None) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they come twice, by the launcher and directly
    if team is not None:
        team.flee()


if __name__ == "__main__":
    raise SystemExit(main())
