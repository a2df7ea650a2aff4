"""One version of ONNX Runtime in every language."""

from __future__ import annotations

import re

from transect.domain.paths import ROOT

PINS = {
    "envs/*/requirements.txt": r"^onnxruntime(?:-gpu)?==(\S+)$",
    "src/runners/*/package.json": r'"onnxruntime-(?:node|web|common)": "([^"]+)"',
    "src/runners/*/pom.xml": r"<onnxruntime\.version>([^<]+)<|"
    r"<artifactId>onnxruntime</artifactId>\s*<version>([0-9][^<]*)<",
}


def test_all_pin_the_version_of_the_environment_onnxruntime() -> None:
    found: dict[str, str] = {}
    for pattern, pin in PINS.items():
        for file in ROOT.glob(pattern):
            for match in re.finditer(pin, file.read_text(encoding="utf-8"), re.MULTILINE):
                found[str(file.relative_to(ROOT))] = next(filter(None, match.groups()))
    version = found["envs/onnxruntime/requirements.txt"]
    assert len(found) >= 2
    assert {file: pin for file, pin in found.items() if pin != version} == {}
