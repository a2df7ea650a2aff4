"""Each row of the table of what is covered names what its case contains, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from step_coverage import CASES
from step_worker_client import StepWorker, step_worker

# What words of a row mean: an expression that is found in one line of the case's contents, or two
# of different lines. Names of modules and functions stand for themselves.
BOTH = {
    "both forms": ("GELU .*'none'", "GELU .*'tanh'"),
    "one": ("PReLU .*num_parameters': 1|GroupNorm .*num_groups': 1,|normalized_shape': \\(\\d+,\\)",),
    "several slopes": ("PReLU .*num_parameters': [2-9]",),
    "slices with steps": ("__getitem__ .*slice\\(.*, [2-9]\\)",),
    "max of an axis": ("max .*'dim'",),
    "indices of tensors": ("__getitem__ .*tensor",),
    "reciprocal": ("__rdiv__ .*'1'",),
    "nearest": ("Upsample .*'nearest'",),
    "bilinear with": ("Upsample .*'bilinear', 'align_corners': True",),
    "without aligned corners": ("Upsample .*'bilinear', 'align_corners': (None|False)",),
    "back": ("PixelUnshuffle",),
    "Linear layers with": ("linear .*, 'float32\\[\\d+\\]'\\]",),
    "without bias": ("linear .*'None'\\]|conv2d .*, 'None', '\\(|'bias': (False|'None')",),
    "Linear over the last of several axes": ("linear \\['float32\\[\\d+, \\d+, \\d+\\]",),
    "stride|with stride|without a stride": ("Conv.*'stride': \\((?!1(, 1)*,?\\))",),
    "dilation|dilated": ("'dilation': (\\((?!1(, 1)*,?\\))|[2-9])",),
    "groups": ("'groups': [2-9]",),
    "padding|padded": ("'padding': (\\((?!0(, 0)*,?\\))|[1-9])",),
    "'same'": ("'padding': 'same'",),
    "'valid'": ("'padding': 'valid'",),
    "output padding": ("'output_padding': \\((?!0(, 0)*,?\\))",),
    "kernels that are not square|windows that are not square": ("'kernel_size': \\((\\d+), (?!\\1\\))",),
    "depthwise with|depthwise convolution": (
        "'in_channels': (\\d+), 'out_channels': (?!\\1,).*'groups': \\1,|'groups': 12",
    ),
    "without a multiplier": ("'in_channels': (\\d+), 'out_channels': \\1,.*'groups': \\1,",),
    "pointwise with": ("'kernel_size': \\(1, 1\\), 'stride': \\(1, 1\\)",),
    "padding by reflection": ("'padding_mode': 'reflect'",),
    "by repetition": ("'padding_mode': 'replicate'",),
    "around": ("'padding_mode': 'circular'",),
    "constant padding": ("ConstantPad",),
    "BatchNorm1d of features": ("batch_norm \\['float32\\[\\d+, \\d+\\]'",),
    "of sequences": ("batch_norm \\['float32\\[\\d+, \\d+, \\d+\\]'",),
    "BatchNorm2d with its buffers": ("BatchNorm2d .*'momentum': 0.1,.*'track_running_stats': True",),
    "other momentum": ("BatchNorm2d .*'momentum': 0.(?!1,)",),
    "cumulative average": ("BatchNorm.*'momentum': None",),
    "without buffers": ("BatchNorm2d .*'track_running_stats': False",),
    "with buffers": ("InstanceNorm.*'track_running_stats': True",),
    "without weights": ("'(elementwise_)?affine': False",),
    "with weights": ("'affine': True|nll_loss .*'weight': 'float32",),
    "with": ("RMSNorm .*'elementwise_affine': True",),
    "LayerNorm over one": ("LayerNorm .*'normalized_shape': \\(\\d+,\\)",),
    "two axes": ("LayerNorm .*'normalized_shape': \\(\\d+, \\d+\\)",),
    "GroupNorm of one": ("GroupNorm .*'num_groups': 1,",),
    "some": ("GroupNorm .*'num_groups': 3, 'num_channels': 6",),
    "all groups": ("GroupNorm .*'num_groups': (\\d+), 'num_channels': \\1,",),
    "2d": ("InstanceNorm2d",),
    "1d": ("Adaptive(Avg|Max)Pool1d",),
    "a convolution with weight norm": ("_WeightNorm", "conv2d"),
    "overlapping": ("Pool\\dd .*'kernel_size': \\(?3,?\\)?, 'stride': \\(?[12]\\b",),
    "ceil mode": ("'ceil_mode': True",),
    "equal maxima": ("ReLU", "MaxPool2d"),
    "count_include_pad": ("'count_include_pad': False",),
    "divisor_override": ("'divisor_override': \\d",),
    "to sizes that do not divide the input's": ("Pool.*'output_size': (\\(5, 4\\)|[57])",),
    "Cross entropy": ("cross_entropy ",),
    "label smoothing": ("cross_entropy .*'label_smoothing': '0\\.[1-9]",),
    "class weights": ("cross_entropy .*'weight': 'float32",),
    "weights": ("cross_entropy .*'weight': 'float32",),
    "ignore_index|with ignore_index": ("'ignore_index': '\\d",),
    "sum": ("'reduction': 'sum'|^sum ",),
    "none": ("'reduction': 'none'",),
    "mean": ("'reduction': 'mean'|^mean ",),
    "Cross entropy of every pixel": ("cross_entropy .*int64\\[\\d+, \\d+, \\d+\\]",),
    "Cross entropy with probabilities as the target": ("cross_entropy \\['float32\\[.*', 'float32\\[",),
    "Negative log likelihood": ("nll_loss",),
    "MSE": ("mse_loss|pow .*'2'",),
    "L1": ("^l1_loss",),
    "smooth L1": ("smooth_l1_loss",),
    "Huber": ("huber_loss",),
    "BCE with logits": ("binary_cross_entropy_with_logits",),
    "BCE": ("^binary_cross_entropy ",),
    "weight": ("_with_logits .*'weight': 'float32|_with_logits .*'float32.*'float32.*'float32",),
    "pos_weight": ("'pos_weight': 'float32",),
    "soft margin": ("soft_margin_loss",),
    "KL divergence": ("kl_div",),
    "cosine embedding": ("cosine_embedding_loss",),
    "triplet": ("triplet_margin_loss",),
    "multilabel margins": ("multilabel_margin_loss",),
    "ranking": ("margin_ranking_loss",),
    "hinge": ("hinge_embedding_loss",),
    "Poisson NLL": ("poisson_nll_loss",),
    "Two convolutions with max pooling": ("Conv2d .*'out_channels': 8", "Conv2d .*'in_channels': 8", "MaxPool2d"),
    "then two linear layers": ("Linear .*'out_features': 16", "Linear .*'in_features': 16"),
    "Three basic residual blocks as in ResNet-20": (
        "BatchNorm2d .*: 4,",
        "BatchNorm2d .*: 8,",
        "BatchNorm2d .*: 16,",
        "^add ",
    ),
    "An inverted residual block": ("^add ",),
    "expansion": ("Conv2d .*'in_channels': 4, 'out_channels': 12, 'kernel_size': \\(1, 1\\)",),
    "squeeze": ("AdaptiveAvgPool2d .*'output_size': 1",),
    "excitation": ("Sigmoid", "^mul "),
    "An encoder": ("MaxPool2d",),
    "decoder over pixels|transposed convolution": ("ConvTranspose2d",),
    "skip connections": ("^cat ",),
    "group norm": ("GroupNorm",),
    "padding_idx": ("Embedding .*'padding_idx': \\d",),
    "tokens that occur more than once": ("embedding \\['int64\\[3, 5\\]', 'float32\\[7,",),
    "scale_grad_by_freq": ("Embedding .*'scale_grad_by_freq': True",),
    "An embedding whose weights are the output layer's too|tied output": ("Embedding", "linear .*'None'\\]"),
    "learned positions|positions": ("^add .*'float32\\[\\d+, \\d+\\]'\\]",),
    "plain": ("scaled_dot_product_attention \\[[^\\]]*\\][^\\]]*\\][^\\]]*\\]'\\] {}",),
    "causal": ("is_causal': 'True'",),
    "masks of bool": ("attn_mask': 'bool",),
    "of float": ("attn_mask': 'float32",),
    "own scale": ("'scale': '\\d",),
    "scaled_dot_product_attention with fewer heads of keys": ("'enable_gqa': 'True'",),
    "values than of queries": (
        "scaled_dot_product_attention \\['float32\\[3, (\\d+), .*'float32\\[3, (?!\\1)\\d+, .*'float32\\[3, (?!\\1)",
    ),
    "self": ("multi_head_attention_forward \\['(\\S+ \\S+ \\S+)', '\\1'",),
    "cross": ("multi_head_attention_forward .*'float32\\[18\\]|q_proj_weight",),
    "key_padding_mask": ("'key_padding_mask': 'float32",),
    "weights returned": ("'need_weights': 'True'",),
    "TransformerEncoder of two layers": ("TransformerEncoder .*'num_layers': 2",),
    "norm after": ("'norm_first': False",),
    "norm first|causal blocks with norm first": ("'norm_first': True",),
    "ReLU": ("^relu ",),
    "GELU": ("^gelu ",),
    "causal mask": ("'attn_mask': 'float32",),
    "cross attention to an encoder's memory": (
        "TransformerDecoderLayer",
        "multi_head_attention_forward .*'attn_mask': 'None'",
    ),
    "A small GPT": ("TransformerEncoderLayer",),
    "tokens": ("embedding \\['int64\\[3, 6\\]",),
    "per-token loss": ("cross_entropy .*int64\\[3, 6\\]",),
    "LSTM of two layers": ("LSTM .*'num_layers': 2",),
    "GRU of two layers": ("GRU .*'num_layers': 2",),
    "both directions": ("'bidirectional': True",),
    "LSTM with a projection": ("LSTM .*'proj_size': [1-9]",),
    "RNN with tanh": ("RNN .*'tanh'",),
    "then with ReLU": ("RNN .*'relu'",),
    "GRUCell in a loop of the module": ("GRUCell",),
}
MEANING = {word: found for words, found in BOTH.items() for word in words.split("|")}


@pytest.fixture(scope="module")
def worker(torch_python: str) -> Iterator[StepWorker]:
    with step_worker(torch_python) as made:
        yield made


# The blocks of ResNet-50 are those of the small one.
@pytest.mark.parametrize("name", [name for name in CASES if name != "resnet50"])
def test_a_row_names_what_its_case_contains(worker: StepWorker, name: str) -> None:
    contents = worker("contents", name)
    names = {line.split()[0].lower() for line in contents}
    for words in filter(None, (w.strip() for w in re.split(r"[,:;()]| and ", CASES[name].what))):
        if words in MEANING:
            for expression in MEANING[words]:
                assert any(re.search(expression, line, re.S) for line in contents), (words, expression)
        else:
            assert words.lower() in names, f"'{words}' is in no line of {sorted(names)}"
