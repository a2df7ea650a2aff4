"""Runners that crash, leak, lie or scribble: each is a record with its cause, and costs no other."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.study

PLUGIN = r'''
"""Runtimes whose programs end badly."""

from transect.runtimes import RUNTIMES
from transect.runtimes.python import PythonRuntime

GIVEN = "import os, json, sys; g = dict(zip(sys.argv[1::2], sys.argv[2::2])); r = g['--record']; "
PROGRAMS = {
    "aborts": "os.abort()",
    "leaks": "kept = [bytearray(b'x' * 50_000_000) for _ in range(10**6)]",
    "scribbles": "open(r, 'w').write('{half')",
    "lies": "json.dump({'status': 'ok', 'provider_used': 'cuda'}, open(r, 'w'))",
    "leaves": "json.dump({'status': 'ok'}, open(r, 'w')); sys.exit(7)",
}


def made(name, program):
    @RUNTIMES.register(name)
    class Bad(PythonRuntime):
        """A runtime whose program ends badly."""

        def command(self, python, arguments):
            return [python, "-c", GIVEN + program, *arguments]


for name, program in PROGRAMS.items():
    made(name, program)
'''

STUDY = """
name: ends
plugins: [plugins]
limits: {seconds: 300, memory_mb: 4000}
workloads: {iris-mlp-ce: {epochs: 2}}
train:
  repeats: 1
  grids: [{workloads: [iris-mlp-ce], frameworks: [torch], strategies: [single]}]
export: {workloads: [iris-mlp-ce], exporters: [torchscript]}
infer:
  max_seconds: 0.1
  grids:
    - {workloads: [iris-mlp-ce], runtimes: [aborts, leaks, scribbles, lies, leaves, python]}
"""

ENDS = {
    "aborts": ("crash", "SIGABRT"),
    "leaks": ("out-of-memory", "4000 MB"),
    "scribbles": ("crash", "readable record"),
    "lies": ("bad-input", "ran on cuda"),
    "leaves": ("crash", "exit code 7"),
}


def test_each_end_has_its_cause(place):
    (place.folder / "plugins").mkdir()
    (place.folder / "plugins" / "bad.py").write_text(PLUGIN)
    (place.folder / "ends.yaml").write_text(STUDY)
    run = place.make("ends.yaml", report=False)
    assert run.returncode == 0, run.stderr
    records = {}
    for path in place.folder.glob("results/ends/infer/*/record.json"):
        record = json.loads(path.read_text())
        records[record["cell"]["runtime"]] = record
    assert records.keys() == {*ENDS, "python"}
    assert records["python"]["status"] == "ok"
    for name, (cause, words) in ENDS.items():
        assert (records[name]["status"], records[name]["cause"]) == ("failed", cause), name
        assert words in records[name]["message"], records[name]["message"]
        assert records[name]["samples"] == {}
