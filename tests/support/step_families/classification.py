"""torchvision: classification and segmentation with five classes, images as small as a network takes, some with fewer blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from step_families.case import Example, add, classified

# As torchvision makes them. By name: the side of the image, and arguments.
CLASSIFIERS: dict[str, tuple[int, dict[str, Any]]] = {
    "alexnet": (64, {}),
    "vgg11": (32, {}),
    "vgg11_bn": (32, {}),
    "resnet18": (64, {}),
    "resnet50": (64, {}),
    "squeezenet1_1": (64, {}),
    "googlenet": (64, {"aux_logits": False, "init_weights": True}),
    "inception_v3": (128, {"aux_logits": False, "init_weights": True}),
    "mnasnet0_5": (64, {}),
}


def _smaller() -> dict[str, Callable[[], Any]]:
    """Return families with a block of each kind, of 5 classes: a graph of a whole one takes minutes to export."""
    from torchvision import models
    from torchvision.models.convnext import CNBlockConfig
    from torchvision.models.efficientnet import MBConvConfig
    from torchvision.models.mobilenetv3 import InvertedResidualConfig
    from torchvision.models.regnet import BlockParams
    from torchvision.models.resnet import Bottleneck

    regnet = BlockParams(
        depths=[1, 1],
        widths=[16, 32],
        group_widths=[8, 8],
        bottleneck_multipliers=[1.0] * 2,
        strides=[2, 2],
        se_ratio=0.25,
    )
    inverted = [
        InvertedResidualConfig(16, 3, 16, 16, True, "RE", 2, 1, 1.0),
        InvertedResidualConfig(16, 5, 64, 24, True, "HS", 2, 1, 1.0),
        InvertedResidualConfig(24, 3, 64, 24, False, "HS", 1, 1, 1.0),
    ]
    efficient = [MBConvConfig(1, 3, 1, 16, 16, 1, 1.0, 1.0), MBConvConfig(6, 5, 2, 16, 24, 2, 1.0, 1.0)]
    return {
        "resnext": lambda: models.ResNet(Bottleneck, [1, 1, 1, 1], groups=32, width_per_group=4, num_classes=5),
        "wide_resnet": lambda: models.ResNet(Bottleneck, [1, 1, 1, 1], width_per_group=128, num_classes=5),
        "densenet": lambda: models.DenseNet(block_config=(2, 2, 2, 2), num_classes=5),
        "mobilenet_v2": lambda: models.MobileNetV2(
            num_classes=5, inverted_residual_setting=[[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 1, 2]]
        ),
        "mobilenet_v3": lambda: models.MobileNetV3(inverted, 64, num_classes=5),
        "shufflenet_v2": lambda: models.ShuffleNetV2([2, 1, 1], [24, 48, 96, 192, 256], num_classes=5),
        "efficientnet": lambda: models.EfficientNet(efficient, 0.0, 0.0, num_classes=5),
        "regnet": lambda: models.RegNet(regnet, num_classes=5),
        "convnext": lambda: models.ConvNeXt([CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 1)], num_classes=5),
    }


def _segmenters() -> dict[str, Callable[[], Any]]:
    """Return the three heads for images over a small ResNet."""
    from torchvision import models
    from torchvision.models import segmentation
    from torchvision.models._utils import IntermediateLayerGetter
    from torchvision.models.resnet import BasicBlock
    from torchvision.models.segmentation.deeplabv3 import DeepLabHead
    from torchvision.models.segmentation.fcn import FCNHead

    def backbone(**layers: str) -> Any:
        return IntermediateLayerGetter(models.ResNet(BasicBlock, [1, 1, 1, 1]), layers)

    return {
        "fcn": lambda: segmentation.FCN(backbone(layer4="out"), FCNHead(512, 5)),
        "deeplabv3": lambda: segmentation.DeepLabV3(backbone(layer4="out"), DeepLabHead(512, 5)),
        "lraspp": lambda: segmentation.LRASPP(backbone(layer2="low", layer4="high"), 128, 512, 5),
    }


def _classifier(name: str, side: int, arguments: dict[str, Any]) -> Example:
    import torch
    import torchvision

    return classified(
        torchvision.models.get_model(name, weights=None, num_classes=5, **arguments), torch.randn(4, 3, side, side)
    )


def _small(name: str) -> Example:
    import torch

    return classified(_smaller()[name](), torch.randn(4, 3, 32, 32))


def _segmenter(name: str) -> Example:
    import torch

    def loss(outputs: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(outputs["out"], y)

    data = (torch.randn(2, 3, 64, 64), torch.randint(0, 5, (2, 64, 64)))
    return Example(module=_segmenters()[name](), loss=loss, data=data)


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
for _name in (
    "resnext",
    "wide_resnet",
    "densenet",
    "mobilenet_v2",
    "mobilenet_v3",
    "shufflenet_v2",
    "efficientnet",
    "regnet",
    "convnext",
):
    add("torchvision", _name, partial(_small, _name))
for _name in ("fcn", "deeplabv3", "lraspp"):
    add("torchvision", _name, partial(_segmenter, _name))
add("torchvision", "vision_transformer", _vision_transformer)
add("torchvision", "swin_transformer", partial(_swin, "v1"))
add("torchvision", "swin_transformer_v2", partial(_swin, "v2"))
add("torchvision", "maxvit", _maxvit)
