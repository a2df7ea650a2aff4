"""The pages of comparisons and histories in a real browser: inert, offline, legible, no wider than the window."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from factories import train_cell, write_records
from result_runs import START, noisy, run_record, write_run
from transect.analysis.history import history_of
from transect.analysis.set_lines import outcome_of
from transect.analysis.set_verdicts import compare_sets
from transect.analysis.timelines import LeftOut, timeline
from transect.engine.result_folders import find_runs, read_sets
from transect.report.comparison.compare_page import Compared, write_comparison
from transect.report.comparison.history_page import Followed, history_page
from transect.report.comparison.site import INDEX, site_contents

EVIL = "</script><script>window.HACKED=1</script><img src=x onerror='window.HACKED=2'>\u2028{{7*7}}"
FRAMEWORKS = ("numpy", "torch", "keras", EVIL)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen runs of four cells: one has a step, and one a name that would run."""
    folder = tmp_path_factory.mktemp("runs")
    for day in range(14):
        rates = {
            name: noisy(100 * (place + 1) * (0.7 if name == "torch" and day >= 7 else 1), 99 * day + place, 3)
            for place, name in enumerate(FRAMEWORKS)
        }
        where = folder / f"{day:02}<b>" / "quick"
        write_run(where, rates, day=day, host=f"{EVIL}{day // 7}", commit=f"{day // 7}" * 40)
        broken = where / "train" / "broken~01234567" / "record.json"
        broken.parent.mkdir()
        broken.write_text(EVIL)
        for repeat in range(3):
            settings = {"learning_rate": 0.1 * (1 + day), "name": EVIL}
            record = run_record(
                train_cell("jax", repeat),
                {"samples_per_second": 1.0},
                parameters=settings,
                at=START + timedelta(days=day, hours=1),
            )
            write_records(where, record)
        alone = run_record(train_cell(f"only-{day}", workload=EVIL), {"samples_per_second": 1.0})
        write_records(where, alone)
    return folder


@pytest.fixture(scope="module")
def pages(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both pages."""
    folder = tmp_path_factory.mktemp("pages")
    sets = read_sets(find_runs([runs])[0])
    made = {name: folder / f"{name}.html" for name in ("compare", "history", "trends")}
    base, *others = sets[0], sets[6], sets[13]
    besides = compare_sets(base, others)
    outcome = outcome_of(besides)
    compared = Compared(base=base, besides=besides, outcome=outcome, margin=0.05, quality_margin=0.01)
    write_comparison(made["compare"], compared)
    line = timeline(sets)
    followed = Followed(study=EVIL, history=history_of(line.runs), left_out=line.left_out, margin=0.05)
    made["history"].write_bytes(history_page(followed))
    site = site_contents([followed], [LeftOut(name=EVIL, why=EVIL)])
    made["trends"].write_bytes(site.files[INDEX])
    return made


@pytest.mark.parametrize("name", ["compare", "history"])
def test_a_page_says_what_changed_and_names_are_told_and_not_obeyed(pages, name):
    text = pages[name].read_text()
    assert "<script>window" not in text and "<img" not in text
    assert "&lt;script&gt;window.HACKED=1" in text
    assert "iris-mlp · torch · single" in text and ">worse</span>" in text
    assert 'id="methods"' in text and text.count('class="plot"') >= 1


@pytest.mark.browser
@pytest.mark.parametrize("name", ["compare", "history", "trends"])
def test_a_page_is_inert_offline_has_its_charts_and_fits(browser, pages, name):
    page, complaints, asked = browser.new_page(viewport={"width": 320, "height": 900}), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    address = pages[name].as_uri()
    page.goto(address)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert [url for url in asked if not url.startswith(("data:", address))] == [] == complaints
    assert page.evaluate("window.HACKED") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    empty = "[...document.querySelectorAll('svg.plot')].filter((one) => one.querySelectorAll('path').length < 3)"
    assert page.evaluate(f"{empty}.length") == 0
    anchors = page.evaluate("[...document.querySelectorAll('nav a')].map((a) => a.hash.slice(1))")
    assert anchors == page.evaluate("[...document.querySelectorAll('main > section')].map((s) => s.id)")
    page.close()
