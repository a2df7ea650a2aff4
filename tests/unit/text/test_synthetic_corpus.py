"""Synthetic tickets on their way through the stages: what they tell is neither lost nor added to."""

import json
import re

import numpy as np
import pytest
from best_classifier import Likelihood, read

from payload_calls import payload_module
from transect.text.lines import read_lines
from warm import warm

OPTIONS = {"tickets": 400, "owners": 8, "addressed": 0.4, "stand_in": 0.2, "signed": 0.6}
SEED = 5


def run(python, stage, folder, **given):
    """Run a stage's worker on a spec; return its folder."""
    spec, corpus = given.pop("spec"), given.pop("corpus", None)
    out = folder / f"{stage}-{'-'.join(given.values())}"
    out.mkdir()
    cell = {"stage": stage, "corpus": "desk"} | given
    (out / "spec.json").write_text(json.dumps(spec | {"cell": cell}))
    done = warm(python).run(*payload_module(stage, out, corpus=corpus))
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module", params=[False, True], ids=["named", "redacted"])
def corpus(request, text_python, tmp_path_factory):
    rule = {
        "format": "synthetic",
        "path": None,
        "options": OPTIONS,
        "label": "owner",
        "redact": request.param,
        "limit": None,
    }
    folder = tmp_path_factory.mktemp("corpus")
    return run(text_python, "corpus", folder, spec={"rule": rule, "seed": SEED}), request.param


def texts_of(python, corpus, folder, view, names):
    folder, redacted = corpus[0], corpus[1]
    spec = {"redacted": redacted}
    found = run(python, "dialogue", folder, view=view, names=names, corpus=folder, spec=spec)
    return [*read_lines(found / "texts.jsonl")]


def test_without_names_the_texts_tell_what_the_model_says(text_python, corpus, tmp_path):
    known = Likelihood(OPTIONS, SEED)
    tickets = [*read_lines(corpus[0] / "tickets.jsonl")]
    with np.load(corpus[0] / "bayes.npz") as file:
        best = dict(file)
    names = {part.lower() for name in known.everybody for part in name.split()}
    texts = texts_of(text_python, corpus, tmp_path, "conversation", "removed")
    firsts = texts_of(text_python, corpus, tmp_path, "first", "removed")
    for number, (text, first) in enumerate(zip(texts, firsts, strict=True)):
        assert not names & set(re.findall(r"\w+", text.lower()))
        topic, hello, signature, words = read(tickets[number]["language"], text.split("\n"))
        assert (hello, signature) == (None, None)
        chances = known.posterior(topic, None, None, words)["owner"]
        assert best["conversation-removed"][number] == pytest.approx(chances.max(), rel=1e-6)
        asked = read(tickets[number]["language"], [first])
        chances = known.posterior(*asked)["owner"]
        assert best["first-removed"][number] == pytest.approx(chances.max(), rel=1e-6)
