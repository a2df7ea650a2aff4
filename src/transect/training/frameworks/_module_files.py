"""Makes modules and datasets of torch from the user's files."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.domain.errors import FAULTS, BadInput
from transect.training.frameworks._torch_modules import draw_from
from transect.training.own_files import member_of

if TYPE_CHECKING:
    import torch


def make_module(file: Path, name: str, options: dict[str, Any]) -> torch.nn.Module:
    """Return the module, the same each time but for its weights; the generators of torch are as before."""
    import torch

    with torch.random.fork_rng():
        maker = _drawn_alike(file, name)
        return called(maker, f"{file}:{name}", options)


def make_dataset(options: dict[str, Any]) -> Any:
    """Return what the user's function gives: the same each time, also where it draws, as `random_split` does."""
    maker = _drawn_alike(Path(options["path"]), options["name"])
    return maker(**options.get("arguments", {}))


def _drawn_alike(file: Path, name: str) -> Any:
    """Return a member that draws from the same numbers each time, as its file did when it was imported."""
    draw_from(0)
    member = member_of(file, name)
    draw_from(0)
    return member


def called(maker: Any, where: str, options: dict[str, Any]) -> torch.nn.Module:
    """Call what gives the module. Raises BadInput where it raises, or gives something else."""
    import torch

    try:
        # Several are trained beside each other: none of them may be that of the file.
        made = deepcopy(maker) if isinstance(maker, torch.nn.Module) else maker(**options)
    except FAULTS as error:
        raise BadInput(f"{where}: called with {options}: {type(error).__name__}: {error}") from error
    if not isinstance(made, torch.nn.Module):
        raise BadInput(f"{where}: gives a {type(made).__name__}: expected a torch.nn.Module")
    return made
