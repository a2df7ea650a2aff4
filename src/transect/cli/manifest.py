"""`transect manifest`: what is in a folder of data, and whether it still is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from transect.cli.output import Json, print_lines
from transect.domain.errors import BadInput


def manifest(
    folder: Annotated[Path, typer.Argument(help="a folder of data")],
    out: Annotated[Path | None, typer.Option(help="the file to write: FOLDER.manifest, unless given")] = None,
    check: Annotated[Path | None, typer.Option(help="hold the folder to this manifest, and write nothing")] = None,
    as_json: Json = False,
) -> None:
    """Write name, bytes and SHA-256 of every file in a folder, and one hash over all; or check a folder against such a file.

    No absolute path is in it: commit it, share it, and give it to a study (`dataset_options.manifest`). Hidden files are no
    part of it. Exit code 1: the folder is another. Example: transect manifest data/intel-scenes
    """
    from transect.domain import folder_manifest

    if out is not None and check is not None:
        raise BadInput("expected --out or --check, not both")
    # Not `absolute`: a folder may be given as `..`.
    place = Path(os.path.abspath(folder))  # noqa: PTH100
    file = check or out or place.parent / f"{place.name}.manifest"
    if check is not None:
        folder_manifest.check_manifest(folder, file)
        made = folder_manifest.read_manifest(file)
    elif file.exists():
        raise BadInput(f"{file}: is there already: check the folder with --check {file}, or remove it")
    else:
        made = folder_manifest.write_manifest(folder, file)
    if as_json:
        facts = {"folder": str(folder), "manifest": str(file), "files": made.files, "bytes": made.bytes}
        print(json.dumps(facts | {"sha256": made.sha256}, indent=1))
    else:
        said = "is as it says" if check else "written"
        print_lines(f"{file}: {said}: {made.text.removeprefix('# ')}")
