"""`--container` of `transect launch`, and `transect image`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from transect.cli.output import print_lines
from transect.domain.errors import MissingDependency


@dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """What goes before a command, the variables that go with it, and where its mpiexec lies."""

    wrap: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    bin: Path | None = None


def _here() -> list[str]:
    """Return the wrappers whose programs are here; last those that run no image before it is imported."""
    from transect.launch.wrapping import WRAPPERS, program_says

    found = [name for name in WRAPPERS.names() if program_says(name) is not None]
    return sorted(found, key=lambda name: WRAPPERS.get(name).form == "imported")


def choose_container(given: str, *, gpus: bool = False) -> Container:
    """Read `[WRAPPER:]IMAGE`, where IMAGE is a file, a folder, a URI or the name of an environment."""
    from transect.launch.images import complaint, image_facts
    from transect.launch.wrapping import USUAL, WRAPPERS, wrapped
    from transect.planning.environments import has_environment
    from transect.planning.images import image_folder

    wrapper, colon, image = given.partition(":")
    if not colon or image.startswith("//") or wrapper not in WRAPPERS.names():
        wrapper, image = "", given
    place, variables, folder = image, dict[str, str](), None
    if has_environment(image) and not Path(image).exists():
        folder = image_folder(image)
        facts = image_facts(folder)
        if facts is None:
            raise MissingDependency(
                f"--container {given}: the image of environment '{image}' is not made yet: `transect image {image}`"
            )
        place, folder = str(folder), Path(facts["environment"]) / "bin"
        # The environment's own programs come first inside, and its mpiexec starts the ranks.
        variables["PATH"] = f"{folder}:{os.environ.get('PATH', os.defpath)}"
        wrapper = wrapper or next(iter(_here()), USUAL)
    wrapper = wrapper or USUAL
    if image and (reason := complaint(place)) is not None:
        raise MissingDependency(f"--container {given}: {reason}")
    # Apptainer shows the working folder by itself, and where it may not its own words say why.
    binds = () if wrapper == USUAL and folder is None else (os.getcwd(),)  # noqa: PTH109 text is wanted
    argv, set_inside = wrapped(place, wrapper=wrapper, gpus=gpus, binds=binds, workdir=next(iter(binds), None))
    return Container(wrap=argv, variables=set_inside | variables, bin=folder)


def image(
    environment: Annotated[str, typer.Argument(help="a folder under envs/, such as `base`")],
    wrapper: Annotated[str | None, typer.Option(help="try it with this one; default: the first that is here")] = None,
) -> None:
    """Make the image of an environment, and print where it lies.

    Example: transect image base --wrapper charliecloud
    """
    from transect.engine.build_environment import made
    from transect.engine.run_block import end_on_signals
    from transect.launch.images import in_container
    from transect.launch.wrapping import WRAPPERS
    from transect.planning.environments import environment_source

    environment_source(environment)
    if wrapper is not None:
        WRAPPERS.get(wrapper, "--wrapper")
    chosen = wrapper or next(iter(_here()), None)
    if chosen is None:
        programs = ", ".join(p for name in WRAPPERS.names() for p in WRAPPERS.get(name).programs)
        raise MissingDependency(f"no container program is on PATH: looked for {programs}")
    end_on_signals()
    log = Path(os.environ.get("TMPDIR", "/tmp")) / f"transect-image-{environment}-{os.getpid()}.log"  # noqa: S108
    facts = made(in_container(environment, chosen), None, log)
    if facts["status"] != "ok":
        raise MissingDependency(f"environment '{facts['name']}': {facts['message']}")
    log.unlink(missing_ok=True)
    print_lines(str(facts["image"]))
