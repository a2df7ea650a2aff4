"""What `--config` and config/config.yaml may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.terminal import printable

_CONFIG_KEYS = {"study", "system", "results", "strict"}


def read_options(config: dict[str, Any]) -> tuple[str, bool]:
    """Return the results folder and whether the run is strict. Raises BadInput."""
    for key in config.keys() - _CONFIG_KEYS:
        raise BadInput(f"config: unknown key '{key}'. Known: {', '.join(sorted(_CONFIG_KEYS))}")
    strict = str(config["strict"]).lower()
    if strict not in ("true", "false"):
        raise BadInput(f"config: key 'strict': expected true or false, found {config['strict']!r}")
    for key in ("study", "system", "results"):
        given = config[key]
        if not isinstance(given, str):
            raise BadInput(
                f"config: key '{key}': expected text, found {given!r}, as Snakemake reads what looks "
                f"like another value: write {key}=./NAME"
            )
        if printable(given) != given:
            raise BadInput(f"config: key '{key}': {given}: expected a name without control characters")
    if set("{}<>") & set(config["results"]):
        raise BadInput(
            f"config: key 'results': {config['results']}: Snakemake takes braces for wildcards, and < > "
            "for variables of paths: use a folder without them"
        )
    return str(Path(config["results"])), strict == "true"
