"""Training logs of common frameworks; `variant` says which one wrote the log.

DLLogger (text and JSON), torchtitan, AWS's FSDP example, AWS Neuron, MXNet's Speedometer and Gluon, TensorFlow's estimators and
NVIDIA's BERT, fairseq, Megatron-LM, DeepSpeed, the Hugging Face Trainer. These are no benchmarks
with a format of their own: a summary counts when there is one, else the median of the steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.hpc.base import PARSERS, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.parsers._dl_classic import classic_step, read_mxnet, read_namespace, read_tensorflow
from transect.hpc.parsers._dl_nvidia import read_dllogger, step_of
from transect.hpc.parsers._dl_torch import read_deepspeed, read_fairseq, read_huggingface, read_megatron, torch_step
from transect.hpc.parsers._dl_training import HIGHER, LOWER, NEUTRAL, Training, finish
from transect.hpc.parsers._learning import ERRORS, LOGGED, is_error, without_prefix
from transect.hpc.rules import searched
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER

# torchrun's label, and the logger's words in the ways that it is set up.
_LOGGER = (
    r"(?:\[rank\d{1,6}\]:)?(?:\[titan\][ \t])?(?:[\d\- :,.]{19,30}[ \t])?(?:-[ \t]root[ \t]-[ \t]INFO[ \t]-[ \t])?"
    r"(?:\[[^\]\n]{10,40}\]\[I\]\[[^\]\n]{1,60}\][ \t])?"
)
_STEP = (
    rf"step:\s*(\d{{1,12}})\s+loss:\s*({NUMBER})\s+(?:grad_norm:\s*({NUMBER})\s+)?memory:\s*({NUMBER})GiB\({NUMBER}%\)\s+"
    rf"tps:\s*([\d,]{{1,20}})(?:\s+tflops:\s*({NUMBER}))?(?:\s+mfu:\s*({NUMBER})%)?"
)
_TITAN = re.compile(_LOGGER + _STEP)
_STARTS = re.compile(_LOGGER + r"Training starts at step \d{1,12}[^\n]{0,200}?total steps (\d{1,12})")
_SIZES = re.compile(r"((?:local|global) batch size|sequence length|gradient accumulation steps) (\d{1,12})")
_ENDED = re.compile(_LOGGER + r"Training completed\s*$")
_FSDP = re.compile(
    rf"I \[train\.py:\d{{1,6}}\] Batch (\d{{1,12}}) Loss: ({NUMBER}), Speed: ({NUMBER}) samples/sec, lr: ({NUMBER})"
)
# The arguments of a job's script, as `set -x` prints them.
_ARGUMENTS = re.compile(r"\+ TRAINING_ARGS=\([^\n]{0,8000}?'--max_steps=(\d{1,12})'")

_TITAN_LINES = (_TITAN, _STARTS, _ENDED, _FSDP, _ARGUMENTS)


def _planned_steps(text: str) -> int | None:
    """Return the steps that a job's script asks its training for, or None."""
    match = _ARGUMENTS.match(text)
    return int(match[1]) if match is not None else None


def _titan_step(text: str) -> tuple[int, ...] | None:
    match = _TITAN.match(text) or _FSDP.match(text)
    return (int(match[1]),) if match is not None else None


def _read_titan(training: Training, text: str) -> bool:
    if (match := _FSDP.match(text)) is not None:
        training.variants.add("fsdp-example")
        # Batches count from zero.
        training.at((int(match[1]),))
        training.point("loss", match[2], "1", LOWER)
        training.point("speed", match[3], "samples/sec", HIGHER, "samples_per_second")
        training.point("lr", match[4], "1", NEUTRAL)
    elif (match := _TITAN.match(text)) is not None:
        training.variants.add("torchtitan")
        training.at((int(match[1]),), training.planned)
        training.point("loss", match[2], "1", LOWER)
        training.point("memory", match[4], "GiB", NEUTRAL)
        # Of one device, as torchtitan counts.
        training.point("tps", match[5].replace(",", ""), "tokens/s", HIGHER, "tokens_per_second")
        for name, printed, unit in (
            ("grad_norm", match[3], "1"),
            ("tflops", match[6], "TFLOP/s"),
            ("mfu", match[7], "%"),
        ):
            if printed is not None:
                training.point(name, printed, unit, NEUTRAL if name == "grad_norm" else HIGHER)
    elif (match := _STARTS.match(text)) is not None:
        training.variants.add("torchtitan")
        training.planned = int(match[1])
        for name, value in _SIZES.findall(text):
            training.parameter(name.replace(" ", "_"), int(value))
    elif _ENDED.match(text):
        training.ended = "Training completed"
    else:
        return False
    return True


_READERS = (
    read_dllogger,
    read_mxnet,
    read_tensorflow,
    read_fairseq,
    read_megatron,
    read_deepspeed,
    read_huggingface,
    read_namespace,
    _read_titan,
)
_HEADER = re.compile(
    r"\*{5} Running training|DLL [\d\-: .]{10,40}- PARAMETER|(?:start with arguments )?Namespace\("
    r"|using world size: |Training for \d{1,12} steps|\| distributed init"
)
_PROGRAM = re.compile(r"\bdisp_batches=|\bsteps_this_run=|\bdistributed_world_size=\d{1,9},.{1,16000}?\bmax_tokens=")
_MAX_RANKS = 256

_BODY = (
    r"(?:DLL \d{4}-\d\d-\d\d |DLLL \{|LOG \w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4} - "
    r"|(?:Epoch|Iter) ?\[\d{1,9}\][^\n]{0,60}[Ss]peed: |Epoch ?\[\d{1,9}\] Time cost"
    r"|\[Epoch \d{1,9}\] speed: |\[Epoch \d{1,9} Batch \d{1,12}/[^\n]{0,200}throughput"
    r"|global_step/sec: \d|examples/sec: \d|loss = [\d.eE+\-nainf]{1,30}, step = \d"
    r"|Loss for final step: |Training for \d{1,12} steps \(|Throughput Average \([a-z]{1,20}/sec\)"
    r"|TimeHistory: [\d.]{1,20} seconds, |BenchmarkMetric: \{'global step'"
    r"|\| {1,9}(?:INFO \| [\w.]{1,60} \| )?(?:epoch \d{1,9}:? {1,9}(?:\d{1,12} / \d|\| )|done training in |training on \d{1,9} (?:GPUs|devices|TPUs))"
    r"|\| INFO \| (?:train|train_inner|valid) \| \{\"epoch\": |\{\"epoch\": \d{1,9}, \"(?:update|loss|train_loss)\":"
    r"|(?:==> )?iteration {1,9}\d{1,12}/ {0,9}\d{1,12} \||using world size: \d{1,9}, data-parallel"
    r"|epoch=\d{1,9}/micro_step=\d|\d{1,9}/\d{1,12}, SamplesPerSec="
    r"|\*{5} (?:Running training|train metrics) \*{5}"
    r"|(?:\d{1,3}%\|[^\n{]{0,300}+)?\{'(?:loss|train_runtime|eval_loss)': "
    r"|(?:start with arguments )?Namespace\()"
)


@PARSERS.register("dl-training")
class DlTraining(Parser):
    """Reads rates, losses, qualities and times of one training per run."""

    benchmark = "dl-training"
    description = "training logs: DLLogger, MXNet, TensorFlow, fairseq, Megatron, DeepSpeed, torchtitan, HF"
    validity_notes = Proof(
        identity="a progress line of a known framework behind the usual prefixes of loggers; printed arguments only where they name a known program",
        success="the summary that ends such a log, or as many steps as were planned",
        failure="a series that ends in nan, a rate or time below zero, a summary that its own count and time refute",
    )
    start_patterns = (LOGGED + _BODY, *(LOGGED + pattern for pattern in searched(*_TITAN_LINES[:2], *_TITAN_LINES[3:])))
    # DeepSpeed's launcher: one host prints the settings, another one the iterations.
    merge_hosts = True
    line_patterns = (
        LOGGED + _BODY,
        *(LOGGED + pattern for pattern in searched(*_TITAN_LINES)),
        rf"{LOGGED}(?:\| |Epoch ?\[\d|\[Epoch \d|validation loss at|\[after training is done\]"
        r"|Saving dict for global step|Finished training up to|Total (?:Training|Inference) Time"
        r"|Num GPUs \d|Per-GPU Batch Size|(?:train|eval)_[a-z_0-9]{1,60}[ \t]{0,60}=[ \t]"
        r"|(?:Num (?:examples|Epochs|steps)|Instantaneous batch|Total (?:train batch|optimization)"
        r"|Gradient Accumulation|Number of trainable|Batch size)[^\n=]{0,90}=)",
        r"[^\n{]{0,400}+\{'(?:loss|train_runtime|eval_loss|train_loss)': ",
        *ERRORS,
    )

    def matches(self, line: Line) -> bool:
        """Of all programs that print their arguments, take those whose log is known."""
        text = without_prefix(line.text)
        if "Namespace(" in text[:40]:
            return _PROGRAM.search(text) is not None
        return True

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per training. Ranks with labels are kept apart."""
        trainings: dict[int | None, Training] = {}
        planned: int | None = None
        for line in block:
            text = without_prefix(line.text)
            if (asked := _planned_steps(text)) is not None:
                # A job's script is no rank: what it asks for is meant for all that follow.
                yield from (finish(block, training) for training in trainings.values() if training.begun())
                trainings, planned = {}, asked
                continue
            if line.rank not in trainings and len(trainings) >= _MAX_RANKS:
                continue
            training = trainings.get(line.rank)
            if training is not None and _begins(training, text):
                yield finish(block, training)
                training = None
            if training is None:
                training = trainings[line.rank] = Training(line=line.number, planned=planned, rank=line.rank)
            _read(training, line, text)
        known = [t for t in trainings.values() if t.begun()]
        for training in known or list(trainings.values())[:1]:
            yield finish(block, training)


def _begins(training: Training, text: str) -> bool:
    if not training.begun() or text == training.previous:
        return False
    if _HEADER.match(text):
        return True
    if training.ended == "train_runtime" and text.startswith("{'loss': "):
        return True
    step = step_of(text) or classic_step(text) or torch_step(text) or _titan_step(text)
    return step is not None and training.restarts(step)


def _read(training: Training, line: Line, text: str) -> None:
    if line.cut or text == training.previous:
        return  # a number may have lost digits; handlers of two loggers print all twice
    training.previous = text
    if _READERS[training.reader](training, text):
        return
    for place, reader in enumerate(_READERS):
        if place != training.reader and reader(training, text):
            training.reader = place
            return
    if is_error(line.text.strip()):
        training.errors.append(excerpt(line.text))
