"""What `config/datasets/NAME.yaml` says of a published data set, and the user's own token for it."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal
from urllib.parse import urlsplit

import requests
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from requests.auth import AuthBase, HTTPBasicAuth

from transect.domain.errors import BadInput
from transect.domain.files import digest
from transect.domain.strict_yaml import load_model
from transect.planning.study import find_data_set

_HERE = ("127.0.0.1", "localhost", "::1")


def safe_address(url: str) -> str:
    """Refuse an address over which a token could be read; this machine's own may be."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _HERE):
        raise ValueError("expected an address that begins with https://")
    return url


def _plain_name(name: str) -> str:
    if name in (".", "..") or "/" in name or name.startswith(".") or "\0" in name:
        raise ValueError("expected a file's name, without a folder")
    return name


def _inner_path(path: str) -> str:
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ValueError("expected a folder below that of the data set, or '.'")
    return path


Url = Annotated[str, AfterValidator(safe_address)]
Name = Annotated[str, AfterValidator(_plain_name)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Licence(_Part):
    """Under which terms it may be used."""

    name: str
    terms: str = Field(description="what they ask, in a sentence")
    url: Url

    @property
    def digest(self) -> str:
        """Of what was accepted: other terms are asked for again."""
        return digest([self.name, self.terms, self.url])


class Way(_Part):
    """One way to give a token: variables of the environment, or a file for its owner alone, whole or by keys of its JSON."""

    kind: Literal["basic", "bearer", "cookie"]
    variables: tuple[str, ...] = ()
    file: str | None = None
    keys: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Way:
        values = len(self.variables) or (len(self.keys) or 1 if self.file else 0)
        if values != (2 if self.kind == "basic" else 1) or bool(self.variables) == bool(self.file):
            raise ValueError("expected variables or a file: a name and a key for basic, one value otherwise")
        return self

    @property
    def text(self) -> str:
        """How a person gives it."""
        return f"set {' and '.join(self.variables)}" if self.variables else f"put it into {self.file}, with chmod 600"

    def values(self) -> list[str] | None:
        """Return the token's parts, None where it is not given. Raises BadInput for a file that others read, or no token."""
        if self.file is None:
            given = [os.environ.get(name, "").strip() for name in self.variables]
            return self._usable(given, ", ".join(self.variables)) if all(given) else None
        path = Path(self.file).expanduser()
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            content = path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: no readable token: {type(error).__name__}") from None
        if mode & 0o077:
            raise BadInput(f"{path}: mode {mode:o}: expected a token that only its owner can read: chmod 600 {path}")
        try:
            values = [str(json.loads(content)[key]) for key in self.keys] if self.keys else [content]
        except (ValueError, KeyError, TypeError):
            raise BadInput(f"{path}: expected JSON with the keys {', '.join(self.keys)}") from None
        return self._usable(values, str(path))

    def _usable(self, values: list[str], where: str) -> list[str]:
        if not all(value.isascii() and value.isprintable() and value for value in values):
            raise BadInput(f"{where}: expected a token of one line, of ASCII characters")
        return values


class Token(_Part):
    """What the publisher gives to those who have an account."""

    where: str = Field(description="where to get one")
    ways: tuple[Way, ...] = Field(min_length=1)


class DataFile(_Part):
    """One file of the publisher's."""

    name: Name
    url: Url
    bytes: int | None = Field(
        default=None, gt=0, description="as the publisher or those who fetched it say; null: unknown"
    )
    md5: str | None = Field(default=None, pattern="^[0-9a-f]{32}$")
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    into: Annotated[str, AfterValidator(_inner_path)] | None = Field(
        default=None, description="unpack the archive into this folder below the data set's; null: it is no archive"
    )
    nested: bool = Field(default=False, description="archives in the archive become folders of their names")
    most_bytes: int | None = Field(default=None, gt=0, description="an archive that unpacks to more is refused")
    holds: dict[str, str] = Field(default={}, description="SHA-256 of files of the archive, by path")

    @model_validator(mode="after")
    def _bounded(self) -> DataFile:
        if (self.into is None) != (self.most_bytes is None):
            raise ValueError("expected `most_bytes` for an archive, which has `into`, and for no other file")
        return self


class Slice(_Part):
    """Single images of a set too large to fetch, chosen by id or by class."""

    url: Url = Field(description="of one image, with {subset} and {id}")
    labels: dict[str, Name] = Field(description="by subset the file with its labels")
    names: Name = Field(description="the file with the names of classes")
    subset: str = Field(description="whose images are chosen by class")
    classes: tuple[str, ...] = Field(min_length=2)
    per_class: int = Field(ge=2)


class Definition(_Part):
    """A data set."""

    title: str
    home: Url
    licence: Licence
    who: str = Field(description="who may use it")
    layout: str = Field(description="of the folder, as `dataset_options.layout` names it, or a format of tickets")
    use: str = Field(description="what a study says to take it, with {folder}")
    token: Token | None = None
    files: tuple[DataFile, ...] = Field(min_length=1)
    slice: Slice | None = None

    @model_validator(mode="after")
    def _told_apart(self) -> Definition:
        names = [file.name for file in self.files]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"expected another name for each of `files`, found twice: {', '.join(twice)}")
        return self


def load_definition(given: str) -> tuple[str, Definition]:
    """Return name and definition by name or file. Raises BadInput for a name that is none, or a file that says something else."""
    path = find_data_set(given)
    if not re.fullmatch(r"[\w+][\w.+-]*", path.stem, re.ASCII):
        raise BadInput(f"{path}: its name becomes that of a folder: expected letters, digits and . _ + -")
    return path.stem, load_model(path, Definition)


class _Header(AuthBase):
    """Sets one header, or none: without an `auth` requests would look into ~/.netrc. It follows no redirect to another host."""

    def __init__(self, name: str = "", value: str = "") -> None:
        self._name, self._value = name, value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._name:
            request.headers[self._name] = self._value
        return request


def authentication(token: Token | None, otherwise: str, name: str) -> AuthBase:
    """Return what signs requests. Raises BadInput with where to get a token; `otherwise`: what can be done without."""
    if token is None:
        return _Header()
    for way in token.ways:
        if (values := way.values()) is not None:
            return _signed[way.kind](values)
    ways = "; or ".join(way.text for way in token.ways)
    raise BadInput(
        f"{name}: its publisher gives it to those who have an account, and no token of yours is here",
        f"  get one: {token.where}",
        f"  then: {ways}",
        f"  or: {otherwise}",
    )


_signed: dict[str, Callable[[list[str]], AuthBase]] = {
    "basic": lambda values: HTTPBasicAuth(values[0], values[1]),
    "bearer": lambda values: _Header("Authorization", f"Bearer {values[0]}"),
    "cookie": lambda values: _Header("Cookie", values[0]),
}
