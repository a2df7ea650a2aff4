"""The transformer encoder from scratch: against torch's own, and its choices one by one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from transect.domain.errors import BadInput
from transect.training.text_encoder import EncoderConfig, encoder_weights, initial_weights
from warm import warm

SMALL = {"vocabulary": 50, "width": 12, "heads": 3, "layers": 2, "ffn": 20, "length": 9, "classes": 4}

# In one process, as importing torch takes longer than all of it. Prints largest distances.
CHECK = """
import json, sys
import numpy as np, torch
from torch import nn
from transect.training.frameworks._torch_encoder import build_encoder
from transect.training.text_encoder import EncoderConfig

torch.backends.mha.set_fastpath_enabled(False)
sizes = json.loads(sys.argv[1])
generator = torch.Generator().manual_seed(1)
# Row 0 is full, the others end in padding; no row is all padding, which torch's own makes NaN of.
x = torch.randint(1, sizes["vocabulary"], (6, sizes["length"]), generator=generator)
for row in range(6):
    x[row, sizes["length"] - row:] = 0
found = {}

def changed(**choices):
    return build_encoder(EncoderConfig(**sizes | choices), seed=5)

def distance(one, other):
    return float((one - other).detach().abs().max())

def own(config):
    layer = nn.TransformerEncoderLayer(
        config["width"], config["heads"], config["ffn"], dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, config["layers"], enable_nested_tensor=False)

for heads in (1, 3):
    for mask in (True, False):
        for dtype in (torch.float32, torch.float64):
            ours = changed(heads=heads, mask=mask).to(dtype)
            theirs = own(sizes | {"heads": heads}).to(dtype)
            state = ours.state_dict()
            theirs.load_state_dict({k: v for k, v in state.items() if k.startswith("layers.")})
            vectors = ours.embedding(x) + ours.positions
            expected = theirs(vectors, src_key_padding_mask=(x == 0) if mask else None)
            key = f"{heads} heads, mask {mask}, {dtype}"
            found[key] = distance(ours.encode(x), expected)
            ours.zero_grad(); theirs.zero_grad()
            words = (x != 0).unsqueeze(-1) if mask else torch.ones_like(x).unsqueeze(-1)
            (ours.encode(x) * words).square().sum().backward()
            (theirs(ours.embedding(x).detach() + ours.positions,
                    src_key_padding_mask=(x == 0) if mask else None) * words).square().sum().backward()
            theirs_of = dict(theirs.named_parameters())
            found[f"gradient, {key}"] = max(
                distance(p.grad, theirs_of[n].grad) / float(theirs_of[n].grad.abs().max() + 1)
                for n, p in ours.named_parameters() if n in theirs_of)

model = changed()
longer = torch.cat([x, torch.zeros(6, 4, dtype=x.dtype)], dim=1)
short = x[:, :4].clone(); short[:, 3] = 0
more = {"length": sizes["length"] + 4}
found["more padding"] = distance(changed(**more)(x), changed(**more)(longer))
found["shorter rows"] = distance(model(short), model(short[:, :3]))
found["no words"] = distance(model(torch.zeros_like(x)), model.head.bias.expand(6, -1))
found["flatten, no words"] = distance(
    changed(pooling="flatten")(torch.zeros_like(x)), changed(pooling="flatten").head.bias.expand(6, -1))
found["positions"] = distance(model(x), changed(positions=False)(x))
turned = x.clone(); turned[0] = x[0].flip(0)
found["turned, no positions"] = distance(changed(positions=False)(x), changed(positions=False)(turned))
found["turned, positions"] = distance(model(x), model(turned))
found["mask"] = distance(model(x), changed(mask=False)(x))
found["mask of full rows"] = distance(model(x[:1]), changed(mask=False)(x[:1]))
found["reshape, 3 heads"] = distance(model(x), changed(reshape="published")(x))
one = dict(heads=1)
found["reshape, 1 head"] = distance(changed(**one)(x), changed(**one, reshape="published")(x))
model.train(); found["dropout 0"] = distance(model(x), model(x))
noisy = changed(dropout=0.5).train()
torch.manual_seed(3); first = noisy(x)
torch.manual_seed(3); found["dropout, one seed"] = distance(first, noisy(x))
found["dropout, going on"] = distance(first, noisy(x))
found["dropout in prediction"] = distance(noisy.eval()(x), model.eval()(x))
changed_sum = model(x).square().sum(); changed_sum.backward()
found["padding's gradient"] = float(model.embedding.weight.grad[0].abs().max())
vectors = np.random.default_rng(0).standard_normal((sizes["vocabulary"], sizes["width"])).astype(np.float32)
vectors[0] = 0
frozen = build_encoder(EncoderConfig(**sizes, embedding="frozen"), vectors)
found["vectors"] = distance(frozen.embedding.weight, torch.tensor(vectors))
frozen(x).square().sum().backward()
found["frozen gets a gradient"] = float(frozen.embedding.weight.grad is not None)
found["int32"] = distance(model(x.int()), model(x))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(torch_python: str) -> dict[str, float]:
    run = warm(torch_python).run("-c", CHECK, json.dumps(SMALL))
    assert run.returncode == 0, run.stderr
    values: dict[str, float] = json.loads(run.stdout)
    return values


def test_it_equals_torchs_own_encoder(found: dict[str, float]) -> None:
    compared = {name: value for name, value in found.items() if "torch.float" in name}
    assert len(compared) == 16
    # Sums of float32 are taken in another order on another processor: 1.8e-5 for a gradient on one, 5e-6 on others.
    for name, value in compared.items():
        assert value <= (1e-12 if "float64" in name else 1e-4 if "gradient" in name else 1e-5), name


@pytest.mark.parametrize(
    "name",
    [
        "more padding",
        "shorter rows",
        "no words",
        "flatten, no words",
        "turned, no positions",
        "mask of full rows",
        "reshape, 1 head",
        "dropout 0",
        "dropout, one seed",
        "dropout in prediction",
        "padding's gradient",
        "vectors",
        "frozen gets a gradient",
        "int32",
    ],
)
def test_what_must_make_no_difference(found: dict[str, float], name: str) -> None:
    assert found[name] <= 1e-6


@pytest.mark.parametrize("name", ["positions", "turned, positions", "mask", "reshape, 3 heads", "dropout, going on"])
def test_what_must_make_one(found: dict[str, float], name: str) -> None:
    assert found[name] > 1e-3


@pytest.mark.parametrize(
    ("choices", "message"), [({"heads": 5}, "heads=5"), ({"layers": 0}, "layers=0"), ({"dropout": 1.0}, "dropout=1.0")]
)
def test_sizes_that_make_no_encoder(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        EncoderConfig(**SMALL | choices)


def test_the_published_preset() -> None:
    config = EncoderConfig.published(vocabulary=100, heads=4, layers=2)
    assert (config.width, config.ffn, config.length, config.classes) == (512, 2048, 280, 144)
    assert (config.pooling, config.reshape, config.dropout) == ("flatten", "published", 0.1)
    shapes = {weight.name: weight.shape for weight in encoder_weights(config)}
    assert shapes["head.weight"] == (144, 280 * 512)


def test_weights_come_from_their_seed() -> None:
    config = EncoderConfig(**SMALL)
    first, second = initial_weights(config, 1), initial_weights(config, 1)
    assert list(first) == [weight.name for weight in encoder_weights(config)]
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
    assert not first["embedding.weight"][0].any()
    assert (first["embedding.weight"] != initial_weights(config, 2)["embedding.weight"])[1:].all()
