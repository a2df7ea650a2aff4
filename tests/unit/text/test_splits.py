"""Splits: every ticket in one part at most, by chance, time, class or owner."""

import json

import numpy as np
import pytest

from payload_calls import payload_arguments
from transect.domain.errors import BadInput
from transect.payloads.__main__ import main
from transect.payloads.split import PARTS, deal
from transect.text.splitters import SPLITTERS, Rows

PUBLISHED = (
    {"train": 0.4, "validation": 0.1, "inference": 0.1, "on_device": 0.4},
    {"train": 0.6, "validation": 0.1, "test": 0.1, "inference": 0.1, "on_device": 0.1},
    {"train": 0.9, "test": 0.1},
)


def corpus(folder, n=200, classes=4, seed=0, **given):
    generator = np.random.default_rng(seed)
    arrays = {
        "labels": generator.integers(0, classes, n, dtype=np.int32),
        "times": generator.random(n) * 1e9,
        "owners": generator.choice(8, n, p=np.arange(1, 9) / 36).astype(np.int32),
    } | given
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return Rows(**arrays)


def rule(by="random", clients=0, **shares):
    return {"rule": dict.fromkeys(PARTS, 0) | shares | {"by": by, "clients": clients}, "seed": 7}


def parts_of(folder):
    with np.load(folder / "parts.npz") as file:
        return dict(file)


@pytest.mark.parametrize("by", SPLITTERS.names())
@pytest.mark.parametrize("shares", PUBLISHED, ids=["40/40", "60/10", "90/10"])
def test_every_ticket_is_in_one_part(tmp_path, by, shares):
    if by == "owner":
        shares = {"on_device": 0.1} | shares | ({"train": 0.8} if "on_device" not in shares else {})
    corpus(tmp_path)
    details = deal(rule(by, **shares), {"corpus": tmp_path}, tmp_path)
    parts = parts_of(tmp_path)
    assert list(parts) == list(PARTS)
    assert all(part.dtype == np.int64 and (np.diff(part) > 0).all() for part in parts.values())
    assert sorted(np.concatenate([*parts.values()])) == list(range(200))
    assert details["sizes"] == {part: round(200 * shares.get(part, 0)) for part in PARTS}
    assert details["left_over"] == 0
    json.dumps(details, allow_nan=False)


def test_by_time_no_part_knows_the_future_of_another(tmp_path):
    rows = corpus(tmp_path)
    details = deal(rule("time", **PUBLISHED[1]), {"corpus": tmp_path}, tmp_path)
    parts = parts_of(tmp_path)
    last = -np.inf
    for part in PARTS:
        times = rows.times[parts[part]]
        assert times.min() > last
        last = times.max()
        assert details["times"][part] == [times.min(), last]


def test_stratified_parts_have_every_class_by_its_share(tmp_path):
    # One class has ten tickets, one per tenth.
    labels = np.repeat([0, 1, 2], [700, 290, 10])
    corpus(tmp_path, labels=labels, n=1000)
    details = deal(rule("stratified", clients=4, **PUBLISHED[1]), {"corpus": tmp_path}, tmp_path)
    for part, rows in parts_of(tmp_path).items():
        share = len(rows) / 1000
        counts = np.bincount(labels[rows], minlength=3)
        assert (abs(counts - np.array([700, 290, 10]) * share) <= 2).all(), part
    assert max(details["balance"].values()) < 0.05


def test_by_owner_the_rarest_are_on_devices_and_clients_have_whole_owners(tmp_path):
    rows = corpus(tmp_path, n=400)
    deal(rule("owner", clients=3, train=0.6, test=0.2, on_device=0.2), {"corpus": tmp_path}, tmp_path)
    parts = parts_of(tmp_path)
    counts = np.bincount(rows.owners)
    rarest = counts[rows.owners[parts["on_device"]]].max()
    others = rows.owners[np.concatenate([parts["train"], parts["test"]])]
    # All the others' owners are at least as frequent: one owner may be cut in two.
    assert counts[others].min() >= rarest
    assert len(set(others) & set(rows.owners[parts["on_device"]])) <= 1
    clients = [rows.owners[parts[f"client-{k}"]] for k in range(3)]
    assert sum(len(set(rows_of_client)) for rows_of_client in clients) <= len(set(np.concatenate(clients))) + 2
    # The rest is by chance: both parts have all of the frequent owners.
    assert set(rows.owners[parts["train"]]) == set(others)


@pytest.mark.parametrize(
    ("owners", "shares", "message"),
    [
        (np.array([0, -1, -1]), {"train": 0.5, "on_device": 0.5}, "2 of 3 tickets have no owner"),
        (np.array([0, 1, 1]), {"train": 1.0}, "no share `on_device`"),
    ],
)
def test_by_owner_what_is_missing_is_named(tmp_path, owners, shares, message):
    corpus(tmp_path, n=3, owners=owners)
    with pytest.raises(BadInput, match=message):
        deal(rule("owner", **shares), {"corpus": tmp_path}, tmp_path)


def test_clients_are_cut_from_the_devices_part(tmp_path):
    corpus(tmp_path)
    details = deal(rule(clients=3, train=0.5, on_device=0.5), {"corpus": tmp_path}, tmp_path)
    parts = parts_of(tmp_path)
    clients = [parts[f"client-{k}"] for k in range(3)]
    assert sorted(np.concatenate(clients)) == parts["on_device"].tolist()
    assert [details["sizes"][f"client-{k}"] for k in range(3)] == [34, 33, 33]


@pytest.mark.parametrize(
    ("given_rule", "message"),
    [
        (rule(train=0.8, test=0.01), "of 5 tickets, 0.01 for test is none"),
        (rule(train=0.5, on_device=0.5, clients=4), "4 clients, and 3 tickets"),
    ],
)
def test_parts_without_tickets_are_bad_input(tmp_path, given_rule, message):
    corpus(tmp_path, n=5)
    spec = given_rule | {"cell": {"stage": "split", "corpus": "a", "split": "b"}}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    assert main(payload_arguments("split", tmp_path, corpus=tmp_path)) == 1
    found = json.loads((tmp_path / "result.json").read_text())
    assert (found["status"], found["cause"]) == ("failed", "bad-input")
    assert message in found["message"]
    assert not (tmp_path / "parts.npz").exists()


@pytest.mark.parametrize("rows", [{"train": [0, 1], "test": [1, 2]}, {"train": [0, 1], "test": [200]}])
def test_a_splitter_that_gives_a_ticket_twice_or_none_is_refused(tmp_path, monkeypatch, rows):
    corpus(tmp_path)
    found = {name: np.array(part) for name, part in rows.items()}
    monkeypatch.setattr(type(SPLITTERS.get("random")), "parts", lambda *_: found)
    with pytest.raises(BadInput, match="splitter 'random' gives a ticket twice, or one that is not there"):
        deal(rule(train=0.9, test=0.1), {"corpus": tmp_path}, tmp_path)
