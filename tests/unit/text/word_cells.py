"""Cells from texts to rows of numbers, run in the environment that they run in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from factories import bare_record
from payload_calls import payload_arguments
from transect.domain.cell import Cell
from transect.domain.record import write_record
from warm import warm

# One process for many cells: what they import takes longer than what they do.
PROGRAM = """
import json, sys
from transect.payloads.__main__ import main
for arguments in json.load(sys.stdin):
    print(main(arguments))
"""
VECTORS = {"method": "skip-gram", "width": 8, "window": 2, "epochs": 2, "fit_on": "train", "minimum": 2, "most": 1000}


class Pipeline:
    """Cells of one corpus below a folder; they run when `run` is called."""

    def __init__(self, folder: Path, texts: list[str], parts: dict[str, list[int]]) -> None:
        self.folder, self.waiting = folder, []
        for name in ("corpus", "texts", "split"):
            (folder / name).mkdir(parents=True)
        lines = (json.dumps(text) + "\n" for text in texts)
        (folder / "texts" / "texts.jsonl").write_text("".join(lines), encoding="utf-8")
        rows = {part: np.array(taken, np.int64) for part, taken in parts.items()}
        np.savez(folder / "split" / "parts.npz", **rows)
        labels = np.arange(len(texts), dtype=np.int32) % 3
        np.save(folder / "corpus" / "labels.npy", labels)
        self._write_record()

    def _write_record(self) -> None:
        cell = Cell.of(stage="corpus", corpus="c")
        accuracies = {view: {"kept": 0.5, "pseudonyms": 0.25, "removed": 0.125} for view in ("first",)}
        details = {"classes": ["a", "b", "c"], "synthetic": True, "bayes_accuracy": accuracies}
        write_record(self.folder / "corpus" / "record.json", bare_record(cell, details=details))

    def _add(self, stage: str, name: str, spec: dict[str, Any], roles: dict[str, str]) -> None:
        out = self.folder / name
        out.mkdir()
        axes = {"stage": stage, "corpus": "c", "view": "first", **spec.pop("axes", {})}
        cell = Cell.of(**axes).model_dump()
        (out / "spec.json").write_text(json.dumps({"cell": cell, **spec}))
        folders = {role: self.folder / folder for role, folder in roles.items()}
        self.waiting.append(payload_arguments(stage, out, **folders))

    def tokens(self, name: str = "tokens", stop_words: bool = False) -> None:
        """Add a tokens cell."""
        self._add("tokens", name, {"axes": {"stop_words": stop_words}}, {"texts": "texts"})

    def embeddings(self, name: str, seed: int = 5, tokens: str = "tokens", **rule: Any) -> None:
        """Add a vectors cell."""
        spec = {"axes": {"split": "p", "embeddings": "v"}, "rule": VECTORS | rule, "seed": seed}
        self._add("embeddings", name, spec, {"tokens": tokens, "split": "split"})

    def encode(self, name: str, embeddings: str, tokens: str = "tokens", **rule: Any) -> None:
        """Add an encode cell."""
        rule = {"rule": "quantile", "share": 0.95, "words": None, "most": 512} | rule
        spec = {"axes": {"split": "p", "embeddings": "v", "words": "w"}, "rule": rule}
        roles = {"corpus": "corpus", "tokens": tokens, "split": "split", "embeddings": embeddings}
        self._add("encode", name, spec, roles)

    def run(self, python: str) -> list[int]:
        """Run what was added; return the exit codes."""
        done = warm(python).run("-c", PROGRAM, input=json.dumps(self.waiting).encode())
        assert done.returncode == 0, done.stderr
        self.waiting = []
        return [int(line) for line in done.stdout.split()]

    def result(self, name: str) -> dict[str, Any]:
        """Return a cell's result."""
        result: dict[str, Any] = json.loads((self.folder / name / "result.json").read_text())
        return result

    def read(self, name: str, file: str) -> Any:
        """Return the content of a cell's file: an array, or JSON."""
        path = self.folder / name / file
        return np.load(path) if path.suffix == ".npy" else json.loads(path.read_text("utf-8"))
