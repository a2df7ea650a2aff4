"""Where everything of a study lies: the only place that spells these names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from transect import data
from transect.domain.errors import BadInput

# Where the studies, environments, rules and programs lie: in the package, or in a checkout, to which its data are links.
DATA = Path(*data.__path__)
PACKAGE = DATA.parent
ROOT = (DATA / "envs").resolve().parent
# What a payload's environment is told to import transect from.
PYTHONPATH = str(DATA / "pythonpath")


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyPaths:
    """Paths below `results/STUDY`."""

    results: Path
    study: str

    @property
    def folder(self) -> Path:
        """results/STUDY."""
        return self.results / self.study

    def cell(self, stage: str, cell_id: str) -> Path:
        """Folder of one cell."""
        return self.folder / stage / cell_id

    def record(self, stage: str, cell_id: str) -> Path:
        """The cell's record."""
        return self.cell(stage, cell_id) / "record.json"

    def record_aside(self, stage: str, cell_id: str) -> Path:
        """The record of a cell that may run again, until it is known whether it has to."""
        return self.cell(stage, cell_id) / "record.earlier.json"

    def forget_record(self, stage: str, cell_id: str) -> None:
        """Remove a cell's record, so that it runs again; one too that a killed runner set aside."""
        self.record(stage, cell_id).unlink(missing_ok=True)
        self.record_aside(stage, cell_id).unlink(missing_ok=True)

    def spec(self, stage: str, cell_id: str) -> Path:
        """The input of the cell's payload when it last ran."""
        return self.cell(stage, cell_id) / "spec.json"

    def damaged(self, stage: str, cell_id: str) -> Path:
        """A record that was changed after it was written, kept for inspection."""
        return self.folder / "damaged" / stage / f"{cell_id}.json"

    @property
    def specs(self) -> Path:
        """What the main process planned: the only folder that jobs read their orders from."""
        return self.folder / "specs"

    def block(self, rule: str, name: str) -> Path:
        """The specs of the cells of one allocation block."""
        return self.specs / rule / f"{name}.json"

    def stamp(self, rule: str, name: str) -> Path:
        """Says that all records of a block are there."""
        return self.folder / "blocks" / rule / f"{name}.json"

    def sources(self, hash_: str) -> Path:
        """Names and hashes of the source files that a spec's `sources` stands for."""
        return self.specs / "sources" / f"{hash_}.json"

    @property
    def flow(self) -> Path:
        """What the rules of a job's own Snakemake have to know."""
        return self.specs / "flow.json"

    @property
    def plan(self) -> Path:
        """All cells of the study, as planned last."""
        return self.folder / "plan.json"

    @property
    def rules(self) -> Path:
        """Which rules decide published claims, and since when each has stood here; nothing is ever taken out."""
        return self.folder / "rules.json"

    @property
    def checksums(self) -> Path:
        """Checksums of files from outside that were read."""
        return self.folder / ".checksums.sqlite"

    @property
    def claim(self) -> Path:
        """Says which run of Snakemake makes the study; outside of its folder, which may be removed."""
        return self.results / ".transect" / f"{self.study}.json"

    @property
    def runs(self) -> Path:
        """One file for each run that may have jobs in Slurm's queue."""
        return self.results / ".transect" / f"{self.study}.runs"

    def lease(self, rule: str, name: str) -> Path:
        """Says which process runs the cells of a block."""
        return self.results / ".transect" / f"{self.study}.leases" / f"{rule}.{name}.json"

    @property
    def machine(self) -> Path:
        """Says which process measures on this machine; where there is no scheduler."""
        return self.results / ".transect" / "machines" / f"{os.uname().nodename}.json"

    @property
    def progress(self) -> Path:
        """Journal of finished cells, for the progress line."""
        return self.folder / "progress.jsonl"

    @property
    def report(self) -> Path:
        """The report."""
        return self.folder / "report.html"

    @property
    def summary(self) -> Path:
        """The report's counts, failures and findings, for scripts."""
        return self.folder / "summary.json"

    def environment(self, name: str) -> Path:
        """What became of building an environment; shared by the studies of one results folder."""
        return self.results / "environments" / f"{name}.json"


def config_folders() -> list[Path]:
    """Return where studies and systems are looked for by name, the first first: here, the user's, the site's, ours."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    sites = os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    places = [Path(os.path.expanduser(place), "transect") for place in (home, *sites.split(os.pathsep))]  # noqa: PTH111 no error without a home
    return [Path("config"), *(place for place in places if place.is_absolute()), ROOT / "config"]


def environments_folder() -> Path:
    """Where environments are kept by lock hash: TRANSECT_ENVS or the user's cache."""
    given = os.environ.get("TRANSECT_ENVS")
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        if given:
            return Path(given).expanduser().resolve()
        return Path(cache).expanduser() / "transect" / "envs"
    except RuntimeError as error:
        raise BadInput(f"folder of environments {given or cache}: {error}: set TRANSECT_ENVS to a folder") from None
