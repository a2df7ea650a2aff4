"""The logs of MXNet's Speedometer and Gluon, and of TensorFlow's estimators and official models."""

from __future__ import annotations

import re

from transect.domain.metrics import Direction
from transect.hpc.parsers._dl_training import HIGHER, LOWER, NEUTRAL, Training
from transect.hpc.text import excerpt
from transect.hpc.values import NUMBER, UNCUT

_SPEED = re.compile(
    r"(?:Epoch|Iter) ?\[(\d{1,9})\]\s{0,3}(?:Rank ?\[\d{1,9}\]\s{0,3})?/?Batch ?\[(\d{1,12})"
    rf"(?:-(\d{{1,12}}))?\](?:\s{{0,9}}\[[^\]\n]{{1,40}}\])?\s{{1,9}}[Ss]peed: ({UNCUT}) samples/sec(.*)$"
)
_PAIR = re.compile(rf"([A-Za-z][\w\-@]{{0,40}})\s?[=:]\s?({UNCUT})(?=[\s,]|$)")
_EPOCH = re.compile(rf"Epoch ?\[(\d{{1,9}})\]\s{{1,3}}(Time cost|(?:Train|Validation)-[\w\-]{{1,40}})\s?=\s?({UNCUT})")
_GLUON = re.compile(r"\[Epoch (\d{1,9})\] (training|validation|speed):(.*)$")
_GLUON_SPEED = re.compile(rf"\s({UNCUT}) samples/sec\s{{1,9}}time cost: ({UNCUT})")
_GLUON_NLP = re.compile(
    r"\[Epoch (\d{1,9}) Batch (\d{1,12})/\d{1,12}\][^\n]{0,200}?throughput[ =:]{1,3}"
    rf"({UNCUT})\s?(samples/s|tokens/s|K tokens/s)?"
)
_LOSS = re.compile(rf"loss = ({UNCUT}), step = (\d{{1,12}})")
_RATE = re.compile(rf"(global_step/sec|examples/sec): ({UNCUT})")
_FINAL = re.compile(rf"Loss for final step: ({UNCUT})\.?$")
_FINISHED = re.compile(rf"Finished training up to step (\d{{1,12}})\. Elapsed seconds ({NUMBER}?)\.?$")
_PLAN = re.compile(r"Training for (\d{1,12}) steps")
_SAVED = re.compile(r"Saving dict for global step (\d{1,12}): (.*)$")
_BERT_RATE = re.compile(rf"Throughput Average \(([a-z]{{1,20}})/sec\)( with overhead)? = ({UNCUT})")
_BERT_TIME = re.compile(
    rf"Total (Training|Inference) Time( W/O Overhead| W/O start up overhead)? = ({UNCUT})"
    r" for ([A-Z][a-z]{1,20})(?: processed)? = (\d{1,18})"
)
_HISTORY = re.compile(
    rf"TimeHistory: ({UNCUT}) seconds, ({UNCUT}) examples/second between steps (\d{{1,12}})"
    r" and (\d{1,12})"
)
_BENCHMARK = re.compile(
    rf"BenchmarkMetric: \{{'global step':\s?(\d{{1,12}}),[^}}\n]{{0,200}}'examples_per_second':\s?({UNCUT})"
)
_NAMESPACE = re.compile(r"(\w{1,60})=('[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|\[[^\]\n]{0,200}\]|[^,()\n]{1,80})")
_WANTED = re.compile(
    r"arch|batch_size|max_(?:tokens|sentences|epoch|update|steps)|lr|seed|network|num_(?:layers|epochs)|gpus|kv_store|dtype"
    r"|image_shape|fp16|distributed_world_size|steps_this_run|grad_accum_usteps|seq_len|update_freq|optimizer|disp_batches"
)
_COLUMNS = re.compile(r"(Num GPUs|Per-GPU Batch Size) (\d{1,9})$")


def classic_step(text: str) -> tuple[int, ...] | None:
    """Return the step of a progress line of MXNet or TensorFlow, or None."""
    if (match := _SPEED.match(text)) is not None:
        return int(match[1]), int(match[3] or match[2])
    if (match := _LOSS.match(text)) is not None:
        return (int(match[2]),)
    return None


def read_mxnet(training: Training, text: str) -> bool:
    """Take in a line of Speedometer, of Module.fit, or of a Gluon script."""
    if (match := _SPEED.match(text)) is not None:
        training.at((int(match[1]), int(match[3] or match[2])))
        training.point("speed", match[4], "samples/sec", HIGHER, "samples_per_second")
        for name, value in _PAIR.findall(match[5][:400]):
            name = name.removeprefix("Train-")
            if name != "lr":
                training.point(f"train_{name}", value, "1", _way(name))
        training.expects_end = "Time cost"
    elif (match := _EPOCH.match(text)) is not None:
        name = match[2].lower().replace("-", "_").replace(" ", "_")
        if name == "time_cost":
            training.result("epoch_time", match[3], "s", LOWER)
            _epoch_over(training, int(match[1]))
        else:
            training.result(name, match[3], "1", _way(name))
    elif (match := _GLUON.match(text)) is not None:
        if (speed := _GLUON_SPEED.match(match[3])) is not None:
            training.result("epoch_speed", speed[1], "samples/sec", HIGHER, "samples_per_second")
            training.result("epoch_time", speed[2], "s", LOWER)
            _epoch_over(training, int(match[1]))
        for name, value in [] if speed else _PAIR.findall(match[3][:400]):
            part = "train" if match[2] == "training" else "validation"
            training.result(f"{part}_{name}", value, "1", _way(name))
    elif (match := _GLUON_NLP.match(text)) is not None:
        training.at((int(match[1]), int(match[2])))
        samples = match[4] == "samples/s"
        training.point("throughput", match[3], match[4] or "1/s", HIGHER, "samples_per_second" if samples else None)
    else:
        return False
    training.variants.add("mxnet")
    return True


def _way(name: str) -> Direction:
    lower = name.lower()
    if "acc" in lower or "f1" in lower:
        return HIGHER
    return LOWER if any(word in lower for word in ("loss", "err", "perplexity", "entropy")) else NEUTRAL


def _epoch_over(training: Training, epoch: int) -> None:
    planned = training.parameters.get("num_epochs")
    if not isinstance(planned, int) or epoch + 1 >= planned:
        training.ended = "Time cost"
    else:
        training.planned, training.planned_what = planned, "epochs"
        training.expects_end = "Time cost of the last epoch"


def read_tensorflow(training: Training, text: str) -> bool:
    """Take in a line of an estimator, of NVIDIA's BERT for TensorFlow, or of an official model."""
    bert = False
    if (match := _LOSS.match(text)) is not None:
        training.at((int(match[2]),))
        training.point("loss", match[1], "1", LOWER)
        training.expects_end = "Loss for final step"
    elif (match := _RATE.match(text)) is not None:
        samples = match[1] == "examples/sec"
        training.point(
            match[1],
            match[2],
            match[1].replace("global_step", "step"),
            HIGHER,
            "samples_per_second" if samples else None,
        )
        training.steps += 1
        training.expects_end = "Loss for final step"
    elif (match := _FINAL.match(text)) is not None:
        training.result("final_loss", match[1], "1", LOWER)
        training.ended = "Loss for final step"
    elif (match := _FINISHED.match(text)) is not None:
        training.result("training_time", match[2].rstrip("."), "s", LOWER, "train_time")
        training.ended = "Finished training"
    elif (match := _PLAN.match(text)) is not None:
        training.planned = int(match[1])
    elif (match := _SAVED.match(text)) is not None:
        for name, value in _PAIR.findall(match[2][:2000]):
            if name != "global_step":
                training.result(f"eval_{name}", value, "1", _way(name))
    elif (match := _BERT_RATE.match(text)) is not None:
        bert = True
        overhead = " with overhead" if match[2] else ""
        training.result(
            f"throughput_average{overhead.replace(' ', '_')}",
            match[3],
            f"{match[1]}/sec",
            HIGHER,
            None if overhead or match[1] not in ("sentences", "sequences") else "samples_per_second",
        )
        _check_bert(training, bool(overhead), match[3])
        training.ended = "Throughput Average"
    elif (match := _BERT_TIME.match(text)) is not None:
        bert = True
        without = "_without_overhead" if match[2] else ""
        training.result(f"total_{match[1].lower()}_time{without}", match[3], "s", LOWER)
        training.parameter(f"{match[4].lower()}{without}", int(match[5]))
    elif (match := _HISTORY.match(text)) is not None:
        training.at((int(match[4]),))
        training.point("examples/second", match[2], "examples/sec", HIGHER, "samples_per_second")
    elif (match := _BENCHMARK.match(text)) is not None:
        training.at((int(match[1]),))
        training.point("examples/second", match[2], "examples/sec", HIGHER, "samples_per_second")
    elif (match := _COLUMNS.match(text)) is not None:
        training.parameter(match[1].lower().replace(" ", "_").replace("-", "_"), int(match[2]))
        return True
    else:
        return False
    training.variants.add("nvidia-bert-tensorflow" if bert else "tensorflow")
    return True


def _check_bert(training: Training, overhead: bool, rate: str) -> None:
    suffix = "" if overhead else "_without_overhead"
    time = training.results.get(f"total_training_time{suffix}")
    count = training.parameters.get(f"sentences{suffix}")
    if time is not None and isinstance(count, int) and (training.work is None or not overhead):
        training.work = (float(count), rate, time.printed, "sentences/sec")


def read_namespace(training: Training, text: str) -> bool:
    """Take in the arguments that fairseq, MXNet's scripts and Neuron's print."""
    place = text.find("Namespace(", 0, 60)
    if place < 0:
        return False
    for key, value in _NAMESPACE.findall(text, place + 10):
        if _WANTED.fullmatch(key):
            plain = value.strip().strip("'\"")
            whole = re.fullmatch(r"\d{1,15}", plain) is not None
            training.parameter(key, int(plain) if whole else excerpt(plain))
    steps = training.parameters.get("steps_this_run", training.parameters.get("max_steps"))
    if isinstance(steps, int) and steps > 0 and "grad_accum_usteps" in training.parameters:
        training.planned = steps
    return True
