"""What the last run of `python -m transect.portable_step.coverage` found."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict

MEASURED = Path(__file__).with_name("measured.json")


class Row(BaseModel):
    """One case: operators of its ONNX graph, and the largest relative errors of its gradients.

    `float64` is that of the traced graph, `float32` that of ONNX Runtime and `framework` that of
    PyTorch itself in float32, each against PyTorch in float64.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    operators: tuple[str, ...]
    float64: float
    float32: float
    framework: float


class Measured(BaseModel):
    """A run: its date, the versions, a row for each case."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str
    versions: dict[str, str]
    rows: dict[str, Row]

    @classmethod
    def read(cls, path: Path = MEASURED) -> Measured | None:
        """Return what was written, None when nothing was."""
        if not path.is_file():
            return None
        return cls.model_validate_json(path.read_text(encoding="utf-8"))

    def write(self, path: Path = MEASURED) -> None:
        """Write it as JSON, a row a line."""
        rows = [f"    {json.dumps(name)}: {row.model_dump_json()}" for name, row in self.rows.items()]
        head = f'{{\n  "date": {json.dumps(self.date)},\n  "versions": {json.dumps(self.versions)},'
        path.write_text("\n".join([head, '  "rows": {', ",\n".join(rows), "  }", "}"]) + "\n", encoding="utf-8")
