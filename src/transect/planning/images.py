"""Images: what one is made from, and where it is stored.

An environment in a container goes by `NAME@WRAPPER`: the image that is made of `envs/NAME`, run by that
wrapper. `envs/NAME/image.yaml` says what lies below the environment in it, else `envs/shared/image.yaml`.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest
from transect.domain.paths import environments_folder
from transect.domain.strict_yaml import load_model
from transect.planning.environments import DEFINITION, environment_source, lock_hash

# Of what the builder leaves in an image: a new number makes every image again.
_LAYOUT = "2"


class ImageDefinition(BaseModel):
    """What lies below an environment in its image."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: Literal["host", "debian", "archive"] = Field(
        default="host",
        description="host: the shared libraries of this machine that the environment asks for, and a few programs; "
        "debian: `mmdebstrap` with `suite` and `packages`; archive: a root file system in a tar file",
    )
    programs: list[str] = Field(
        default=["sh", "bash", "env", "cat", "ls", "true", "uname", "hostname", "nproc", "sleep"],
        description="host: programs of this machine that are copied besides; one that is not here is left out",
    )
    suite: str = Field(default="bookworm", description="debian: the release")
    packages: list[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+(=\S+)?$")]] = Field(
        default=[], description="debian: packages besides the essential ones, NAME or NAME=VERSION"
    )
    archive: str | None = Field(
        default=None,
        description="archive: the tar file, absolute or beside the definition; `podman export` makes one "
        "of an image from a registry",
    )
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        default=None, description="archive: its checksum"
    )

    @model_validator(mode="after")
    def _whole(self) -> ImageDefinition:
        if (self.base == "archive") != bool(self.archive and self.sha256):
            raise ValueError("base archive, and no other, needs `archive` and its `sha256`")
        return self


def definition_of(name: str) -> tuple[ImageDefinition, Path]:
    """Return an environment's image definition and the file that it stands in."""
    return _definition_in(environment_source(name))


def has_image(folder: Path) -> bool:
    """Whether the environment that is defined in `folder` has an image definition, readable or not."""
    return any(path.is_file() for path in _places(folder))


def _places(folder: Path) -> tuple[Path, Path]:
    return folder / DEFINITION, folder.parent / "shared" / DEFINITION


def _definition_in(folder: Path) -> tuple[ImageDefinition, Path]:
    for path in _places(folder):
        if path.is_file():
            return load_model(path, ImageDefinition), path
    raise BadInput(f"environment '{folder.name}' has no image definition: {folder / DEFINITION}")


def image_lock(name: str) -> str:
    """Hash what the image of an environment is made from: 16 hexadecimal digits.

    The environment's own lock, the definition, the layout, and with base host the C library whose
    version every library there goes with.
    """
    return image_lock_of(environment_source(name), lock_hash(name))


def image_lock_of(folder: Path, lock: str) -> str:
    """Hash as `image_lock` does what the environment defined in `folder`, of that lock hash, makes an image of."""
    definition, _ = _definition_in(folder)
    parts = [_LAYOUT, lock, canonical_json(definition.model_dump())]
    if definition.base == "host":
        parts += [*platform.libc_ver()]
    return digest(parts)[:16]


def image_folder(name: str) -> Path:
    """Return where the image of an environment is or will be: one for all wrappers."""
    return environments_folder() / "images" / f"{name}-{image_lock(name)}"
