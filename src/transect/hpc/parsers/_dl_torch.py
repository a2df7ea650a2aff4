"""The logs of PyTorch's trainers: fairseq, Megatron-LM, DeepSpeed, the Hugging Face Trainer."""

from __future__ import annotations

import re

from transect.hpc.parsers._dl_training import HIGHER, LOWER, NEUTRAL, Training, hours
from transect.hpc.parsers._learning import Digits, first_objects, literal
from transect.hpc.text import excerpt
from transect.hpc.values import NUMBER, number

_FAIRSEQ = re.compile(r"\|\s{1,9}(?:(?:INFO|WARNING)\s\|\s([\w.]{1,80})\s\|\s)?(.*)$")
_INNER = re.compile(r"epoch (\d{1,9}):?\s{1,9}(\d{1,12}) / (\d{1,12})\s(.*)$")
_EPOCH = re.compile(r"epoch (\d{1,9}) \| (.*)$")
_DONE = re.compile(rf"done training in ({NUMBER}) seconds")
_UPDATES = re.compile(r'"num_updates": "?(\d{1,12})\b')
_WORLD = re.compile(r"training on (\d{1,9}) (?:GPUs|devices|TPUs|CPUs)")
_TOKENS = re.compile(r"max tokens per (?:GPU|device) = (\S{1,20}) and max sentences per \w+ = (\S{1,20})")
_PARAMETERS = re.compile(r"num\. (?:shared )?model params: ([\d,]{1,24})")
_FAIRSEQ_UNITS = {
    "wps": ("words/s", HIGHER),
    "ups": ("updates/s", HIGHER),
    "wall": ("s", LOWER),
    "train_wall": ("s", LOWER),
    "gb_free": ("GB", NEUTRAL),
}
_FAIRSEQ_KEPT = ("loss", "nll_loss", "ppl", "wps", "ups", "wpb", "bsz", "wall", "train_wall", "bleu")
_ITERATION = re.compile(r"(?:==> )?iteration\s{1,9}(\d{1,12})/\s{0,9}(\d{1,12}) \|(.*)$")
_MEGATRON_CELL = re.compile(rf"([A-Za-z][\w ()\-/.]{{0,60}}?)\s?:?\s{{1,12}}({NUMBER}|NAN|-?INF)%?$")
_VALIDATION = re.compile(r"validation loss at iteration (\d{1,12})\s?(?:on [\w ]{1,40})?\|(.*)$")
_VALIDATED = re.compile(rf"([\w ]{{1,40}}?) (?:value|PPL): ({NUMBER})")
_MEGATRON_WORLD = re.compile(r"([\w\-]{1,40}(?: [\w\-]{1,40})?) size: (\d{1,9})")
_TIMER = re.compile(
    r"(?:epoch=(\d{1,9})/micro_step=\d{1,12}/global_step=(\d{1,12})|(\d{1,9})/(\d{1,12})),"
    r" (?:RunningAvg)?SamplesPerSec="
)
_TIMER_PAIR = re.compile(rf"(\w{{1,40}})=({NUMBER})")
_DICT = re.compile(r"\{'[\w/]{1,60}': ")
_DICT_PAIR = re.compile(rf"'([\w/]{{1,60}})': ['\"]?({NUMBER})['\"]?[,}}\s]")
_BLOCK_ROW = re.compile(r"((?:train|eval|predict)_[a-z_0-9]{1,60}|epoch)\s{0,60}=\s{1,60}(\S.{0,40})$")
_HEADER_ROW = re.compile(
    r"(Num examples|Num Epochs|Instantaneous batch size per device|Total train batch size[^=]{0,80}"
    r"|Gradient Accumulation steps|Total optimization steps|Number of trainable parameters"
    r"|Batch size|Num steps)\s{0,9}=\s{0,9}([\d,]{1,24})"
)


def torch_step(text: str) -> tuple[int, ...] | None:
    """Return the step of a line of any of these trainers, or None."""
    if (match := _ITERATION.match(text)) is not None:
        return (int(match[1]),)
    if (match := _TIMER.match(text)) is not None:
        return (int(match[2] or match[4]),)
    if text.startswith('{"epoch":') or "| train_inner | {" in text[:60]:
        match = _UPDATES.search(text)
        return (int(match[1]),) if match is not None else None
    if text.startswith("|") and (outer := _FAIRSEQ.match(text)) is not None:
        match = _INNER.match(outer[2])
        return (int(match[1]), int(match[2])) if match is not None else None
    return None


def read_fairseq(training: Training, text: str) -> bool:
    """Take in a line of fairseq, in its simple or JSON format."""
    body, tag = text, ""
    if text.startswith("|"):
        match = _FAIRSEQ.match(text)
        if match is None:
            return False
        tag, body = match[1] or "", match[2]
    elif not text.startswith('{"epoch":'):
        return False
    if (match := _INNER.match(body)) is not None:
        training.at((int(match[1]), int(match[2])))
        pairs = [cell.split("=", 1) for cell in match[4].split(",") if "=" in cell]
        _fairseq_values(training, [(k.strip(), v.strip()) for k, v in pairs], False, "")
    elif (match := _EPOCH.match(body)) is not None:
        part = "valid" if tag.startswith("valid") or match[2].startswith("valid on") else ""
        cells = [cell.split() for cell in match[2].split("|")]
        _fairseq_values(training, [(c[0], c[1]) for c in cells if len(c) == 2], True, part)
    elif body.startswith("{"):
        for record in first_objects(body, 0):
            pairs_of = [(k, str(v)) for k, v in record.items()]
            summary = any(k.startswith(("train_wps", "train_loss", "valid_")) for k in record)
            if not summary and isinstance(record.get("epoch"), Digits):
                made = re.match(r"\d{1,12}", str(record.get("num_updates") or ""))
                if made:
                    training.at((int(made[0]),))
            part = "valid" if any(k.startswith("valid_") for k in record) else ""
            plain = [(re.sub(r"^(?:train|valid|test)_(?!wall)", "", k), v) for k, v in pairs_of]
            _fairseq_values(training, [(k, v) for k, v in plain], summary, part)
    elif (match := _DONE.search(body)) is not None:
        training.result("training_time", match[1], "s", LOWER, "train_time")
        training.ended = "done training"
    elif (match := _WORLD.match(body)) is not None:
        training.parameter("world_size", int(match[1]))
    elif (match := _TOKENS.match(body)) is not None:
        training.parameter("max_tokens", excerpt(match[1]))
        training.parameter("max_sentences", excerpt(match[2]))
    elif (match := _PARAMETERS.match(body)) is not None:
        training.parameter("model_parameters", int(match[1].replace(",", "") or 0))
    else:
        return False
    training.variants.add("fairseq")
    training.expects_end = "done training in"
    return True


def _fairseq_values(training: Training, pairs: list[tuple[str, str]], summary: bool, part: str) -> None:
    for key, value in pairs:
        if key not in _FAIRSEQ_KEPT or not re.fullmatch(NUMBER, value):
            continue
        unit, direction = _FAIRSEQ_UNITS.get(key, ("1", NEUTRAL if key in ("wpb", "bsz") else LOWER))
        if summary:
            training.result(f"{part or 'epoch'}_{key}", value, unit, direction)
        else:
            training.point(key, value, unit, direction)
    values = {key: value for key, value in pairs if key in ("wps", "wpb", "ups")}
    if len(values) == 3 and len(values["ups"].strip("0.")) >= 2:
        words, batch, updates = (number(values[key]) or 0.0 for key in ("wps", "wpb", "ups"))
        implied = batch * updates
        if words > 0 and implied > 0 and not 0.5 < words / implied < 2:
            why = f"wps is {values['wps']}, but wpb {values['wpb']} times ups {values['ups']} is {implied:.6g}"
            training.contradictions.append(why)


def read_megatron(training: Training, text: str) -> bool:
    """Take in a line of Megatron-LM or of Megatron-DeepSpeed."""
    if (match := _ITERATION.match(text)) is not None:
        training.at((int(match[1]),), int(match[2]), "iterations")
        values: dict[str, str] = {}
        for cell in match[3].split("|"):
            pair = _MEGATRON_CELL.match(cell.strip())
            if pair is not None:
                values[pair[1].strip().lower()] = pair[2]
        _megatron_values(training, values)
    elif (match := _VALIDATION.match(text)) is not None:
        for name, value in _VALIDATED.findall(match[2]):
            kind = "perplexity" if f"{name} PPL: {value}" in match[2] else "loss"
            training.result(f"validation {name.strip()} {kind}", value, "1", LOWER)
    elif text.startswith("[after training is done]"):
        training.ended = "after training is done"
    elif text.startswith("using world size: "):
        for name, size in _MEGATRON_WORLD.findall(text):
            key = name.removeprefix("using ").replace("-", "_").replace(" ", "_")
            training.parameter(f"{key}_size", int(size))
    else:
        return False
    training.variants.add("megatron")
    return True


def _megatron_values(training: Training, values: dict[str, str]) -> None:
    batch = values.get("global batch size", "")
    if batch.isdigit():
        training.parameter("global_batch_size", int(batch))
    for name, value in values.items():
        if name == "elapsed time per iteration (ms)":
            training.point(name, value, "ms", LOWER, "step_time")
            elapsed = number(value)
            if batch.isdigit() and elapsed and elapsed > 0:
                rate = f"{int(batch[:12]) * 1000 / elapsed:.6g}"
                training.point("computed samples/s", rate, "1/s", HIGHER, "samples_per_second")
        elif name.startswith(
            ("throughput per gpu", "tflops", "samples per second", "tokens-per-sec")
        ) or name.startswith("throughput"):
            flops = "flop" in name or name.startswith("throughput")
            training.point(name, value, "TFLOP/s" if flops else "1/s", HIGHER)
        elif "loss" in name and "scale" not in name:
            training.point(name, value, "1", LOWER)
        elif name == "grad norm":
            training.point(name, value, "1", NEUTRAL)


def read_deepspeed(training: Training, text: str) -> bool:
    """Take in a line of DeepSpeed's throughput timer."""
    match = _TIMER.match(text)
    if match is None:
        return False
    training.variants.add("deepspeed")
    training.at((int(match[2] or match[4]),))
    for name, value in _TIMER_PAIR.findall(text[:1000]):
        if name in ("RunningAvgSamplesPerSec", "CurrSamplesPerSec", "SamplesPerSec"):
            rate = number(value)
            # Before its warm-up is over, the timer prints -1 or -inf.
            if rate is None or rate < 0:
                training.warnings.append(f"{name}={value}: the timer is not warm yet")
            elif name == "CurrSamplesPerSec":
                training.point(name, value, "1/s", HIGHER)
            else:
                training.running[name] = (value, "1/s", HIGHER, "samples_per_second")
        elif name in ("MemAllocated", "MaxMemAllocated"):
            training.point(name, value, "GB", NEUTRAL)
    return True


def read_huggingface(training: Training, text: str) -> bool:
    """Take in a line of Hugging Face's Trainer: header, dictionaries, blocks of metrics."""
    match = _DICT.search(text, 0, 4096)
    # At the start of a line, or behind a progress bar.
    if match is not None and (match.start() == 0 or "%|" in text[: match.start()]):
        pairs = dict(_DICT_PAIR.findall(text, match.start()))
        keys = set(pairs)
        if not keys & {"loss", "train_runtime", "eval_loss", "eval_runtime", "train_loss"}:
            return False
        _hf_values(training, pairs)
    elif (match := _BLOCK_ROW.match(text)) is not None:
        if "hf-trainer" not in training.variants or match[1] == "epoch":
            return "hf-trainer" in training.variants
        _hf_values(training, {match[1]: match[2].strip()})
    elif re.match(r"\*{5} (?:train|eval) metrics \*{5}", text):
        pass
    elif (match := _HEADER_ROW.match(text)) is not None:
        key = re.sub(r"\s*\(.*", "", match[1]).strip().lower().replace(" ", "_")
        training.parameter(key, literal(Digits(match[2].replace(",", ""))))
        return True  # BERT of TensorFlow prints the same
    else:
        return text.startswith("***** Running training")
    training.variants.add("hf-trainer")
    training.expects_end = training.expects_end or "train_runtime"
    return True


def _hf_values(training: Training, pairs: dict[str, str]) -> None:
    summary = any(key.startswith(("train_runtime", "train_samples_per", "eval_")) for key in pairs)
    if "loss" in pairs:
        training.steps += 1
        for key in ("loss", "grad_norm"):
            if key in pairs:
                training.point(key, pairs[key], "1", LOWER if key == "loss" else NEUTRAL)
    if not summary and "train_loss" not in pairs:
        return
    registered = {"train_runtime": "train_time", "train_samples_per_second": "samples_per_second"}
    for key, value in pairs.items():
        if not key.startswith(("train_", "eval_")):
            continue
        rate, time = key.endswith("_per_second"), key.endswith("_runtime")
        if not time and hours(value) is not None:
            continue
        unit = "1/s" if rate else "s" if time else "1"
        direction = HIGHER if rate or "accuracy" in key or key.endswith("f1") else LOWER
        if number(value) is None and hours(value) is None and not re.fullmatch(NUMBER, value):
            continue  # `1268772033GF`
        training.result(key, value, unit, direction, registered.get(key))
    if "train_runtime" in pairs:
        training.ended = "train_runtime"
        steps = training.parameters.get("total_optimization_steps")
        rate_text, time_text = pairs.get("train_steps_per_second"), pairs["train_runtime"]
        if isinstance(steps, int) and rate_text and number(time_text) and steps < 10**12:
            training.work = (float(steps), rate_text, time_text, "steps per second")
