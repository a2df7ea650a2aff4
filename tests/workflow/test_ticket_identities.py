"""A study of somebody's tickets: nobody's identity in its results, and a changed salt hides everybody anew."""

from __future__ import annotations

import json

import pytest

from transect.domain.files import sha256_file

pytestmark = pytest.mark.study

STUDY = """
name: mine
limits: {seconds: 300, memory_mb: 4000}
tickets:
  corpora: {own: {format: jsonl, path: own.jsonl, label: owner}}
  splits: {plain: {train: 0.6, test: 0.4}}
  embeddings: {drawn: {method: random, width: 4}}
classify:
  models: {majority: {kind: majority}}
  grids: [{corpora: [own], splits: [plain], embeddings: [drawn], models: [majority]}]
"""
OWNERS = ["Anna Schmidt", "Jörg Müßig"]
# Long enough that no checksum holds them by chance.
SECRETS = ["Schmidt", "Müßig", "Muessig", "Kundenname", "firm.example", "0551 39123", "055139123", "10.1.2.3", "T-47"]


@pytest.fixture(scope="module")
def study(place):
    """A folder with the study."""
    tickets = [
        {
            "id": f"T-47{number}",
            "owner": OWNERS[number % 2],
            "queue": "it",
            "messages": [
                {
                    "author": f"Kundenname{number} <k{number}@firm.example>",
                    "role": "customer",
                    "text": f"Herr Muessig, Frau Schmidt, 10.1.2.3 is down\n0551 39123{number:02} Kundenname{number}",
                },
                {"author": OWNERS[number % 2], "role": "agent", "text": f"done. {OWNERS[number % 2]}"},
            ],
        }
        for number in range(40)
    ]
    lines = [*map(json.dumps, tickets), '{"id": "T-471", "text": "Schmidt"}', '{"text": "Schmidt']
    (place.folder / "own.jsonl").write_text("\n".join(lines))
    (place.folder / "mine.yaml").write_text(STUDY)
    return place


def run(study, settings) -> dict[str, dict]:
    """Run it with the salt in a folder of settings; return its records by stage."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(settings))
        ran = study.make("mine.yaml")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not any(secret in ran.stdout + ran.stderr for secret in SECRETS)
    return {record["stage"]: record for record in study.records("mine").values()}


def holding(study, secret: str) -> list[str]:
    """Return the files of the results that hold a text, however they are spelt in JSON."""
    forms = {secret.encode(), json.dumps(secret)[1:-1].encode(), secret.lower().encode()}
    files = [path for path in (study.folder / "results").rglob("*") if path.is_file()]
    assert any(path.name == "report.html" for path in files)
    return [str(path) for path in files if any(form in path.read_bytes() for form in forms)]


def accuracy(record) -> list[float]:
    return [metric["value"] for metric in record["metrics"] if metric["name"] == "accuracy"]


def test_a_study_holds_nobody_and_follows_its_salt(study, tmp_path):
    before = run(study, tmp_path / "one")
    assert before["corpus"]["details"]["rejected"] == {"no-label": 1, "broken-json": 1}
    key = (tmp_path / "one" / "transect" / "salt").read_text().strip()
    for secret in [*SECRETS, key]:
        assert holding(study, secret) == [], secret

    after = run(study, tmp_path / "two")
    assert after["corpus"]["fingerprint"] != before["corpus"]["fingerprint"]
    tickets = study.folder / "results" / "mine" / "corpus" / after["corpus"]["cell_id"] / "tickets.jsonl"
    # All of its block: what takes the corpus must not hold because the old one still lay there.
    assert after["extract-text"]["inputs"] == [f"tickets.jsonl {sha256_file(tickets)}"]
    assert after["extract-text"]["inputs"] != before["extract-text"]["inputs"]
    # Nothing but the pseudonyms changed.
    assert accuracy(after["classify"]) == accuracy(before["classify"])
