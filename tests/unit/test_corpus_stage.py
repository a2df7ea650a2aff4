"""The corpus stage: what it leaves of a source, and that nobody's identity is in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_mail_threads import mail, mbox
from test_normalise import HOSTILE

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.files import sha256_file
from transect.planning.stage import STAGES
from transect.stages.corpus.run import Corpora
from transect.stages.corpus.worker import build, main
from transect.text.rejection import CAUSES
from transect.text.salt import SALT_VARIABLE, Salt, read_salt

SALT = Salt(b"k" * 32)
ARRAYS = ("labels", "times", "owners")


def spec(kind: str, path: Path | None, **rule: Any) -> dict[str, Any]:
    usual = {"options": {}, "label": "queue", "redact": True, "limit": None}
    rule = usual | {"format": kind, "path": path and str(path)} | rule
    return {"cell": {"stage": "corpus", "corpus": "x"}, "rule": rule, "seed": 5}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


class Made:
    """A corpus that was built."""

    def __init__(self, out: Path, result: dict[str, Any]) -> None:
        self.out, self.details = out, result["details"]
        self.tickets, self.rejected = lines(out / "tickets.jsonl"), lines(out / "rejected.jsonl")
        self.labels, self.times, self.owners = (np.load(out / f"{name}.npy") for name in ARRAYS)


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Made]:
    def make(kind: str, content: str | bytes | None = None, salt: Salt = SALT, **rule: Any) -> Made:
        path = None
        if content is not None:
            path = tmp_path / "source"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        out = tmp_path / f"out-{len([*tmp_path.iterdir()])}"
        out.mkdir()
        return Made(out, build(spec(kind, path, **rule), salt, out))

    return make


FLAT = "Document,Topic_group\none,b\ntwo,a\n ,a\nthree,\nfour,b\nfive,c\n"


def test_what_a_corpus_leaves(made: Callable[..., Made], tmp_path: Path):
    corpus = made("flat-csv", FLAT)
    assert [ticket["messages"][0]["text"] for ticket in corpus.tickets] == [
        "one",
        "two",
        "four",
        "five",
    ]
    assert corpus.labels.tolist() == [1, 0, 1, 2] and corpus.labels.dtype == np.int32
    assert np.isnan(corpus.times).all() and corpus.times.dtype == np.float64
    assert corpus.owners.tolist() == [-1] * 4 and corpus.owners.dtype == np.int32
    assert [(one["place"], one["cause"]) for one in corpus.rejected] == [
        ("ticket 3", "no-text"), ("ticket 4", "no-label"),
    ]  # fmt: skip
    details = corpus.details
    assert (details["tickets"], details["read"]) == (4, 6)
    assert details["rejected"] == {"no-text": 1, "no-label": 1}
    assert (details["classes"], details["class_counts"]) == (["a", "b", "c"], [1, 2, 1])
    assert details["source_sha256"] == sha256_file(tmp_path / "source")
    assert details["synthetic"] is False and details["bayes_accuracy"] is None
    assert {file.name for file in corpus.out.iterdir()} == {
        "tickets.jsonl", "rejected.jsonl", "labels.npy", "times.npy", "owners.npy",
    }  # fmt: skip


def test_the_same_source_gives_the_same_files(made: Callable[..., Made]):
    one, two = made("flat-csv", FLAT), made("flat-csv", FLAT)
    for file in one.out.iterdir():
        assert file.read_bytes() == (two.out / file.name).read_bytes(), file.name


def test_of_tickets_with_one_id_the_first_stays(made: Callable[..., Made]):
    content = "".join(
        json.dumps({"id": number, "queue": "q", "text": f"text {place}"}) + "\n"
        for place, number in enumerate([1, 2, 1, 3, 2, 1])
    )
    corpus = made("jsonl", content)
    assert [one["messages"][0]["text"] for one in corpus.tickets] == ["text 0", "text 1", "text 3"]
    assert len(corpus.labels) == 3
    assert corpus.details["rejected"] == {"duplicate-id": 3}
    assert [(one["place"], one["detail"]) for one in corpus.rejected] == [
        ("ticket 3", "that of ticket 1"), ("ticket 5", "that of ticket 2"), ("ticket 6", "that of ticket 1"),
    ]  # fmt: skip


def test_a_limit_draws_tickets_in_their_order(made: Callable[..., Made]):
    content = "Document,Topic_group\n" + "".join(f"text {i},q{i % 3}\n" for i in range(100))
    whole = [one["messages"][0]["text"] for one in made("flat-csv", content).tickets]
    drawn = [one["messages"][0]["text"] for one in made("flat-csv", content, limit=10).tickets]
    assert len(drawn) == 10 and drawn == [text for text in whole if text in drawn]
    assert drawn != whole[:10]
    assert made("flat-csv", content, limit=10).details["classes"] == ["q0", "q1", "q2"]
    assert len(made("flat-csv", content, limit=1000).tickets) == 100


def test_classes_that_a_limit_leaves_out_are_none(made: Callable[..., Made]):
    content = "Document,Topic_group\n" + "".join(f"text {i},q{i}\n" for i in range(20))
    corpus = made("flat-csv", content, limit=5)
    assert len(corpus.details["classes"]) == 5 and sorted(corpus.labels) == [0, 1, 2, 3, 4]
    named = [corpus.details["classes"][label] for label in corpus.labels]
    assert named == [ticket["queue"] for ticket in corpus.tickets]


@pytest.mark.parametrize(
    ("kind", "content", "told"),
    [
        ("jsonl", "", "no ticket to use of 0"),
        ("jsonl", "{}\n{\n", "missing-column 1, broken-json 1"),
        ("flat-csv", "Document\na\n", "no-label 1"),
        ("mbox", "", "of 0"),
    ],
)
def test_a_source_without_a_ticket_is_an_error(
    made: Callable[..., Made], kind: str, content: str, told: str
):
    with pytest.raises(BadInput, match=told):
        made(kind, content)


def test_a_language_is_one_without_its_country_and_a_queue_a_name(made: Callable[..., Made]):
    content = (
        '{"text": "a", "queue": "q", "language": "de-AT"}\n{"text": "a", "queue": "q", "language": "German"}\n'
        f'{{"text": "a", "queue": "{"q" * 201}"}}\n{{"text": "a", "queue": " <b>\\u202e\\n\\u001b[1m "}}\n'
    )
    corpus = made("jsonl", content)
    assert corpus.details["languages"] == {"unknown": 2, "de": 1}
    assert corpus.details["rejected"] == {"too-large": 1}
    assert corpus.details["classes"] == ["<b> [1m", "q"] and corpus.details["same_text"] == 2


PEOPLE = ["Anna Schmidt", "Bob Miller", "Jörg Müßig", "Carla Ortega"]
SECRETS = ["Schmidt", "Miller", "Müßig", "Muessig", "Ortega", "bob@x.example", "x.example", "3912345", "39-12345",
           "10.1.2.3", "2001:db8", "T-4711"]  # fmt: skip
TALK = [
    {
        "id": "T-4711", "owner": "Anna Schmidt", "queue": "it", "people": ["Carla Ortega <carla@x.example>"],
        "messages": [
            {"author": "Bob Miller <bob@x.example>", "role": "customer", "time": "2023-01-02T03:04:05Z",
             "text": "Dear Mrs Schmidt, 10.1.2.3 is down; ask CARLA ORTEGA or Herrn Müßig. bob@x.example, 0551 39-12345\n"
                     "Bob Miller"},
            {"author": "Anna Schmidt", "role": "agent", "text": "Hi Bob, done. Schmidts regards, Anna\n2001:db8::1"},
        ],
    },
    {"id": "T-4712", "owner": "Jörg Müßig", "queue": "Team of Ortega",
     "text": "<p>Joerg Muessig, <b>Mi\u00adller</b> called from (0551) 3912345</p><script>Schmidt</script>"},
    {"id": "T-4713", "owner": "Schmidt", "queue": "bob@x.example", "text": "S\u200bchmidt Mu\u0308ßig MILLER's", "time": "Miller"},
    {"id": "T-4713", "owner": "Miller", "queue": "it", "text": "O\u202ertega"},
    {"id": "T-4713", "text": "Miller"}, {"id": "T-4711", "owner": "Ortega", "queue": "Miller", "text": "Schmidt"},
]  # fmt: skip
DIALOGUES = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in TALK) + '{"text": "Miller'
MAILS = mbox(
    mail(1, "Müßig: 10.1.2.3", "Bob Miller, 0551 3912345", X_Owner="Anna Schmidt", X_Queue="it"),
    mail(2, "Re: Müßig", "Hi Miller\nOrtega", answers=1, author="Anna Schmidt <anna@x.example>",
         To="Bob Miller <bob@x.example>", Cc="Carla Ortega <c@x.example>, Müßig"),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "content"), [("jsonl", DIALOGUES), ("mbox", MAILS)])
@pytest.mark.parametrize("label", ["owner", "queue"])
def test_no_identity_is_in_any_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str, content: str | bytes, label: str
):
    source, out = tmp_path / "source", tmp_path / "out"
    source.write_bytes(content if isinstance(content, bytes) else content.encode())
    out.mkdir()
    (tmp_path / "spec.json").write_text(json.dumps(spec(kind, source, label=label)))
    read_salt(tmp_path / "salt")
    key = (tmp_path / "salt").read_text().strip()
    given_ = [
        "--spec",
        str(tmp_path / "spec.json"),
        "--out",
        str(out),
        "--salt",
        str(tmp_path / "salt"),
    ]
    assert main(given_) == 0
    told = {file.name: file.read_bytes().decode("latin-1") for file in out.iterdir()}
    told["log"] = "".join(capfd.readouterr())
    assert len(lines(out / "tickets.jsonl")) >= 1 and "result.json" in told
    for name, text in told.items():
        decoded = text.encode("latin-1").decode("utf-8", "replace").casefold()
        found = [secret for secret in [*SECRETS, key] if secret.casefold() in decoded]
        assert not found, name


def test_a_crash_tells_no_identity(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "source").write_text("Miller,Schmidt\nOrtega,x\n")
    (tmp_path / "spec.json").write_text(json.dumps(spec("csv", tmp_path / "source")))
    assert main(["--spec", str(tmp_path / "spec.json"), "--out", str(tmp_path)]) == 1
    told = "".join(capfd.readouterr()) + (tmp_path / "result.json").read_text()
    assert "bad-input" in told and not any(secret in told for secret in SECRETS)


def test_without_redaction_names_are_marked_and_authors_hashed(made: Callable[..., Made]):
    corpus = made("jsonl", DIALOGUES, redact=False)
    message = corpus.tickets[0]["messages"][0]
    assert "bob@x.example" in message["text"]
    named = {message["text"][start:end] for start, end, _ in message["people"]}
    assert {"Schmidt", "CARLA ORTEGA", "Müßig", "Bob Miller"} <= named
    assert message["author"] == SALT.identity("bob@x.example")
    assert corpus.tickets[0]["owner"] == SALT.identity("Anna Schmidt")
    assert set(corpus.details["redacted"].values()) == {0} and corpus.details["names_found"] > 4


def test_pseudonyms_are_where_they_are_said_to_be(made: Callable[..., Made]):
    corpus = made("jsonl", DIALOGUES)
    messages = [message for ticket in corpus.tickets for message in ticket["messages"]]
    spans = [(m["text"][a:b], name) for m in messages for a, b, name in m.get("people", [])]
    assert len(spans) == corpus.details["redacted"]["names"] > 5
    assert all(text == name for text, name in spans)
    assert SALT.pseudonym("Anna Schmidt") in corpus.tickets[0]["messages"][0]["text"]


def test_another_salt_gives_other_pseudonyms_and_the_same_classes(made: Callable[..., Made]):
    content = "".join(
        json.dumps({"id": i, "owner": f"Person{'abc'[i % 3]}", "text": f"text {i}"}) + "\n"
        for i in range(9)
    )
    one = made("jsonl", content, label="owner")
    two = made("jsonl", content, label="owner", salt=Salt(b"x" * 32))
    assert not set(one.details["classes"]) & set(two.details["classes"])
    assert one.labels.tolist() == two.labels.tolist() == [0, 1, 2] * 3


def test_times_and_owners_stand_beside_the_tickets(made: Callable[..., Made]):
    corpus = made("jsonl", DIALOGUES)
    assert corpus.times[0] == 1672628645.0 and np.isnan(corpus.times[1])
    assert corpus.owners[:2].tolist() == [0, 1] and corpus.details["owners"] == 3
    assert corpus.details["with_time"] == 1


def test_made_up_tickets_say_so_and_what_can_be_reached(made: Callable[..., Made]):
    corpus = made(
        "synthetic", None, options={"tickets": 60, "owners": 4, "queues": 2}, label="owner"
    )
    assert corpus.details["synthetic"] is True and corpus.details["source_sha256"] is None
    best = corpus.details["bayes_accuracy"]
    assert 0 < best["first"]["removed"] <= best["conversation"]["kept"] <= 1
    kept = np.load(corpus.out / "bayes.npz")
    assert {f"{view}-{names}" for view in best for names in best[view]} == set(kept)
    assert all(
        len(kept[name]) == 60 and ((kept[name] > 0) & (kept[name] <= 1)).all() for name in kept
    )


@settings(max_examples=30)
@given(st.lists(HOSTILE.map(lambda text: text.encode("utf-8", "replace").decode()), max_size=4))
def test_hostile_texts_become_tickets_or_are_rejected(
    tmp_path_factory: pytest.TempPathFactory, many: list[str]
):
    folder = tmp_path_factory.getbasetemp() / "corpus-fuzz"
    folder.mkdir(exist_ok=True)
    content = [{"id": i, "queue": "q", "text": text, "author": text} for i, text in enumerate(many)]
    content.append({"id": -1, "queue": "q", "text": "good"})
    (folder / "source").write_text("".join(json.dumps(one) + "\n" for one in content))
    result = build(spec("jsonl", folder / "source"), SALT, folder)
    details = result["details"]
    assert (
        details["tickets"] + sum(details["rejected"].values()) == details["read"] == len(many) + 1
    )
    assert set(details["rejected"]) <= set(CAUSES)
    assert len(lines(folder / "tickets.jsonl")) == details["tickets"]


class _Job:
    """What the stage's runner asks of a job."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.spec, self.folder = spec(kind, folder), folder
        self.cell, self.spec_file = Cell.of(**self.spec["cell"]), folder / "spec.json"

    def module(self, *arguments: str | Path) -> list[str]:
        return [str(one) for one in arguments]


def test_a_changed_salt_runs_a_corpus_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    runner, job = Corpora(), _Job("jsonl", tmp_path)
    monkeypatch.setenv(SALT_VARIABLE, str(tmp_path / "one"))
    first = runner.inputs(job)
    assert first == runner.inputs(job) and str(tmp_path / "one") in runner.command(job)
    monkeypatch.setenv(SALT_VARIABLE, str(tmp_path / "two"))
    assert runner.inputs(job) != first
    key = (tmp_path / "two").read_text().strip()
    assert key not in str(runner.inputs(job))
    # Snakemake has to notice it too, at the first run as well.
    monkeypatch.setenv(SALT_VARIABLE, str(tmp_path / "three"))
    assert STAGES.get("corpus").files(job.spec) == [tmp_path, tmp_path / "three"]
    assert (tmp_path / "three").is_file()


def test_tickets_of_the_package_need_no_salt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SALT_VARIABLE, str(tmp_path / "none" / "there"))
    for kind in ("sample", "synthetic"):
        assert Corpora().inputs(_Job(kind, tmp_path)) == []
        assert "--salt" not in Corpora().command(_Job(kind, tmp_path))
        assert STAGES.get("corpus").files(spec(kind, None)) == []
    assert not (tmp_path / "none").exists()
