"""What a training costs to its target, where the system says what a node does; and that a price reruns no cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from make_framework_records import train_record
from said_of_records import Made, findings

from factories import plan_study, provenance, write_records
from transect.adapters.snakemake.flow import facts_of_plan
from transect.domain.errors import BadInput
from transect.domain.record import Record
from transect.domain.system import SystemPrice
from transect.engine.make_report import write_report
from transect.engine.plan_files import planned_price, write_plan
from transect.planning.blocks import make_blocks
from transect.planning.plan import make_plan

PRICE = SystemPrice(system="here", amount=3.6, currency="EUR")
HOURS, COST = "Node-hours to quality", "Cost to quality (EUR)"


def repeats(framework: str, strategy: str = "single", *, system: str = "here", **how: Any) -> list[Record]:
    told = provenance(system={"name": system})
    records = [train_record(framework, strategy, repeat=repeat, **how) for repeat in range(3)]
    return [record.model_copy(update={"provenance": told}) for record in records]


def timed(seconds: float) -> dict[str, float]:
    return {"time_to_quality": seconds}


TORCH = repeats("torch", changes=timed(1000.0))
TWO_NODES = repeats("torch", "ddp-gloo", ranks=2, nodes=2, changes=timed(800.0))


def test_cost_is_whole_nodes_times_hours_times_price() -> None:
    made = Made("frameworks", *TORCH, *TWO_NODES, price=PRICE)
    cells = {row["Ranks"]: (row[HOURS], row[COST]) for row in made.table("digits-cnn: time to accuracy 0.95")}
    # 1000 s of one node, and 800 s of two nodes that the cell's ranks do not fill.
    assert cells == {"1": ("0.278", "1"), "4": ("0.444", "1.6")}
    assert "nodes × hours to quality × 3.6 EUR" in made.text and "of the system here" in made.text


def test_without_a_price_nothing_is_said_of_costs() -> None:
    made = Made("frameworks", *TORCH, *TWO_NODES)
    assert HOURS not in made.prose and "ost to quality" not in made.prose


def test_a_cost_is_part_of_no_finding() -> None:
    assert not [f for found in findings(*TORCH, *TWO_NODES).values() for f in found if "EUR" in f.text + f.evidence]


@pytest.mark.parametrize("other", [{"drop": ("time_to_quality",)}, {"system": "elsewhere"}])
def test_a_cell_whose_time_does_not_count_or_that_ran_elsewhere_has_no_cost(other: dict[str, Any]) -> None:
    made = Made("frameworks", *TORCH, *repeats("numpy", **other), price=PRICE)
    assert sorted(row[COST] for row in made.table("digits-cnn: time to")) == ["1", "–"]
    assert ("No cost is shown of 1 cell" in made.text) == ("system" in other)


def test_a_price_of_another_system_alone_says_why_no_cost_is_shown() -> None:
    made = Made("frameworks", *TORCH, price=PRICE.model_copy(update={"system": "elsewhere"}))
    assert COST not in made.prose and "the price is of the system elsewhere" in made.text


STUDY = "name: s\ntrain: {grids: [{workloads: [iris-mlp], frameworks: [numpy, torch], strategies: [single]}]}\n"
SYSTEM = "name: here\nlauncher: plain\ncores_per_node: 2\n"


def priced(amount: float, currency: str = "EUR") -> str:
    return f"{SYSTEM}price_per_node_hour: {{amount: {amount}, currency: {currency}}}\n"


def test_a_new_price_changes_no_cell_and_no_block_and_makes_the_report_anew(tmp_path: Path) -> None:
    plans = []
    for system in (SYSTEM, priced(2.5), priced(3)):
        made = plan_study(tmp_path, STUDY, system=system)
        write_plan(made, make_blocks(made))
        blocks = {file.name: file.read_bytes() for file in made.paths.specs.glob("train/*.json")}
        facts = facts_of_plan(made, make_blocks(made))
        plans.append(
            ([p.fingerprint for p in made], blocks, facts.blocks, facts.report_state, planned_price(made.paths))
        )
    assert plans[0][:3] == plans[1][:3] == plans[2][:3]
    assert len({state for *_, state, _ in plans}) == 3
    assert plans[0][-1] is None
    assert plans[2][-1] == SystemPrice(system="here", amount=3, currency="EUR")


def test_the_report_has_the_price_of_the_file_or_of_the_plan_where_that_is_gone(tmp_path: Path) -> None:
    made = plan_study(tmp_path, STUDY, system=priced(3.6))
    write_plan(made, make_blocks(made))
    # Cells that no plan has would not count.
    made.paths.plan.write_text(made.paths.plan.read_text().replace('"cells"', '"others"'))
    write_records(made.paths.folder, *TORCH, *TWO_NODES)

    def said() -> str:
        write_report(made.file, made.paths, ["markdown"])
        return (made.paths.folder / "report.md").read_text()

    assert "hours to quality × 3.6 EUR" in said()
    (tmp_path / "system.yaml").write_text(priced(7.2, "credits"))
    assert "hours to quality × 7.2 credits" in said() and "Cost to quality (credits)" in said()
    (tmp_path / "system.yaml").unlink()
    assert "hours to quality × 3.6 EUR" in said()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("2.5", "price_per_node_hour"),
        ("{amount: 2.5}", "price_per_node_hour.currency"),
        ("{amount: -1, currency: EUR}", "price_per_node_hour.amount"),
        ("{amount: .nan, currency: EUR}", "price_per_node_hour.amount"),
        ('{amount: 1, currency: ""}', "price_per_node_hour.currency"),
    ],
)
def test_a_price_that_is_none_is_refused_with_its_key(tmp_path: Path, given: str, said: str) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "system.yaml").write_text(f"{SYSTEM}price_per_node_hour: {given}\n")
    with pytest.raises(BadInput, match=said):
        make_plan(tmp_path / "study.yaml", tmp_path / "system.yaml", tmp_path / "results")
