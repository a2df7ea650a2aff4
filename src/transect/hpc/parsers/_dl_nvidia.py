"""DLLogger of NVIDIA's DeepLearningExamples, as text and JSON, and AWS Neuron's lines like it.

`DLL DATE TIME - STEP KEY : VALUE [UNIT] ...` and `DLLL {"type": "LOG", "step": [], "data": {}}`.
A step is `(epoch, iteration)` or `Epoch: 0 Iteration: 1`; `()` and `Summary` stand for the whole.
"""

from __future__ import annotations

import re

from transect.domain.metrics import Direction
from transect.hpc.base import Parameter
from transect.hpc.parsers._dl_training import HIGHER, LOWER, NEUTRAL, Training, rate_of
from transect.hpc.parsers._learning import Digits, first_objects, literal
from transect.hpc.text import excerpt
from transect.hpc.values import NUMBER, number

_TEXT = re.compile(
    r"(?:DLL \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
    r"|LOG \w{3} \w{3}\s{1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}) -\s{1,9}(.*)$"
)
_TUPLE = re.compile(r"\(([\d, ]{0,60})\)\s*")
_WORDS = re.compile(
    r"(?:Training )?[Ee]poch:?\s{1,9}(\d{1,9})"
    r"(?:[\s|]{1,9}(?:Training )?[Ii]ter(?:ation)?:?\s{1,9}(\d{1,12})(?:/\s{0,9}(\d{1,12}))?)?"
)
_CELL = re.compile(rf"(?:([A-Za-z][A-Za-z ]{{0,40}}?)\s{{1,9}})?({NUMBER})(k)?\s?([A-Za-z]{{1,12}}/s)?$")
_QUALITY = re.compile(r"loss|error|wer|ppl|perplexity|time|latency|seconds|duration|norm", re.I)
_SCORE = re.compile(r"acc|top_?[15]|f1|exact_match|bleu|score|precision|recall|map|dice|auc", re.I)


def read_dllogger(training: Training, text: str) -> bool:
    """Take in a line of DLLogger or of Neuron; False when it is neither."""
    if text.startswith("DLLL"):
        place = text.find("{")
        return place > 0 and _read_json(training, text, place)
    match = _TEXT.match(text)
    if match is None:
        return False
    neuron = text.startswith("LOG")
    training.variants.add("neuron" if neuron else "dllogger")
    body = match[1]
    if body.startswith("PARAMETER"):
        for key, value, _ in _pairs(body.removeprefix("PARAMETER").replace("|", " ")):
            training.parameter(key, _plain(value))
        return True
    step, fields, whole = _step(body)
    if step:
        training.at(step)
    if " : " not in fields:
        _read_cells(training, fields, whole)
    for key, value, unit in _pairs(fields):
        _take(training, key, value, unit, whole)
    _close(training, whole, neuron)
    return True


def step_of(text: str) -> tuple[int, ...] | None:
    """Return the step with which a line begins; None for a summary or a header."""
    match = _TEXT.match(text)
    if match is None or match[1].startswith("PARAMETER"):
        return None
    return _step(match[1])[0] or None


def _step(body: str) -> tuple[tuple[int, ...], str, bool]:
    """Split a message into its step, what follows, and whether it is about the whole."""
    if (match := _TUPLE.match(body)) is not None:
        digits = [part.strip() for part in match[1].split(",")]
        step = tuple(int(part) for part in digits if part.isdigit() and len(part) < 16)
        return step, body[match.end() :], not step
    if (match := _WORDS.match(body)) is not None:
        step = tuple(int(part) for part in (match[1], match[2]) if part is not None)
        return step, body[match.end() :], False
    return (), body.removeprefix("Summary:").strip(), True


def _pairs(text: str) -> list[tuple[str, str, str]]:
    """Split `key : value [unit] key : value` into its parts."""
    words = text.split()[:2000]
    places = [i for i, word in enumerate(words) if word == ":" and 0 < i < len(words) - 1]
    out = []
    for at, place in enumerate(places):
        following = places[at + 1] - 1 if at + 1 < len(places) else len(words)
        unit = words[place + 2] if following == place + 3 else ""
        if unit == "None" or not re.fullmatch(r"[A-Za-z%][\w/%.]{0,20}", unit):
            unit = ""
        out.append((words[place - 1], words[place + 1], unit))
    return out


def _read_cells(training: Training, text: str, whole: bool) -> None:
    for cell in text.split("|"):
        match = _CELL.match(cell.strip())
        if match is None or not (match[1] or match[4]):
            continue
        if match[3]:  # `34.1k frames/s` is no number
            training.parameter(f"{match[1] or ''} {match[4] or ''}".strip(), excerpt(cell))
        else:
            _take(training, (match[1] or match[4]).strip(), match[2], match[4] or "", whole)


def _plain(value: str) -> Parameter:
    typed = literal(Digits(value)) if number(value) is not None else None
    return excerpt(value) if typed is None else typed


def _direction(name: str) -> Direction:
    if _QUALITY.search(name):
        return LOWER
    return HIGHER if _SCORE.search(name) else NEUTRAL


def _take(training: Training, key: str, value: str, unit: str, whole: bool) -> None:
    if re.fullmatch(r"lr|learning_rate|step|epoch|train\.lr", key):
        return
    unit = unit or training.units.get(key, "")
    if "neuron" in training.variants and key == "throughput":
        unit = "sequences/s"  # seq_per_sec in dp_bert_large_hf_pretrain_hdf5.py
    rate = rate_of(key, unit)
    store = training.result if whole else training.point
    if not re.fullmatch(NUMBER, value):
        return
    if rate is not None:
        registered = rate[1]
        if registered is None and rate[0] == "1/s" and re.search(r"throughput$", key):
            # Whole-run `train_throughput` beside `total_ips` counts what the steps count.
            known = next((s.registered for s in training.series.values() if s.registered), None)
            registered = known if whole else None
        store(key, value, rate[0], HIGHER, registered)
    else:
        store(key, value, unit or "1", _direction(key))


def _read_json(training: Training, text: str, place: int) -> bool:
    training.variants.add("dllogger")
    for record in first_objects(text, place):
        kind, data, step = record.get("type"), record.get("data"), record.get("step")
        if kind == "METADATA":
            about = record.get("metadata")
            unit = about.get("unit") if isinstance(about, dict) else None
            if isinstance(unit, str) and len(training.units) < 200:
                training.units.setdefault(str(record.get("metric"))[:80], excerpt(unit, 20))
            continue
        if not isinstance(data, dict):
            continue
        if kind == "PARAMETER" or step == "PARAMETER":
            for key, value in data.items():
                training.parameter(key, literal(value))
            continue
        cells = step if isinstance(step, list) else [step]
        made = tuple(int(cell) for cell in cells if isinstance(cell, Digits) and re.fullmatch(r"\d{1,15}", cell))
        if made:
            training.at(made)
        for key, value in data.items():
            if isinstance(value, Digits):
                _take(training, key[:80], value[:60], "", not made)
        _close(training, not made and bool(data), False)
    return True


def _close(training: Training, whole: bool, neuron: bool) -> None:
    if neuron:
        return
    training.expects_end = "() or Summary of DLLogger"
    if whole and training.results:
        training.ended = "summary"
