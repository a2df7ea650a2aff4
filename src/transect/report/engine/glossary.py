"""Words that the page uses in a sense of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from transect.report.engine.blocks import Facts, Lead, Part

TERMS = {
    "all-reduce": "The sum over all processes that every process then has, such as of gradients.",
    "base": "What a speed-up is counted from: the same framework and kind of training on the fewest processes.",
    "binding": "Handing a runtime its inputs and outputs where they lie.",
    "bound": "What the hardware allows at best, from benchmarks that ran here; nothing can be beyond it.",
    "cell": "One point of a study, run as often as it has repeats; its id names it in results and commands.",
    "disturbed": "Other programs used the machine while it ran. Such a run enters no comparison that has three quiet ones.",
    "efficiency": "The speed-up over the processes added: 100 % is perfect use of them.",
    "execution provider": "The part of a runtime that computes on a kind of device: cpu or cuda.",
    "exporter": "What writes a model of a framework as an ONNX file.",
    "fingerprint": "What a record was made from, hashed: settings, code, environment, inputs. Where it changes, the cell runs again.",
    "framework": "The library that computes gradients, such as PyTorch, or one written here.",
    "global batch": "The samples of all processes together that one step learns from.",
    "intensity": "Operations per byte moved to or from memory.",
    "interval": "Where a number lies, as far as chance goes; the share beside it says how often such an interval holds it.",
    "latency": "Time from a call to its answer.",
    "likely": "Seen, but in too few runs, beside other programs, or in a comparison that no question of the study asks for.",
    "lock hash": "A short name of all versions in a software environment: equal hashes, equal packages.",
    "margin": "How far apart two may be and still count as the same.",
    "median": "The middle value of the repeats: half are smaller.",
    "node": "A machine of a cluster; 2x4 ranks are 2 nodes with 4 processes on each.",
    "not checkable": "From some step on rounding alone may grow as large as what is looked for: the check says nothing there.",
    "not known": "These runs cannot tell. That is no sign that there is no difference.",
    "offered load": "Requests that arrive by a clock, whether earlier ones are answered or not.",
    "opset": "The version of ONNX's operators that a file is written in.",
    "over-subscribed": "More processes, or threads, than cores: times hold waiting for a core, and carry no claim.",
    "overlap": "The share of communication that hides behind computing.",
    "percentile": "Of the 95th, 95 of 100 samples are smaller. Given only where enough samples lie beyond it.",
    "provenance": "Where a number comes from: machine, versions, settings, code, time.",
    "quality target": "The score on the test set that a training has to reach before its time counts.",
    "range": "The smallest and the largest repeat, where there are too few for an interval.",
    "rank": "One of the processes that train together.",
    "record": "The file that one cell yields, whatever became of it: numbers, samples, settings, versions, machine.",
    "reference": "The same training by one process in float64, whose losses and weights all trainers have to follow.",
    "repeat": "The same cell once more, with another seed where it trains.",
    "restart": "A trainer handed the reference's state in mid-training, to be checked anew over the next steps.",
    "roofline": "The bound of arithmetic and memory together: peak FLOP/s, or intensity times memory bandwidth where that is less.",
    "runtime": "What executes an ONNX file, in one language on one execution provider.",
    "samples/s": "What is done in a second: samples trained, or rows inferred. Never read without the quality reached.",
    "session": "What a runtime makes of a model before the first call.",
    "speed-up": "How many times the samples/s of the base.",
    "stage": "A kind of work, such as train, export, infer or bench.",
    "step": "One update of the weights: a batch forwards and backwards, gradients exchanged, weights changed.",
    "strategy": "How processes work together on one training, such as ddp or mpi-allreduce; single: one alone.",
    "strong": "More processes share the same global batch: each has less to do.",
    "superlinear": "More than 100 % efficient: the base is slow, or the work of a process fits where it did not.",
    "sure": "Shown by three quiet runs a side or more, beside all comparisons that the study asks for; or a fact about every record.",
    "synthetic input": "Random numbers that lie ready on the device: what a training would do without reading data.",
    "time to quality": "From the first touch of the data until the quality target is reached.",
    "tolerance": "How far a result may lie from its reference and still be right, from the rounding of its precision.",
    "turn": "What is compared runs by turns, each waiting while the other works: what changes on the machine meets both.",
    "twin": "The same cell but for one thing, such as its input.",
    "waiting": "Time of a step in which a process does nothing but wait for messages.",
    "weak": "Each process keeps its batch, so the global batch grows with them: the training is another one.",
    "workload": "Data, model, hyper-parameters and the quality to reach, under one name.",
    "wrong result": "It leaves the tolerance: listed, and in no comparison, however fast.",
}


def glossary_parts(pages: Iterable[str]) -> Iterator[Part]:
    """Explain the terms that occur in what the page says; nothing where none does."""
    text = "\n".join(pages).lower()
    used = [(term, meaning) for term, meaning in TERMS.items() if term in text]
    if used:
        yield Lead(f"{len(used)} words that this page uses in a sense of their own.")
        yield Facts(items=used)
