"""RO-Crate metadata of a study's folder: every file with its checksum, and every cell that made some.

RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) with the terms of Workflow Run Crate 0.5
(https://w3id.org/ro/wfrun/workflow/0.5): the workflow is the crate's main entity, its run and each cell that ran are
actions with what they took and what they made. `sha256` is a term of https://w3id.org/ro/terms/workflow-run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from mimetypes import MimeTypes
from pathlib import PurePosixPath
from typing import Any

from transect import __version__
from transect.domain.inventory import Inventory, uri_of
from transect.report.engine.formats._markdown_text import inline
from transect.report.engine.text import clean, clipped

METADATA = "ro-crate-metadata.json"
# A cache of ours: any command may write it anew. The second is that of versions before 2026-11-26.
NOT_IN_CRATE = (METADATA, ".checksums.sqlite", ".checksums.json")
WORKFLOW = "workflow/Snakefile"
README = "README.md"

NOT_A_FILE = "Not in this crate: "

_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"]
_SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
_LICENCE = "#licence"
# Python's own table alone: equal files give an equal crate on every machine.
_TYPES = MimeTypes(filenames=()).types_map[True] | {
    ".jsonl": "application/jsonl",
    ".log": "text/plain",
    ".npz": "application/zip",
    ".onnx": "application/octet-stream",
    ".parquet": "application/vnd.apache.parquet",
    ".smk": "text/x-snakemake",
}
_WHAT = {
    "report.html": "The report",
    "summary.json": "Counts, findings and failures of the report",
    "records.parquet": "A row for each record and metric",
    "plan.json": "The study as planned: all its cells",
    "rules.json": "Since when each rule that decides a published claim has stood",
    "progress.jsonl": "When each cell ended",
    "exports.json": "What was exported beside the report",
    WORKFLOW: "The workflow's entry",
    README: "What is in this folder, and how to check it",
}
_COMPLETED, _FAILED = (f"http://schema.org/{word}ActionStatus" for word in ("Completed", "Failed"))


@dataclass(frozen=True, kw_only=True)
class Described:
    """What is known of a study besides its files. `records` are as they stand in their files.

    `waiting` counts cells that were planned and have no record.
    """

    study: str
    title: str
    records: Sequence[Mapping[str, Any]]
    waiting: int


def not_in_crate(what: str) -> str:
    """Return how the crate speaks of what has no content of its own here, such as a link."""
    return f"{NOT_A_FILE}{clean(what)}".encode("utf-8", "replace").decode()


def crate_text(crate: Mapping[str, Any]) -> bytes:
    """Write a crate with an entity on each line, so that two of them can be compared by eye."""
    entities = ",\n".join(json.dumps(entity, ensure_ascii=False) for entity in crate["@graph"])
    head = json.dumps(crate["@context"])
    # Half of a character cannot be written; it may come from a log.
    return f'{{"@context": {head},\n"@graph": [\n{entities}\n]}}\n'.encode("utf-8", "replace")


def readme(about: Described) -> str:
    """Return a page in Markdown that says what the crate holds."""
    return f"""# {inline(about.title)}

Results of the study {inline(about.study)} of transect {__version__}. `report.html` opens in any browser.

- `STAGE/CELL/record.json`: what a cell measured, on which machine and with which software; `docs/record.md` of transect
- `records.parquet`, `summary.json`: all metrics of all cells, and the report's findings, for programs
- `plan.json`, `specs/`, `workflow/`: what was planned, and the workflow that ran it
- `{METADATA}`: every file with its SHA-256, and which cell made it (RO-Crate 1.1)

`transect verify FOLDER` names every file that is missing, was changed or was added. Without transect, from this folder:

```python
import hashlib, json, pathlib, urllib.parse
for entity in json.load(open("{METADATA}"))["@graph"]:
    if "sha256" in entity:
        file = pathlib.Path(urllib.parse.unquote(entity["@id"]))
        if hashlib.sha256(file.read_bytes()).hexdigest() != entity["sha256"]:
            print("changed:", file)
```
"""


def crate_of(about: Described, inventory: Inventory) -> dict[str, Any]:
    """Return the crate of a study's folder as JSON-LD. Equal files give an equal crate."""
    graph = [*_head(about, inventory), *_files(about, inventory), *_actions(about, inventory)]
    return {"@context": _CONTEXT, "@graph": graph}


def _ref(uri: str) -> dict[str, str]:
    return {"@id": uri}


def _refs(uris: Iterable[str]) -> list[dict[str, str]] | dict[str, str]:
    """Refer to things: to one as RO-Crate writes one, without a list."""
    refs = [_ref(uri) for uri in uris]
    return refs[0] if len(refs) == 1 else refs


def _ran(about: Described) -> list[Mapping[str, Any]]:
    """Return the records of cells that ran: one that was skipped made nothing."""
    return [record for record in about.records if record.get("status") in ("ok", "failed")]


def _key(record: Mapping[str, Any]) -> str:
    return f"{record.get('stage')}/{record.get('cell_id')}"


def _still(about: Described) -> str:
    return f" {about.waiting} more were planned and have none." if about.waiting else ""


def _head(about: Described, inventory: Inventory) -> Iterator[dict[str, Any]]:
    ended = sorted(str(record.get("ended")) for record in about.records)
    counts = {status: sum(r.get("status") == status for r in about.records) for status in ("ok", "failed", "skipped")}
    tally = ", ".join(f"{count} {status}" for status, count in counts.items())
    yield {
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": _ref("./"),
        "conformsTo": _refs(["https://w3id.org/ro/crate/1.1", "https://w3id.org/workflowhub/workflow-ro-crate/1.0"]),
    }
    yield {
        "@id": "./",
        "@type": "Dataset",
        "name": clean(about.title),
        "description": f"Results of the study {clean(about.study)} of transect: {len(about.records)} cells have a "
        f"record, {tally}.{_still(about)}",
        "datePublished": ended[-1][:10] if ended else "",
        "license": _ref(_LICENCE),
        "conformsTo": _refs(_PROFILES),
        "mainEntity": _ref(WORKFLOW),
        "hasPart": _refs(map(uri_of, inventory.files)),
        "mentions": _refs(["#run", *(f"#{uri_of(_key(r))}" for r in _ran(about)), *map(uri_of, inventory.others)]),
    }
    for name, what in inventory.others.items():
        yield {"@id": uri_of(name), "@type": "CreativeWork", "name": clean(name), "description": not_in_crate(what)}
    for uri, (name, version) in _PROFILES.items():
        yield {"@id": uri, "@type": "CreativeWork", "name": name, "version": version}
    yield {
        "@id": _LICENCE,
        "@type": "CreativeWork",
        "name": "No licence stated",
        "description": "Whoever made these results has stated no licence for them.",
    }
    yield {
        "@id": _SNAKEMAKE,
        "@type": "ComputerLanguage",
        "name": "Snakemake",
        "alternateName": "SMK",
        "identifier": _ref("https://doi.org/10.12688/f1000research.29032.2"),
        "url": _ref("https://snakemake.readthedocs.io"),
    }
    for stage in sorted({str(record.get("stage")) for record in _ran(about)}):
        yield {
            "@id": f"#stage-{uri_of(stage)}",
            "@type": "SoftwareApplication",
            "name": f"transect, stage {clean(stage)}",
            "softwareVersion": __version__,
        }


def _files(about: Described, inventory: Inventory) -> Iterator[dict[str, Any]]:
    of_record = {f"{_key(record)}/record.json": record for record in about.records}
    for name, facts in inventory.files.items():
        entity: dict[str, Any] = {
            "@id": uri_of(name),
            "@type": "File",
            "name": clean(PurePosixPath(name).name),
            "contentSize": str(facts.size),
            "sha256": facts.sha256,
        }
        if kind := _TYPES.get(PurePosixPath(name).suffix):
            entity["encodingFormat"] = kind
        if name in of_record:
            entity["description"] = f"Record of {clean(_key(of_record[name]))}: {of_record[name].get('status')}"
        elif name in _WHAT:
            entity["description"] = _WHAT[name]
        if name == README:
            entity["about"] = _ref("./")
        if name == WORKFLOW:
            entity |= {
                "encodingFormat": "text/plain",
                "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
                "name": "transect",
                "programmingLanguage": _ref(_SNAKEMAKE),
                "version": __version__,
                "license": _ref("https://spdx.org/licenses/Apache-2.0"),
            }
        yield entity


def _actions(about: Described, inventory: Inventory) -> Iterator[dict[str, Any]]:
    """Yield the run of the workflow, then each cell that ran."""
    known = inventory.files
    times = sorted(str(record.get(end)) for record in about.records for end in ("started", "ended"))
    run: dict[str, Any] = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"Run of the study {clean(about.study)}",
        "description": "Every cell that was planned, each to its record, then the report",
        "instrument": _ref(WORKFLOW),
        "object": _refs(n for n in ("plan.json",) if n in known),
        "result": _refs(n for n in ("report.html", "summary.json", "records.parquet") if n in known),
        "actionStatus": _FAILED if about.waiting else _COMPLETED,
    }
    if about.waiting:
        run["error"] = _still(about).strip()
    if times:
        run |= {"startTime": times[0], "endTime": times[-1]}
    yield run
    # What a cell took is in its record by name and checksum: so is the file that it was.
    by_checksum: dict[tuple[str, str], str] = {}
    below: dict[str, list[str]] = {}
    for name, facts in known.items():
        by_checksum.setdefault((PurePosixPath(name).name, facts.sha256), name)
        below.setdefault("/".join(name.split("/")[:2]), []).append(name)
    for record in _ran(about):
        key = _key(record)
        taken = [
            by_checksum.get((PurePosixPath(name).name, checksum))
            for name, _, checksum in (str(entry).rpartition(" ") for entry in record.get("inputs") or ())
        ]
        spec = f"{key}/spec.json"
        objects = dict.fromkeys([*([spec] if spec in known else []), *(name for name in taken if name)])
        action: dict[str, Any] = {
            "@id": f"#{uri_of(key)}",
            "@type": "CreateAction",
            "name": clean(key),
            "description": f"Cell {clean(str(record.get('cell_id')))} of the stage {clean(str(record.get('stage')))}, as "
            "its spec.json told it",
            "instrument": _ref(f"#stage-{uri_of(str(record.get('stage')))}"),
            "startTime": str(record.get("started")),
            "endTime": str(record.get("ended")),
            "object": _refs(map(uri_of, objects)),
            "result": _refs(uri_of(name) for name in below.get(key, ()) if name not in objects),
            "actionStatus": _COMPLETED if record["status"] == "ok" else _FAILED,
        }
        if record["status"] != "ok":
            action["error"] = clipped(f"{record.get('cause')}: {record.get('message')}", 1000)
        yield action
