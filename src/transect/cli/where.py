"""`transect where`: the folders that transect reads and writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from transect.cli.output import Json, print_lines, print_table
from transect.domain.errors import unknown_name
from transect.domain.paths import DATA, ROOT, config_folders, environments_folder


def where(
    name: Annotated[str | None, typer.Argument(help="print one of them alone, for a script")] = None,
    as_json: Json = False,
) -> None:
    """Print the folders that transect reads and writes: its workflow, studies, environments, results.

    Studies and systems are looked for by name in each `config` folder in turn. In a workflow of your own:
    module transect: snakefile: the path that `transect where snakefile` prints.
    """
    places = {
        "snakefile": ROOT / "workflow" / "Snakefile",
        **{f"config {number}": place.absolute() for number, place in enumerate(config_folders(), 1)},
        "profiles": ROOT / "profiles",
        "schemas": DATA / "schemas",
        "skill": DATA / "SKILL.md",
        "constraints": ROOT / "envs" / "driver" / "requirements.txt",
        "environments": environments_folder(),
        "results": Path("results").absolute(),
    }
    if name is not None and name not in places:
        raise unknown_name("place", name, places)
    if as_json:
        print(json.dumps({key: str(path) for key, path in places.items()}, indent=1))
    elif name is not None:
        print_lines(str(places[name]))
    else:
        rows = [(key, str(path), "" if path.exists() else "not there yet") for key, path in places.items()]
        print_table(("place", "path", ""), rows)
