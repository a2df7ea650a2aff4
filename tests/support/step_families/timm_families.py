"""timm: twenty families, one small member of each, with five classes."""

from __future__ import annotations

from functools import partial
from typing import Any

from step_families.case import Example, add, classified

# By name: the side of the image, and arguments that make it smaller.
MODELS: dict[str, tuple[int, dict[str, Any]]] = {
    "resnet10t": (64, {}),
    "mobilenetv3_small_050": (64, {}),
    "mobilenetv4_conv_small": (64, {}),
    "efficientnet_lite0": (64, {}),
    "regnetx_002": (64, {}),
    "densenet121": (64, {"block_config": (2, 2, 2, 2)}),
    "ghostnet_050": (64, {}),
    "convnext_atto": (64, {"depths": (1, 1, 1, 1)}),
    "vgg11_bn": (64, {}),
    "nf_resnet50": (64, {"depths": (1, 1, 1, 1)}),
    "repvgg_a0": (64, {}),
    "vit_tiny_patch16_224": (32, {"img_size": 32, "patch_size": 8, "depth": 2}),
    "deit_tiny_patch16_224": (32, {"img_size": 32, "patch_size": 8, "depth": 2}),
    "beit_base_patch16_224": (32, {"img_size": 32, "patch_size": 8, "depth": 2, "embed_dim": 32, "num_heads": 2}),
    "eva02_tiny_patch14_224": (28, {"img_size": 28, "patch_size": 7, "depth": 2}),
    "mixer_s16_224": (32, {"img_size": 32}),
    "swin_tiny_patch4_window7_224": (
        32,
        {"img_size": 32, "patch_size": 2, "window_size": 4, "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 2)},
    ),
    "levit_128s": (64, {"img_size": 64}),
    "poolformer_s12": (64, {}),
    "xcit_nano_12_p16_224": (32, {"depth": 2}),
}


def _model(name: str, side: int, arguments: dict[str, Any]) -> Example:
    import timm
    import torch

    return classified(timm.create_model(name, num_classes=5, **arguments), torch.randn(4, 3, side, side))


for _name, (_side, _arguments) in MODELS.items():
    add("timm", _name, partial(_model, _name, _side, _arguments))
