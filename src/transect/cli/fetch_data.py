"""`transect fetch-data`: a published data set, with its licence, by the user's own token."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from transect.cli.output import Json, print_lines, print_table
from transect.domain.errors import BadInput
from transect.domain.terminal import overwrite


def fetch_data(
    name: Annotated[str | None, typer.Argument(help="a data set's name, or a file that defines one")] = None,
    show: Annotated[bool, typer.Option("--list", help="list the data sets that are defined")] = False,
    to: Annotated[
        Path | None, typer.Option(help="its folder, which must not be there: data/NAME, unless given")
    ] = None,
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="you have read the licence and accept it: asked for once")
    ] = False,
    archives: Annotated[
        Path | None, typer.Option(help="a folder with files of it that you fetched in a browser")
    ] = None,
    ids: Annotated[
        Path | None, typer.Option(help="of a set by single images: a file with a line SUBSET/ID for each")
    ] = None,
    classes: Annotated[str | None, typer.Option(help="or the classes, separated by commas")] = None,
    per_class: Annotated[int | None, typer.Option(min=2, help="and how many images of each")] = None,
    as_json: Json = False,
) -> None:
    """Fetch a published data set: shows its licence, checks every file, writes a manifest beside the folder.

    What needs an account takes your own token, from a variable of the environment or a file, never from the command line;
    it is neither shown nor kept. Cut off or killed, the same command goes on; where all is there it checks it.
    Example: transect fetch-data openimages --accept-licence
    """
    from transect.planning.study import names_of

    if show:
        named = names_of("data set")
        if as_json:
            print(json.dumps(named, indent=1))
        else:
            print_table(("data set", "what"), list(named.items()))
        return
    if name is None:
        raise BadInput("expected a data set's name: `transect fetch-data --list` has them")
    from transect.domain.folder_manifest import read_manifest
    from transect.engine.fetch.definition import load_definition
    from transect.engine.fetch.fetch import Wish, fetch
    from transect.engine.run_block import end_on_signals

    end_on_signals()
    called, definition = load_definition(name)
    folder = (to or Path("data") / called).absolute()
    chosen = tuple(part.strip() for part in classes.split(",")) if classes else ()
    wish = Wish(to=folder, accept=accept_licence, archives=archives, ids=ids, classes=chosen, per_class=per_class)
    fetched = fetch(called, definition, wish, _quiet if as_json else print_lines, _progress)
    use = definition.use.replace("{folder}", str(folder))
    if as_json:
        made = read_manifest(wish.manifest)
        facts = {"folder": str(folder), "manifest": str(wish.manifest), "fetched": fetched, "use": use}
        print(json.dumps(facts | {"files": made.files, "bytes": made.bytes, "sha256": made.sha256}, indent=1))
    else:
        print_lines(f"in a study: {use}")


def _quiet(line: str) -> None:
    pass


class _Shown:
    """What is shown of one file on a terminal, in its place; elsewhere nothing."""

    def __init__(self, what: str) -> None:
        self._what, self._last = what, -1

    def __call__(self, done: int, total: int | None) -> None:
        percent = 100 * done // total if total else done // 1_000_000
        if percent != self._last and sys.stderr.isatty():
            self._last = percent
            overwrite(f"{self._what}: {percent} {'%' if total else 'MB'}")
            if done == total:
                overwrite("")


def _progress(what: str) -> _Shown:
    return _Shown(what)
