"""`transect conda`: an environment's pins as a file for conda, where a site allows nothing else."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from transect.cli.output import print_lines
from transect.domain.errors import BadInput


def conda(environment: Annotated[str, typer.Argument(help="a folder under envs/, such as `base`")]) -> None:
    """Print an environment file for conda with the pins of an environment; the interpreter is conda's, the rest pip's.

    Then name its interpreter in the system file: environments: {torch: {python: /the/folder/bin/python}}.
    Example: transect conda torch > torch.yaml && conda env create --file torch.yaml --prefix /the/folder
    """
    from transect.planning.environments import environment_source, needed_environments, pinned

    folder = environment_source(environment)
    if (folder / "build.sh").is_file() or needed_environments(environment):
        raise BadInput(
            f"environment '{environment}' is compiled by {folder / 'build.sh'}, or stands on others: conda cannot make it"
        )
    print_lines(
        f"# Environment '{environment}' of transect. Its cells run here when the system file has",
        f"#   environments: {{{environment}: {{python: FOLDER/bin/python}}}}",
        f"name: transect-{environment}",
        "channels: [conda-forge, nodefaults]",
        "dependencies:",
        f"  - python={platform.python_version()}",
        "  - pip",
        "  - pip:",
        *(f"      - {line}" for line in pinned(folder)),
    )
