"""The docking energy kernel, as a benchmark."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from transect.domain.axes.bench import BenchCell
from transect.domain.record import Cause
from transect.domain.registry import Registry
from transect.hpc.benchmarks._decks import FOLDER, NAMED, named_deck
from transect.hpc.benchmarks._options import OptionError, one_of, whole
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark
from transect.hpc.docking.base import PROGRAMMING_MODELS, ProgrammingModel

if TYPE_CHECKING:
    from transect.hpc.base import Run

_IMPLEMENTATION = "numba"
_SYNTHETIC = "synthetic"
_SIZES = ("tiny", "small", "medium", "large")
_FILES = ("ligand.in", "protein.in", "forcefield.in", "poses.in")
# numpy is some ten times slower: both take seconds on one core.
_POSES, _POSES_OF = 16384, {"numpy": 2048}
_ITERATIONS = 8
_WARM_UPS = 2  # as many as miniBUDE; the first one compiles
_WORK_GROUP = {"cpu": 1, "cuda": 64}
_PINS = ("none", "close", "spread", "cores")
# Exit codes of the probe, of which each means one thing: see its module.
_CAUSES = {1: Cause.WRONG_RESULT, 2: Cause.BAD_INPUT, 3: Cause.MISSING_DEPENDENCY, 4: Cause.CRASH}
_STATUS = re.compile(r"^status: (?:\w+: )?(.+)$", re.MULTILINE)


def _model(cell: BenchCell) -> ProgrammingModel:
    """Return the programming model. Raises OptionError for a name that no model has."""
    name = one_of(cell, "implementation", _IMPLEMENTATION, tuple(PROGRAMMING_MODELS))
    return PROGRAMMING_MODELS.get(name)


def _deck(cell: BenchCell) -> str:
    """Return a word for a deck, or its folder. Raises OptionError when that is no deck."""
    given = str(cell.option("deck", _SYNTHETIC))
    if given in (_SYNTHETIC, *_SIZES):
        return given
    folder = str(named_deck(given)) if given in NAMED else os.path.expandvars(given)
    if not folder.startswith("/"):
        raise OptionError(
            f"option deck: expected one of {', '.join((_SYNTHETIC, *_SIZES, *NAMED))} or an absolute path, "
            f"found {given!r}" + (", which no variable of the environment fills in" if "$" in folder else "")
        )
    missing = [name for name in _FILES if not (Path(folder) / name).is_file()]
    if missing:
        raise OptionError(f"option deck: {given} lacks {', '.join(missing)}")
    return folder


def _chosen(cell: BenchCell, name: str, model: ProgrammingModel, has: tuple[str, ...]) -> str:
    """Return an option of some models, "" where the model has none of its kind."""
    if not has:
        if given := cell.option(name, ""):
            raise OptionError(f"option {name}: {model.name} has none, found {given!r}")
        return ""
    return one_of(cell, name, has[0], has)


def _own_flags(cell: BenchCell, model: ProgrammingModel) -> list[str]:
    """Return what only some models have: compiler, schedule, places, sizes of groups."""
    compiler = _chosen(cell, "compiler", model, model.compilers)
    schedule = _chosen(cell, "schedule", model, model.schedules)
    flags = ["--compiler", compiler] if compiler else []
    flags += ["--schedule", schedule] if schedule else []
    chunk = whole(cell, "chunk", 0, 0)
    if chunk and not schedule:
        raise OptionError(f"option chunk: {model.name} has none, found {chunk}")
    flags += ["--chunk", str(chunk)] if chunk else []
    if not model.work_groups and cell.option("work_group", 0):
        raise OptionError(f"option work_group: {model.name} has none")
    if model.work_groups:
        group = whole(cell, "work_group", _WORK_GROUP.get(cell.device, 1))
        flags += ["--work-group", str(group)]
    pin = one_of(cell, "pin", "none", _PINS)
    if pin != "none" and not model.pinning:
        raise OptionError(f"option pin: {model.name} pins no threads, found {pin!r}")
    flags += ["--pin", pin] if pin != "none" else []
    places = one_of(cell, "places", "cores", ("cores", "threads"))
    if places != "cores" and pin == "none":
        raise OptionError("option places: only pinned threads have places, and pin is none")
    flags += ["--places", places] if pin != "none" else []
    flags += ["--pinning", model.pinning] if model.pinning == "openmp" else []
    program = model.program(compiler, cell.device)
    return flags + (["--program", shlex.join(program)] if program else [])


@BENCHMARKS.register("docking-probe")
class DockingProbe(Benchmark):
    """Runs `transect.hpc.probes.docking` in one of many programming models."""

    name = "docking-probe"
    environment = "docking"
    python = ("-m", "transect.hpc.probes.docking")
    devices = ("cpu", "cuda")
    turns_by = "pose_time"
    options: ClassVar[dict[str, str]] = {
        "implementation": f"a [programming model](plugins.md#programming-model); default {_IMPLEMENTATION}",
        "deck": f"{', '.join(_SIZES)}; {' or '.join(NAMED)}, of ${FOLDER} or of the folder data of a miniBUDE on PATH; or the "
        f"absolute path of a deck of miniBUDE, in which $VARIABLES are filled in; default {_SYNTHETIC}: as medium",
        "poses": f"how many of the deck's poses; default {_POSES}, with numpy {_POSES_OF['numpy']}",
        "iterations": f"timed runs of the kernel; default {_ITERATIONS}",
        "warm_ups": f"runs before them, of which the first may compile; default {_WARM_UPS}",
        "compiler": "of models with several: gcc, clang, nvc; default gcc",
        "schedule": "static, dynamic or guided, where a model has it; default static",
        "chunk": "work-items that are dealt out together; default: the schedule's own",
        "ppwi": "poses per work-item; default: the model's own",
        "work_group": "work-items of a group, where a model has them; default 1 on CPUs, 64 on GPUs",
        "pin": "close, spread or none; cores is close; default none",
        "places": "what a pinned thread gets: cores, or the hardware threads of cores; default cores",
    }

    smoke: ClassVar[dict[str, int | float | str]] = {"poses": 1024, "iterations": 2, "warm_ups": 1}

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: its options have to hold, and its model to do it."""
        try:
            devices = _model(cell).devices
        except OptionError as error:
            return str(error)
        if cell.device not in devices:
            return f"its kernel runs on {' or '.join(devices)}, not on '{cell.device}'"
        return super().supports(cell) or _model(cell).supports(cell)

    def flags(self, cell: BenchCell) -> list[str]:
        """Return its options."""
        model = _model(cell)
        poses = whole(cell, "poses", _POSES_OF.get(model.name, _POSES))
        per_item = whole(cell, "ppwi", model.default_per_item(cell.device))
        if per_item not in model.per_item:
            expected = ", ".join(map(str, model.per_item))
            raise OptionError(f"option ppwi: {model.name} has {expected}, found {per_item}")
        flags = ["--threads", str(cell.threads), "--implementation", model.name, "--deck", _deck(cell)]
        flags += ["--poses", str(poses)]
        flags += ["--iterations", str(whole(cell, "iterations", _ITERATIONS))]
        flags += ["--warm-ups", str(whole(cell, "warm_ups", _WARM_UPS))]
        flags += ["--ppwi", str(per_item), "--device", cell.device]
        return flags + _own_flags(cell, model)

    def environment_of(self, cell: BenchCell) -> str:
        """Return the model's, which has its compiler."""
        name = str(cell.option("implementation", _IMPLEMENTATION))
        if name not in PROGRAMMING_MODELS:  # supports() says so
            return self.environment
        return PROGRAMMING_MODELS.get(name).environment

    def plugins(self, cell: BenchCell) -> list[tuple[Registry[Any], str]]:
        """Return the programming model."""
        name = str(cell.option("implementation", _IMPLEMENTATION))
        return [(PROGRAMMING_MODELS, name)] if name in PROGRAMMING_MODELS else []

    def iterations(self, run: Run) -> list[float]:
        """Return the time for a pose in each run of the kernel."""
        poses = float(str(run.parameters["poses"]))
        return [seconds / poses for seconds in run.samples["kernel"].values]

    def verdict(self, folder: Path, code: int) -> tuple[Cause, str] | None:
        """Return the cause that the probe's exit code stands for, in the words of its log."""
        log = folder / "output.log"
        match = _STATUS.search(log.read_text(errors="replace")) if log.is_file() else None
        return (_CAUSES[code], match[1]) if match and code in _CAUSES else None

    def files(self, cell: BenchCell) -> list[Path]:
        """Return the deck's folder."""
        given = str(cell.option("deck", _SYNTHETIC))
        if given in (_SYNTHETIC, *_SIZES):
            return []
        try:
            return [named_deck(given) if given in NAMED else Path(os.path.expandvars(given))]
        except OptionError:  # supports() says so
            return []
