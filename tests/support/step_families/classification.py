"""torchvision: classification and segmentation, as it makes them, with five classes; images as small as a network takes."""

from __future__ import annotations

from functools import partial
from typing import Any

from step_families.case import Example, add, classified

# By name: the side of the image, and arguments.
CLASSIFIERS: dict[str, tuple[int, dict[str, Any]]] = {
    "alexnet": (64, {}),
    "vgg11": (32, {}),
    "vgg11_bn": (32, {}),
    "resnet18": (64, {}),
    "resnet50": (64, {}),
    "resnext50_32x4d": (64, {}),
    "wide_resnet50_2": (64, {}),
    "squeezenet1_1": (64, {}),
    "densenet121": (64, {}),
    "googlenet": (64, {"aux_logits": False, "init_weights": True}),
    "inception_v3": (128, {"aux_logits": False, "init_weights": True}),
    "mobilenet_v2": (64, {}),
    "mobilenet_v3_small": (64, {}),
    "mnasnet0_5": (64, {}),
    "shufflenet_v2_x0_5": (64, {}),
    "efficientnet_b0": (64, {}),
    "regnet_y_400mf": (64, {}),
    "convnext_tiny": (64, {}),
}
SEGMENTERS: dict[str, dict[str, Any]] = {
    "fcn_resnet50": {},
    "deeplabv3_mobilenet_v3_large": {},
    "lraspp_mobilenet_v3_large": {},
}


def _classifier(name: str, side: int, arguments: dict[str, Any]) -> Example:
    import torch
    import torchvision

    return classified(
        torchvision.models.get_model(name, weights=None, num_classes=5, **arguments), torch.randn(4, 3, side, side)
    )


def _segmenter(name: str, arguments: dict[str, Any]) -> Example:
    import torch
    import torchvision

    module = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=5, **arguments)

    def loss(outputs: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(outputs["out"], y)

    return Example(module=module, loss=loss, data=(torch.randn(2, 3, 64, 64), torch.randint(0, 5, (2, 64, 64))))


def _vision_transformer() -> Example:
    import torch
    import torchvision

    module = torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, num_classes=5
    )
    # The head begins at zero: nothing before it would have a gradient.
    torch.nn.init.normal_(module.heads.head.weight, std=0.1)
    return classified(module, torch.randn(4, 3, 32, 32))


def _swin(block: str) -> Example:
    import torch
    import torchvision

    made: dict[str, Any] = {"patch_size": [2, 2], "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 2]}
    if block == "v2":
        swin = torchvision.models.swin_transformer
        made |= {"block": swin.SwinTransformerBlockV2, "downsample_layer": swin.PatchMergingV2}
    module = torchvision.models.SwinTransformer(**made, window_size=[4, 4], stochastic_depth_prob=0.0, num_classes=5)
    return classified(module, torch.randn(4, 3, 32, 32))


def _maxvit() -> Example:
    import torch
    import torchvision

    module = torchvision.models.MaxVit(
        input_size=(32, 32),
        stem_channels=8,
        block_channels=[8, 16],
        block_layers=[1, 1],
        head_dim=4,
        stochastic_depth_prob=0.0,
        partition_size=4,
        num_classes=5,
    )
    return classified(module, torch.randn(4, 3, 32, 32))


for _name, (_side, _arguments) in CLASSIFIERS.items():
    add("torchvision", _name, partial(_classifier, _name, _side, _arguments))
for _name, _arguments in SEGMENTERS.items():
    add("torchvision", _name, partial(_segmenter, _name, _arguments))
add("torchvision", "vision_transformer", _vision_transformer)
add("torchvision", "swin_transformer", partial(_swin, "v1"))
add("torchvision", "swin_transformer_v2", partial(_swin, "v2"))
add("torchvision", "maxvit", _maxvit)
