"""Words that the page uses in a sense of their own: one list, which the glossary and all links to it are made from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transect.report.engine.blocks import Facts, Lead, Part


@dataclass(frozen=True, kw_only=True, slots=True)
class Term:
    """A word, what it means here, and other forms of it than the plural."""

    name: str
    meaning: str
    forms: tuple[str, ...] = ()


def _terms(**meanings: str) -> Iterator[Term]:
    for key, text in meanings.items():
        forms, _, meaning = text.rpartition(" | ")
        yield Term(
            name=key.replace("__", "-").replace("_", " "),
            meaning=meaning,
            forms=tuple(form for form in forms.split(", ") if form),
        )


TERMS: tuple[Term, ...] = tuple(
    sorted(
        _terms(
            study="What one file asks: questions, workloads, grids, runtimes, logs.",
            system="A machine, as its file describes it: nodes, cores, scheduler, networks. Of logs: the folder or file they came in.",
            workload="Data, model, hyper-parameters and the quality to reach, under one name.",
            framework="The library that computes gradients, such as PyTorch, or one written here.",
            strategy="strategies | How ranks work together on one training, such as ddp or mpi-allreduce; single: one rank alone.",
            exporter="What writes a model of a framework as an ONNX file.",
            runtime="What executes an ONNX file, in one language on one execution provider.",
            execution_provider="The part of a runtime that computes on a kind of device: cpu or cuda.",
            stage="A kind of work, such as train, export, infer or bench.",
            cell="One point of a study's grid, run as often as it has repeats; its id names it in results and commands.",
            record="The file that one cell yields, whatever became of it: numbers, samples, settings, versions, machine.",
            repeat="The same cell once more, with another seed where it trains.",
            rank="One of the processes that train together.",
            node="A machine of a cluster; 2x4 ranks are 2 nodes with 4 ranks on each.",
            over__subscribed="oversubscribed | More ranks, or threads, than cores: times hold waiting for a core, and carry no claim.",
            disturbed="Other processes used the machine while it ran, and running it again did not help.",
            median="The middle value of the repeats: half are smaller.",
            interval="95 % interval, confidence interval | Where the median lies with 95 % confidence, by ranks of the repeats, whatever their distribution. From six repeats on.",
            range="The smallest and the largest repeat, where there are too few for an interval.",
            noise_floor="How far repeats of one and the same cell lie apart (A/A pairs): a smaller difference is not called one.",
            margin="How far apart two cells may be and still count as the same, 5 % unless the study says otherwise.",
            quality_target="The score on the test set that a training has to reach before its time counts.",
            time_to_quality="From the first touch of the data until the quality target is reached, evaluations included.",
            throughput="samples/s | What is done in a second: samples trained, or rows inferred. Never read without the quality reached.",
            step="One update of the weights: a batch forwards and backwards, gradients exchanged, weights changed.",
            global_batch="The samples of all ranks together that one step learns from.",
            strong_scaling="More ranks share the same global batch: each has less to do.",
            weak_scaling="Each rank keeps its batch, so the global batch grows with the ranks: the training is another one.",
            speed__up="speedup, speed-ups | How many times the samples/s of the base.",
            efficiency="efficiencies | The speed-up over the ranks added: 100 % is perfect use of them.",
            base="What a speed-up is counted from: the same framework, kind of training and batch on fewest ranks. Named with each number.",
            superlinear="More than 100 % efficient beyond the noise: then the base is slow, or the work per rank fits where it did not.",
            waited="Time of a step in which a rank does nothing but wait for messages.",
            overlap="The share of communication that hides behind computing.",
            all__reduce="allreduce | The sum over all ranks that every rank then has, such as of gradients.",
            bound="lower bound, upper bound | What the hardware allows at best, from benchmarks that ran here; nothing can be beyond it.",
            roofline="The bound of arithmetic and memory together: peak FLOP/s, or intensity times memory bandwidth where that is less.",
            intensity="Operations per byte moved to or from memory.",
            reference="The same training by one process in float64, whose losses and weights all trainers have to follow.",
            tolerance="How far a result may lie from its reference and still be right, from the rounding of its precision.",
            wrong_result="wrong-result, wrong results | It leaves the tolerance: listed, and in no comparison, however fast.",
            not_checkable="From some step on rounding alone may grow as large as what is looked for: the check says nothing there.",
            restart="A trainer handed the reference's state in mid-training, to be checked anew over the next steps.",
            synthetic_input="Random numbers that lie ready on the device: what a training would do without reading data.",
            twin="The same cell but for one thing, such as its input.",
            opset="The version of ONNX's operators that a file is written in.",
            latency="latencies | Time from a call to its answer.",
            percentile="95th percentile, p99 | The 95th: 95 of 100 samples are smaller. Given only where enough samples lie beyond it.",
            offered_load="Requests that arrive by a clock, whether earlier ones are answered or not.",
            session="What a runtime makes of a model before the first call.",
            binding="Handing a runtime its inputs and outputs where they lie.",
            provenance="Where a number comes from: machine, versions, settings, code, time.",
            lock_hash="A short name of all versions in a software environment: equal hashes, equal packages.",
            fingerprint="What a record was made from, hashed: settings, code, environment, inputs. Where it changes, the cell runs again.",
        ),
        key=lambda term: term.name,
    )
)


def anchor(term: Term) -> str:
    """Return the id of a term's entry.

    >>> anchor(term_of("Speed-ups"))
    'term-speed-up'
    """
    return "term-" + term.name.replace(" ", "-")


def _forms(term: Term) -> list[str]:
    return [term.name, f"{term.name}s", *term.forms]


_BY_FORM = {form.lower(): term for term in TERMS for form in _forms(term)}
# Longest first: `time to quality` before `quality`.
pattern = re.compile(
    r"(?<![\w/.-])(?:" + "|".join(map(re.escape, sorted(_BY_FORM, key=len, reverse=True))) + r")(?![\w/-])",
    re.IGNORECASE,
)


def term_of(word: str) -> Term:
    """Return the term that a word is a form of. Raises KeyError for a word that is none."""
    return _BY_FORM[word.lower()]


def glossary_parts(pages: Iterable[str]) -> Iterator[Part]:
    """Explain the terms that occur in what the page says; nothing where none does."""
    text = "\n".join(pages).lower()
    used = [
        term
        for term in TERMS
        # Looking for a word is fast, and finding out whether it stands alone is not.
        if any(form.lower() in text and _alone(form, text) for form in _forms(term))
    ]
    if used:
        yield Lead(f"{len(used)} words that this page uses in a sense of their own.")
        yield Facts(items=[(term.name, term.meaning) for term in used], ids=[anchor(term) for term in used])


def _alone(form: str, text: str) -> bool:
    """Whether a form stands in a text as a word of its own: found by looking, not by a pattern.

    A pattern that begins with what may not stand before it looks at every letter of megabytes.
    """
    form = form.lower()
    at = text.find(form)
    while at >= 0:
        end = at + len(form)
        if not _in_word(text[at - 1 : at] if at else "") and not _in_word(text[end : end + 1]):
            return True
        at = text.find(form, at + 1)
    return False


def _in_word(letter: str) -> bool:
    return letter.isalnum() or letter in ("_", "-")
