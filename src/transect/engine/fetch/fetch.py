"""A published data set into its folder: licence, token, room, files, checksums, manifest, and only then its name."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import requests
from requests.auth import AuthBase

from transect.domain.errors import BadInput
from transect.domain.files import free_bytes
from transect.domain.folder_manifest import check_manifest, read_manifest, write_manifest
from transect.engine.fetch.archives import Broken, unpack
from transect.engine.fetch.choice import by_class, listed
from transect.engine.fetch.definition import DataFile, Definition, authentication
from transect.engine.fetch.download import Expected, Gone, Got, Told, check_file, download
from transect.engine.fetch.known import Known
from transect.engine.locks import Held

# Single images at once: a bucket answers each after some time.
_AT_ONCE = 8
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What a person asked for."""

    to: Path
    accept: bool = False
    # A folder with files that were fetched by hand.
    archives: Path | None = None
    ids: Path | None = None
    classes: Sequence[str] = ()
    per_class: int | None = None

    @property
    def manifest(self) -> Path:
        """Beside the folder, so that it is none of its files."""
        return self.to.with_name(f"{self.to.name}.manifest")

    @property
    def work(self) -> Path:
        """What is not yet whole."""
        return self.to.with_name(f".{self.to.name}.fetch")

    @property
    def chooses(self) -> bool:
        """Whether images are named."""
        return bool(self.ids or self.classes or self.per_class)


def fetch(name: str, definition: Definition, wish: Wish, say: Say, told: Callable[[str], Told]) -> bool:
    """Fetch a data set; return whether anything had to be fetched. What was begun before goes on.

    Raises BadInput with one message where something is missing: the licence's acceptance, a token, room, a file; and for
    whatever is not what its publisher, its first fetch or its manifest says.
    """
    if wish.chooses and definition.slice is None:
        raise BadInput(f"{name}: is fetched whole: --ids, --classes and --per-class are for sets of which parts are")
    if wish.ids is not None and (wish.classes or wish.per_class):
        raise BadInput(f"{name}: expected --ids, or --classes and --per-class, not both")
    if wish.archives is not None and not wish.archives.is_dir():
        raise BadInput(
            f"{wish.archives}: no such folder, expected the one with {', '.join(f.name for f in definition.files)}"
        )
    if os.path.lexists(wish.to):
        _check_there(name, wish, say)
        return False
    known = Known(name)
    _ask(name, definition, wish, known)
    auth = authentication(definition.token, _by_hand(name, definition), name) if _missing(definition, wish) else None
    with _working(wish), requests.Session() as session:
        # What an earlier try unpacked.
        shutil.rmtree(wish.work / "tree", ignore_errors=True)
        _check_room(definition, wish)
        source = _Source(definition=definition, wish=wish, known=known, session=session, auth=auth, say=say, told=told)
        tree = source.tree()
        if wish.manifest.exists():
            check_manifest(tree, wish.manifest)
            say(f"{wish.to}: the same as {wish.manifest} says")
        else:
            made = write_manifest(tree, wish.manifest)
            say(f"{wish.manifest}: {made.text.removeprefix('# ')}")
        tree.rename(wish.to)
    shutil.rmtree(wish.work, ignore_errors=True)
    return True


def _check_there(name: str, wish: Wish, say: Say) -> None:
    if wish.chooses:
        raise BadInput(
            f"{wish.to}: is there already: move it away, or fetch these images into another folder with --to"
        )
    if not wish.manifest.exists():
        raise BadInput(
            f"{wish.to}: is there already, without {wish.manifest}: move it away, or use another folder with --to"
        )
    say(f"{wish.to}: is there already: checking it against {wish.manifest}")
    check_manifest(wish.to, wish.manifest)
    # Of a try that was killed when all was in its place.
    shutil.rmtree(wish.work, ignore_errors=True)
    say(f"{wish.to}: {name}, {read_manifest(wish.manifest).text.removeprefix('# ')}: as it was fetched")


def _ask(name: str, definition: Definition, wish: Wish, known: Known) -> None:
    """Raise BadInput with the licence unless it is accepted, now or once before."""
    licence = definition.licence
    if known.accepted(licence):
        return
    if not wish.accept:
        raise BadInput(
            f"{name}: {definition.title}, {definition.home}",
            f"  licence: {licence.name}, {licence.url}",
            f"  terms: {licence.terms}",
            f"  who may use it: {definition.who}",
            "  read them, and if you accept them run the same again with --accept-licence",
        )
    known.accept(licence)


def _missing(definition: Definition, wish: Wish) -> list[DataFile]:
    """Return the files that are not in the folder of what was fetched by hand."""
    return [file for file in definition.files if wish.archives is None or not (wish.archives / file.name).is_file()]


def _by_hand(name: str, definition: Definition) -> str:
    files = ", ".join(file.name for file in definition.files)
    return f"fetch {files} in a browser into FOLDER, and run: transect fetch-data {name} --archives FOLDER"


@contextmanager
def _working(wish: Wish) -> Iterator[None]:
    """Hold the folder of what is not yet whole: two who fetch the same would write into each other's files."""
    wish.work.mkdir(parents=True, exist_ok=True)
    lock = Held(wish.work / "running.json", lambda: None)
    holder = lock.take()
    if holder is not None:
        who = f"process {holder.get('pid', '?')} on {holder.get('host', '?')}"
        raise BadInput(f"{wish.to}: is being fetched by {who}: wait for it, or use another folder with --to")
    try:
        yield
    finally:
        lock.give_back()


def _check_room(definition: Definition, wish: Wish) -> None:
    """Raise BadInput where what is left to fetch, and what it unpacks to, needs more room than there is."""
    needed = 0
    for file in definition.files:
        got = wish.work / "files" / file.name
        came = next((path.stat().st_size for path in (got, got.with_name(f"{got.name}.part")) if path.exists()), 0)
        by_hand = wish.archives is not None and (wish.archives / file.name).is_file()
        needed += 0 if by_hand else max(0, (file.bytes or 0) - came)
        needed += file.most_bytes or 0
    if needed > (free := free_bytes(wish.work)):
        raise BadInput(f"{wish.to.parent}: has {free} bytes free, expected {needed} to fetch and unpack")


@dataclass(kw_only=True, slots=True)
class _Source:
    """Brings the files of one definition into the work folder."""

    definition: Definition
    wish: Wish
    known: Known
    session: requests.Session
    auth: AuthBase | None
    say: Say
    told: Callable[[str], Told]
    _files: dict[str, Path] = field(default_factory=dict)
    # What nobody gave a checksum of: known when it could be used, as a page that asks to log in cannot.
    _first: dict[str, Got] = field(default_factory=dict)

    def tree(self) -> Path:
        """Return the folder as it will be, still under another name."""
        for file in self.definition.files:
            self._files[file.name] = self._file(file)
        tree = self.wish.work / "tree"
        tree.mkdir()
        for file in self.definition.files:
            path = self._files[file.name]
            if file.into is None or file.most_bytes is None:
                # A file fetched by hand stays its owner's, who may change it.
                (_same if path.is_relative_to(self.wish.work) else shutil.copyfile)(path, tree / file.name)
                continue
            try:
                count = unpack(path, tree / file.into, file.most_bytes, nested=file.nested)
            except Broken:
                if file.url in self._first and path.is_relative_to(self.wish.work):
                    path.unlink()
                raise
            self.say(f"{file.name}: {count} files unpacked")
            for inner, sha256 in file.holds.items():
                if not (place := tree / file.into / inner).is_file():
                    raise BadInput(f"{file.name}: has no {inner}, expected it with sha256 {sha256}")
                check_file(place, Expected(sha256=sha256), f"{inner} of {file.name}")
        if self.definition.slice is not None:
            self._images(tree)
        for url, got in self._first.items():
            self.known.note(url, got)
        self.known.save()
        return tree

    def _file(self, file: DataFile) -> Path:
        """Fetch one file, or take the one that was fetched by hand, and hold it to its checksum."""
        expected = self.known.expected(file.url, file)
        by_hand = self.wish.archives / file.name if self.wish.archives is not None else None
        if by_hand is not None and by_hand.is_file():
            path = by_hand
            got = check_file(path, expected, str(path))
        else:
            path = self.wish.work / "files" / file.name
            path.parent.mkdir(exist_ok=True)
            got = self._take(file.url, path, expected)
        checked = "sha256" if expected.sha256 else "md5"
        if file.md5 or file.sha256:
            how = f"{checked} as its publisher says"
        elif expected.sha256:
            how = "sha256 as at the first fetch"
        else:
            how = f"no checksum of its publisher's: {got.sha256} is kept in {self.known.path}, to which later fetches are held"
            self._first[file.url] = got
        self.say(f"{file.name}: {got.bytes / 1e6:.1f} MB, {how}")
        return path

    def _take(self, url: str, path: Path, expected: Expected) -> Got:
        """Fetch what is not there from an earlier try."""
        if path.is_file():
            with contextlib.suppress(BadInput):
                return check_file(path, expected, path.name)
            path.unlink()
        assert self.auth is not None, "as there is something to fetch"
        return download(self.session, url, self.auth, path, expected, self.told(path.name))

    def _images(self, tree: Path) -> None:
        """Fetch single images, some at once, and put each beside the others of its part."""
        part, wish = self.definition.slice, self.wish
        assert part is not None
        classes, per_class = wish.classes or part.classes, wish.per_class or part.per_class
        chosen = listed(wish.ids, part) if wish.ids is not None else by_class(tree, part, classes, per_class)
        if self.auth is None:
            self.auth = authentication(self.definition.token, "", wish.to.name)
        gone: set[str] = set()
        while lost := self._fetch_images(tree, chosen):
            gone |= lost
            if wish.ids is not None or 2 * len(gone) > len(chosen):
                raise Gone(f"{len(gone)} of {len(chosen)} images are there no more, such as {min(gone)}")
            # Of millions a few are always gone: the next ones of their classes come instead.
            chosen = by_class(tree, part, classes, per_class, gone)
        if gone:
            self.say(f"there no more, so others of their classes came instead: {', '.join(sorted(gone))}")
        self.say(f"{len(chosen)} images, whose checksums are kept in {self.known.path}: later fetches are held to them")

    def _fetch_images(self, tree: Path, chosen: list[str]) -> set[str]:
        """Put all into the tree, or return those that the publisher has no more; one that was there once is missed."""
        part, wish = self.definition.slice, self.wish
        assert part is not None
        images = wish.work / "images"
        for subset in {image.partition("/")[0] for image in chosen}:
            (images / subset).mkdir(parents=True, exist_ok=True)
            (tree / subset).mkdir(exist_ok=True)
        done = self.told(f"{len(chosen)} images")

        def take(image: str) -> tuple[str, Got | None]:
            subset, _, number = image.partition("/")
            url = part.url.replace("{subset}", subset).replace("{id}", number)
            expected = self.known.expected(url)
            try:
                return url, self._take(url, images / f"{image}.jpg", expected)
            except Gone:
                if expected.sha256:
                    raise
                return url, None

        lost = set()
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            for count, (image, (url, got)) in enumerate(zip(chosen, pool.map(take, chosen), strict=True), 1):
                if got is None:
                    lost.add(image)
                else:
                    self._first[url] = got
                done(count, len(chosen))
        finally:
            pool.shutdown(cancel_futures=True)
        for image in () if lost else chosen:
            _same(images / f"{image}.jpg", tree / f"{image}.jpg")
        return lost


def _same(path: Path, place: Path) -> None:
    """Put a file into the tree, and leave it where it is: a try that is killed does not fetch it again."""
    try:
        os.link(path, place)
    except OSError:
        shutil.copyfile(path, place)
