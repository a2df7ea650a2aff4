"""The transformer encoder of `training.text_encoder`, on the study's word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from transect.domain.errors import BadInput
from transect.text.classifiers import CLASSIFIERS, MODEL, Fitted, Task
from transect.text.classifiers._options import TrainingOptions, WithTraining, options_of
from transect.training import text_encoder
from transect.training.frameworks._torch_encoder import build_encoder
from transect.training.text_encoder import EncoderConfig

# What the ticket distributor of Göttingen (2024) was trained with; its vectors were 512 wide, and 280
# words were read, which stand in the study's `tickets`.
_PUBLISHED = {
    "epochs": 300,
    "batch": 1,
    "learning_rate": 5e-7,
    "optimiser": "sgd",
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "heads": 1,
    "layers": 2,
    "ffn": 2048,
    "dropout": 0.1,
    "pooling": "flatten",
    "reshape": "published",
}


class _Options(TrainingOptions):
    preset: Literal["published"] | None = Field(default=None, exclude=True)
    learning_rate: float = Field(default=3e-3, gt=0)
    heads: int = Field(default=2, ge=1)
    layers: int = Field(default=1, ge=1)
    ffn: int = Field(default=128, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    positions: bool = True
    mask: bool = True
    pooling: Literal["mean", "flatten"] = "mean"
    reshape: Literal["right", "published"] = "right"
    embedding: Literal["tuned", "frozen"] = "tuned"

    @model_validator(mode="before")
    @classmethod
    def _with_preset(cls, given: dict[str, Any]) -> dict[str, Any]:
        return (_PUBLISHED if given.get("preset") == "published" else {}) | given


# Options that the encoder has by the same names.
_ENCODER = set(_Options.model_fields) - set(TrainingOptions.model_fields) - {"preset"}


@CLASSIFIERS.register("transformer")
class Transformer(WithTraining):
    """An encoder with self-attention, trained from scratch on the study's word vectors.

    Options besides those of a training are those of `EncoderConfig`. `preset: published` puts the published values in the place of the defaults.
    """

    environment = "torch"
    exports = True
    hyperparameters: tuple[str, ...] = (*WithTraining.hyperparameters, "heads", "layers")
    options = _Options

    def check_hyperparameters(self, options: dict[str, Any], values: dict[str, Any], width: int, where: str) -> None:
        """Raise BadInput where heads cannot share the width."""
        read = options_of(_Options, options, values, where)
        if width % read.heads:
            raise BadInput(f"{where}: {read.heads} heads do not share vectors of width {width} equally")

    def code_files(self) -> list[Path]:
        """Return the encoder's module, which is loaded by name."""
        return [Path(text_encoder.__file__).parent / "frameworks" / "_torch_encoder.py"]

    def fit(self, task: Task) -> Fitted:
        """Train, predict, and export."""
        from transect.text.classifiers._training import train

        options = options_of(_Options, task.options, task.hyperparameters)
        config = EncoderConfig(
            vocabulary=len(task.vectors),
            width=task.vectors.shape[1],
            length=task.x["train"].shape[1],
            classes=len(task.classes),
            **options.model_dump(include=_ENCODER),
        )
        module = build_encoder(config, task.vectors, task.seed)
        # Heads put together as published mix places, those of padding too.
        unmixed = options.reshape == "right" or options.heads == 1
        cuts = options.mask and options.pooling == "mean" and unmixed
        fitted = train(lambda: module, task, options, cuts=cuts)
        _export(module, task.x["train"][:2], task.out / MODEL, cuts)
        return fitted


def _export(module: Any, example: Any, path: Path, any_length: bool) -> None:
    """Write `path` by torch's older exporter: the newer one takes longer than a small training."""
    import torch

    axes = {"x": {0: "batch"} | ({1: "length"} if any_length else {})}
    part = path.with_name(f".{path.name}.part")
    whole = torch.nn.Sequential(module, torch.nn.Softmax(dim=1)).cpu().eval()
    try:
        torch.onnx.export(
            whole,
            (torch.from_numpy(example).to(torch.int64),),
            str(part),
            dynamo=False,
            opset_version=17,
            input_names=["x"],
            output_names=["probabilities"],
            dynamic_axes=axes | {"probabilities": {0: "batch"}},
        )
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
