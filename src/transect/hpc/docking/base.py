"""What a programming model of the docking kernel is: the interface and the registry.

A model names a program that follows the contract of docs/docking.md, or code of the probe itself, and
says which of the probe's options it has.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from transect.domain.registry import Plugin, Registry

# Poses per work-item of models whose poses are lanes of a CPU's registers, and of those of devices.
LANES = (1, 4, 8, 16, 32, 64, 128, 256)
WORK_ITEMS = (1, 2, 4, 8, 16)


class ProgrammingModel(Plugin, ABC):
    """One way to write the kernel. Registered with `@PROGRAMMING_MODELS.register(name)`.

    Required are `name`, `environment` and `per_item`. What it does not have stays empty: a cell that asks for it is
    skipped with a sentence.
    """

    # The name by which it is registered.
    name: ClassVar[str]
    # Whose Python runs the probe, and whose `bin` holds the program.
    environment: ClassVar[str]
    # On which devices it runs.
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    # Compilers that make it, the default first.
    compilers: ClassVar[tuple[str, ...]] = ()
    # Schedules of its loop, the default first.
    schedules: ClassVar[tuple[str, ...]] = ()
    # Poses per work-item that it can have, the default first: one at least.
    per_item: ClassVar[tuple[int, ...]] = ()
    # Whose place the probe chooses: `openmp` by its variables, `cpus` by an option of the program or
    # a call of the probe, or nobody's.
    pinning: ClassVar[str] = ""
    # The program, in which {compiler} and {device} are filled in; empty when the probe itself is the kernel.
    executable: ClassVar[str] = ""
    # Whether the size of a work-group is an option.
    work_groups: ClassVar[bool] = False

    # The poses per work-item of a cell that does not say, by device; else the first.
    typical: ClassVar[dict[str, int]] = {}

    def default_per_item(self, device: str) -> int:
        """Return the poses per work-item of a cell that does not say."""
        return self.typical.get(device, self.per_item[0])

    def program(self, compiler: str, device: str) -> tuple[str, ...]:
        """Return the program's argument list, or nothing when the probe itself is the kernel.

        The first word is a program of the environment, or else of the machine.
        """
        return (self.executable.format(compiler=compiler, device=device),) if self.executable else ()


PROGRAMMING_MODELS: Registry[ProgrammingModel] = Registry("programming model", "transect.hpc.docking", ProgrammingModel)
