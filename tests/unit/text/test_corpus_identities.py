"""Nobody's identity is in what the corpus stage leaves, and a changed salt changes what hides it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from test_corpus_stage import SALT, Made, lines, made, spec  # noqa: F401
from test_mail_threads import mail, mbox

from payload_calls import payload_arguments
from transect.domain.cell import Cell
from transect.domain.paths import StudyPaths
from transect.engine.stage import RUNNERS
from transect.payloads.__main__ import main
from transect.planning.stage import STAGES
from transect.text.salt import SALT_VARIABLE, read_salt

SECRETS = [
    "Schmidt",
    "Miller",
    "Müßig",
    "Muessig",
    "Ortega",
    "bob@x.example",
    "x.example",
    "3912345",
    "39-12345",
    "10.1.2.3",
    "2001:db8",
    "T-4711",
]
TALK = [
    {
        "id": "T-4711",
        "owner": "Anna Schmidt",
        "queue": "it",
        "people": ["Carla Ortega <carla@x.example>"],
        "messages": [
            {
                "author": "Bob Miller <bob@x.example>",
                "role": "customer",
                "time": "2023-01-02T03:04:05Z",
                "text": "Dear Mrs Schmidt, 10.1.2.3 is down; ask CARLA ORTEGA or Herrn Müßig. bob@x.example, 0551 39-12345\n"
                "Bob Miller",
            },
            {"author": "Anna Schmidt", "role": "agent", "text": "Hi Bob, done. Schmidts regards, Anna\n2001:db8::1"},
        ],
    },
    {
        "id": "T-4712",
        "owner": "Jörg Müßig",
        "queue": "Team of Ortega",
        "text": "<p>Joerg Muessig, <b>Mi\u00adller</b> called from (0551) 3912345</p><script>Schmidt</script>",
    },
    {
        "id": "T-4713",
        "owner": "Schmidt",
        "queue": "bob@x.example",
        "text": "S\u200bchmidt Mu\u0308ßig MILLER's",
        "time": "Miller",
    },
    {"id": "T-4713", "owner": "Miller", "queue": "it", "text": "O\u202ertega"},
    {"id": "T-4713", "text": "Miller"},
    {"id": "T-4711", "owner": "Ortega", "queue": "Miller", "text": "Schmidt"},
]
DIALOGUES = "".join(json.dumps(ticket, ensure_ascii=False) + "\n" for ticket in TALK) + '{"text": "Miller'
MAILS = mbox(
    mail(1, "Müßig: 10.1.2.3", "Bob Miller, 0551 3912345", X_Owner="Anna Schmidt", X_Queue="it"),
    mail(
        2,
        "Re: Müßig",
        "Hi Miller\nOrtega",
        answers=1,
        author="Anna Schmidt <anna@x.example>",
        To="Bob Miller <bob@x.example>",
        Cc="Carla Ortega <c@x.example>, Müßig",
    ),
)


@pytest.mark.parametrize(("kind", "content"), [("jsonl", DIALOGUES), ("mbox", MAILS)])
@pytest.mark.parametrize("label", ["owner", "queue"])
def test_no_identity_is_in_any_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str, content: str | bytes, label: str
):
    source, out = tmp_path / "source", tmp_path / "out"
    source.write_bytes(content if isinstance(content, bytes) else content.encode())
    out.mkdir()
    (out / "spec.json").write_text(json.dumps(spec(kind, source, label=label)))
    read_salt(tmp_path / "salt")
    key = (tmp_path / "salt").read_text().strip()
    assert main(payload_arguments("corpus", out, {"salt": str(tmp_path / "salt")})) == 0
    (out / "spec.json").unlink()
    texts = {file.name: file.read_bytes().decode("latin-1") for file in out.iterdir()}
    texts["log"] = "".join(capfd.readouterr())
    assert len(lines(out / "tickets.jsonl")) >= 1 and "result.json" in texts
    for name, text in texts.items():
        decoded = text.encode("latin-1").decode("utf-8", "replace").casefold()
        found = [secret for secret in [*SECRETS, key] if secret.casefold() in decoded]
        assert not found, name


def test_a_crash_tells_no_identity(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "source").write_text("Miller,Schmidt\nOrtega,x\n")
    (tmp_path / "spec.json").write_text(json.dumps(spec("csv", tmp_path / "source")))
    assert main(payload_arguments("corpus", tmp_path)) == 1
    printed = "".join(capfd.readouterr()) + (tmp_path / "result.json").read_text()
    assert "bad-input" in printed and not any(secret in printed for secret in SECRETS)


def test_without_redaction_names_are_marked_and_authors_hashed(made: Callable[..., Made]):
    corpus = made("jsonl", DIALOGUES, redact=False)
    message = corpus.tickets[0]["messages"][0]
    assert "bob@x.example" in message["text"]
    named = {message["text"][start:end] for start, end, _ in message["people"]}
    assert {"Schmidt", "CARLA ORTEGA", "Müßig", "Bob Miller"} <= named
    assert message["author"] == SALT.identity("bob@x.example")
    assert corpus.tickets[0]["owner"] == SALT.identity("Anna Schmidt")
    assert set(corpus.details["redacted"].values()) == {0} and corpus.details["names_found"] > 4


def test_a_queue_that_names_somebody_is_hashed_in_either_case(made: Callable[..., Made]):
    names = ["Anna Schmidt's tickets", "it@x.example", "printing"]
    content = "\n".join(json.dumps({"text": "a", "queue": name, "owner": "Anna Schmidt"}) for name in names)
    for redact in (True, False):
        classes = made("jsonl", content, redact=redact).details["classes"]
        assert set(classes) == {SALT.identity(name) for name in names[:2]} | {"printing"}


def test_pseudonyms_are_where_they_are_said_to_be(made: Callable[..., Made]):
    corpus = made("jsonl", DIALOGUES)
    messages = [message for ticket in corpus.tickets for message in ticket["messages"]]
    spans = [(m["text"][a:b], name) for m in messages for a, b, name in m.get("people", [])]
    assert len(spans) == corpus.details["redacted"]["names"] > 5
    assert all(text == name for text, name in spans)
    assert SALT.pseudonym("Anna Schmidt") in corpus.tickets[0]["messages"][0]["text"]


class _Job:
    """What the stage's runner asks of a job."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.spec, self.folder = spec(kind, folder), folder
        self.cell, self.spec_file = Cell.of(**self.spec["cell"]), folder / "spec.json"
        self.paths = StudyPaths(results=folder / "results", study="mine")

    def module(self, *arguments: str | Path) -> list[str]:
        return [str(argument) for argument in arguments]


def test_a_changed_source_runs_a_corpus_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SALT_VARIABLE, str(tmp_path / "salt"))
    file, folder = tmp_path / "tickets.jsonl", tmp_path / "mails"
    (folder / "net").mkdir(parents=True)
    mail = folder / "net" / "1.eml"
    for path, changed in ((file, file), (folder, mail)):
        changed.write_text("one")
        runner, job = RUNNERS.get("corpus"), _Job("jsonl", tmp_path)
        job.spec["rule"]["path"] = str(path)
        before = runner.inputs(job)
        assert before == runner.inputs(job)
        changed.write_text("two, and longer")
        assert runner.inputs(job) != before


def test_a_changed_salt_runs_a_corpus_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "tickets").mkdir()
    runner, job = RUNNERS.get("corpus"), _Job("jsonl", tmp_path)
    job.spec["rule"]["path"] = str(tmp_path / "tickets")
    monkeypatch.setenv(SALT_VARIABLE, str(tmp_path / "one"))
    first = runner.inputs(job)
    assert first == runner.inputs(job) and str(tmp_path / "one") in str(runner.run_values(job))
    monkeypatch.setenv(SALT_VARIABLE, str(tmp_path / "two"))
    assert runner.inputs(job) != first
    key = (tmp_path / "two").read_text().strip()
    assert key not in str(runner.inputs(job))
    # Snakemake has to notice it too, at the first run as well.
    monkeypatch.setenv(SALT_VARIABLE, str(tmp_path / "three"))
    assert STAGES.get("corpus").files(job.spec) == [tmp_path / "tickets", tmp_path / "three"]
    assert (tmp_path / "three").is_file()


def test_tickets_of_the_package_need_no_salt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SALT_VARIABLE, str(tmp_path / "none" / "there"))
    for kind in ("sample", "synthetic"):
        assert RUNNERS.get("corpus").inputs(_Job(kind, tmp_path)) == []
        assert RUNNERS.get("corpus").run_values(_Job(kind, tmp_path)) == {}
        assert STAGES.get("corpus").files(spec(kind, None)) == []
    assert not (tmp_path / "none").exists()
