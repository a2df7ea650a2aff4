"""Where the results of a study are that a person names."""

from __future__ import annotations

from pathlib import Path

from transect.domain.errors import BadInput, unknown_name
from transect.domain.paths import ROOT, StudyPaths


def results_of(study: str, results: Path) -> StudyPaths:
    """Return where a study's results are, or will be; nothing of its plug-ins is imported."""
    folder = Path(study)
    if folder.is_dir():
        # Who runs it says so beside the name that it was run by, which may be a link to the folder.
        place = folder.parent.resolve() / folder.name if folder.is_symlink() else folder.resolve()
        paths = StudyPaths(results=place.parent, study=place.name)
        if paths.plan.exists() or paths.claim.exists() or any(folder.glob("*/*~*/")):
            return paths
        raise BadInput(
            f"{folder}: no results of a study there, expected a folder such as results/quick, or a study's name"
        )
    if folder.suffix in (".yaml", ".yml"):
        from transect.domain.strict_yaml import load_yaml

        name = load_yaml(folder).get("name")
        if not isinstance(name, str):
            raise BadInput(f"{folder}: key 'name': expected the study's name, found {name!r}")
        return StudyPaths(results=results, study=name)
    paths = StudyPaths(results=results, study=study)
    known = [path.stem for path in (ROOT / "config" / "studies").glob("*.yaml")]
    if study not in known and (folder.name != study or not (paths.folder.is_dir() or paths.claim.exists())):
        raise unknown_name("study", study, known, f"no results in {paths.folder}")
    return paths
