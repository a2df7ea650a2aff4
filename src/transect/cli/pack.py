"""`transect pack`: a study's results as one file; `transect unpack`: the folder of it again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from transect.cli.output import Json, print_lines
from transect.cli.places import results_of


def pack(
    study: Annotated[str, typer.Argument(help="a study's name or file, or its folder of results")],
    out: Annotated[Path | None, typer.Option(help="the file to write: STUDY.tar.gz here, unless given")] = None,
    results: Annotated[Path, typer.Option(help="folder of all results")] = Path("results"),
    as_json: Json = False,
) -> None:
    """Pack a study's results into one file, with the checksum of every file in it.

    Regular files are packed, with their times; links are not followed, and are named. Refused while the study runs.
    `transect unpack` makes the folder again, elsewhere. Look through logs before you give it to others.
    Example: transect pack quick --out quick.tar.gz
    """
    from transect.engine import pack as packing
    from transect.engine.run_block import end_on_signals

    end_on_signals()  # else a half one stays
    paths = results_of(study, results)
    file = out or Path(f"{paths.study}.tar.gz")
    packed = packing.pack(paths, file)
    size = file.stat().st_size
    if as_json:
        print(json.dumps({"file": str(file), "packed_bytes": size, **asdict(packed)}, indent=1))
        return
    print_lines(f"{file}: {len(packed.files)} files, {packed.bytes / 1e6:.1f} MB, packed {size / 1e6:.1f} MB")
    print_lines(*(f"  not in it: {name}: {what}" for name, what in packed.left_out.items()))


def unpack(
    file: Annotated[Path, typer.Argument(help="what `transect pack` wrote")],
    results: Annotated[Path, typer.Option(help="folder of all results: the study's is made in it")] = Path("results"),
    as_json: Json = False,
) -> None:
    """Check a packed file, and make the folder of its study, which must not be there yet.

    Every checksum is checked before anything is written. A file that is not whole, or that holds links, devices or paths out of
    the folder, is refused. Then `transect verify`, `report` and `compare` work on the folder.
    Example: transect unpack quick.tar.gz --results elsewhere
    """
    from transect.engine import pack as packing
    from transect.engine.run_block import end_on_signals

    end_on_signals()  # else a half one stays
    packed, folder = packing.unpack(file, results)
    if as_json:
        print(json.dumps({"folder": str(folder), **asdict(packed)}, indent=1))
        return
    print_lines(
        f"{folder}: {len(packed.files)} files, {packed.bytes / 1e6:.1f} MB, packed by transect {packed.version} on {packed.made}"
    )
    print_lines(*(f"  was not packed: {name}: {what}" for name, what in packed.left_out.items()))
    halves = sorted(results.glob(f".{packed.study}.unpacked-*"))
    print_lines(*(f"  {half}: half a folder, of one that was killed or still unpacks" for half in halves))
