"""transect as people install it: built, put into an environment of its own, and used from another folder.

What a module of a Snakemake workflow, or snakedeploy, makes of it is tried here too.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

from checkouts import ROOT
from installed_package import call, files_below, fine

DATA = ("config", "envs", "profiles", "workflow", "src/runners", "src/trainers", "src/kernels")
SMALL = """name: small
train:
  grids:
    - {workloads: [iris-mlp], frameworks: [numpy], strategies: [single]}
"""
MODULE = """
module transect:
    snakefile: {snakefile!r}
    config: {{"study": "small.yaml"}}

use rule * from transect as of_transect_*

rule count:
    default_target: True
    input: "results/small/summary.json"
    output: "count.txt"
    shell: "wc -c {{input}} > {{output}}"

onstart:
    print("theirs: begun")
onsuccess:
    print("theirs: done")
"""


def test_the_package_holds_what_a_checkout_has(sources, built):
    (wheel,) = built.glob("transect-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name.removeprefix("transect/") for name in archive.namelist() if name.startswith("transect/")}
    data = {f"data/{name}/{file}" for name in DATA for file in files_below(sources / name)}
    # Links to folders are not followed here; those to single files, the schemas, count.
    assert names == data | files_below(sources / "src" / "transect")
    assert {"py.typed", "data/pythonpath/transect/__init__.py", "data/envs/runner-c/build.sh"} <= names
    with tarfile.open(next(built.glob("transect-*.tar.gz"))) as archive:
        assert not [member.name for member in archive if member.issym()]


def test_what_is_declared_is_what_is_tested():
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    lines = (ROOT / "envs" / "driver" / "requirements.txt").read_text().splitlines()
    pins = {name.lower(): version for name, version in (line.split("==") for line in lines)}
    declared = [Requirement(text) for text in requires("transect") or () if "extra ==" not in text]
    assert len(declared) > 15
    assert [str(one) for one in declared if pins[one.name.lower()] not in one.specifier] == []


def test_an_installed_transect_runs_a_study_from_another_folder(installed, tmp_path):
    (tmp_path / "small.yaml").write_text(SMALL)
    transect = installed / "transect"
    assert "valid, " in fine(transect, "check", "quick", folder=tmp_path)
    assert "train: " in fine(transect, "run", "quick", "--dry-run", folder=tmp_path)
    fine(transect, "run", "small.yaml", folder=tmp_path)
    folder = tmp_path / "results" / "small"
    assert json.loads((folder / "summary.json").read_text())["counts"]["failed"] == 0
    assert (folder / "report.html").exists() and "ok" in (folder / "logs" / "train" / "iris-mlp.n1.log").read_text()
    # The same commands of a checkout take the results for theirs.
    for command in (("why", "small.yaml"), ("verify", "small.yaml"), ("status", "results/small")):
        fine(transect, *command, folder=tmp_path)
    elsewhere = Path(sys.executable).parent / "transect"
    assert "0 of " in fine(elsewhere, "why", "small.yaml", folder=tmp_path)
    assert "2 cells" not in fine(transect, "run", "small.yaml", "-n", folder=tmp_path)


def test_studies_and_systems_of_a_user_go_before_those_of_the_site(installed, tmp_path):
    for place, name in (("here/config", "a"), ("user/transect", "b"), ("site/transect", "c")):
        for study in {"a": "a", "b": "ab", "c": "abc"}[name]:
            file = tmp_path / place / "studies" / f"{study}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(SMALL.replace("small", f"of-{name}"))
    places = {"XDG_CONFIG_HOME": str(tmp_path / "user"), "XDG_CONFIG_DIRS": f"{tmp_path}/site:/nowhere"}
    for study in "abc":
        told = fine(installed / "transect", "check", study, "--json", folder=tmp_path / "here", **places)
        assert json.loads(told)["study"] == f"of-{study}"


def test_plugins_of_an_installed_package_are_found_by_the_name_of_its_entry_point(installed, tmp_path):
    package = tmp_path / "source" / "cluster_tools" / "plugins"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package / "slow.py").write_text(
        "import numpy as np\nfrom transect.training.schedules import SCHEDULES, Schedule\n\n\n"
        '@SCHEDULES.register("site-constant")\nclass Constant(Schedule):\n    """As it is."""\n\n'
        "    def factors(self, options, step, steps):\n        return np.ones_like(step)\n"
    )
    (tmp_path / "source" / "pyproject.toml").write_text(
        '[project]\nname = "cluster-tools"\nversion = "1"\n[project.entry-points."transect.plugins"]\n'
        'cluster = "cluster_tools.plugins"\n[tool.setuptools.packages.find]\ninclude = ["cluster_tools*"]\n'
    )
    site = tmp_path / "site"
    fine(installed / "python", "-m", "pip", "install", "-q", "--target", site, tmp_path / "source", folder=tmp_path)
    text = SMALL + "workloads: {iris-mlp: {schedule: site-constant}}\n"
    (tmp_path / "ours.yaml").write_text(text + "plugins: [cluster]\n")
    (tmp_path / "others.yaml").write_text(text + "plugins: [clutter]\n")
    python = (
        installed / "python",
        "-c",
        f"import sys; sys.path.append({str(site)!r}); import transect.cli.main as m; m.run()",
    )
    assert "valid, " in fine(*python, "check", "ours.yaml", folder=tmp_path)
    (site / "cluster_tools" / "plugins").rename(site / "cluster_tools" / "elsewhere")
    gone = call(*python, "check", "ours.yaml", folder=tmp_path)
    assert gone.returncode == 2 and "cluster_tools.plugins to be a package" in gone.stderr
    shutil.rmtree(site / "cluster_tools")
    gone = call(*python, "check", "ours.yaml", folder=tmp_path)
    assert gone.returncode == 2 and gone.stderr.count("\n") == 1 and "No module named" in gone.stderr
    wrong = call(*python, "check", "others.yaml", folder=tmp_path)
    assert wrong.returncode == 2 and "no such folder; installed packages with plug-ins: cluster" in wrong.stderr


def test_it_is_a_module_of_another_workflow(installed, tmp_path):
    (tmp_path / "small.yaml").write_text(SMALL)
    snakefile = fine(installed / "transect", "where", "snakefile", folder=tmp_path).strip()
    (tmp_path / "Snakefile").write_text(MODULE.format(snakefile=snakefile))
    told = fine(installed / "snakemake", "--cores", "1", folder=tmp_path)
    assert "theirs: begun" in told and "theirs: done" in told
    # Its own handlers ran too: the plan is there, and the claim was given back.
    assert (tmp_path / "results" / "small" / "plan.json").exists()
    assert not (tmp_path / "results" / ".transect" / "small.json").exists()
    assert "Nothing to be done" in fine(installed / "snakemake", "--cores", "1", folder=tmp_path)
    before = files_below(tmp_path / "results")
    for key in ('prefix: "sub"', 'replace_prefix: {"results/": "out/"}'):
        (tmp_path / "moved").write_text(
            MODULE.format(snakefile=snakefile).replace("    config:", f"    {key}\n    config:")
        )
        moved = call(installed / "snakemake", "--cores", "1", "-s", "moved", folder=tmp_path)
        assert moved.returncode == 2 and "name the folder by `results`" in moved.stderr
    assert files_below(tmp_path / "results") == before
    second = MODULE.format(snakefile=snakefile).split("rule count")[0].replace("small.yaml", "quick")
    with (tmp_path / "Snakefile").open("a") as file:
        file.write(second.replace("module transect", "module twice").replace("transect as of_", "twice as again_"))
    twice = call(installed / "snakemake", "--cores", "1", "-n", folder=tmp_path)
    assert twice.returncode and "has a study of transect already" in twice.stderr


def test_snakedeploy_deploys_it(installed, sources, tmp_path):
    deployed = tmp_path / "deployed"
    snakedeploy = Path(sys.executable).parent / "snakedeploy"
    fine(snakedeploy, "deploy-workflow", sources, deployed, "--branch", "main", "--name", "transect", folder=tmp_path)
    snakefile = deployed / "workflow" / "Snakefile"
    # Of a local repository it writes a path that is right within it.
    declared = snakefile.read_text()
    assert '"workflow/Snakefile"' in declared
    snakefile.write_text(declared.replace('"workflow/Snakefile"', repr(f"{sources}/workflow/Snakefile")))
    (deployed / "small.yaml").write_text(SMALL)
    (deployed / "config" / "config.yaml").write_text("study: small.yaml\n")
    fine(installed / "snakemake", "--cores", "1", folder=deployed)
    assert (deployed / "results" / "small" / "report.html").exists()


def test_sources_have_the_same_names_where_a_link_leads_to_the_environment(installed, tmp_path):
    (tmp_path / "linked").symlink_to(installed.parent)
    asked = "from transect.planning.code_hash import hash_sources; from transect.text.formats.sample import SAMPLE"
    words = ("-c", f"{asked}; print(hash_sources(frozenset([SAMPLE])).files)")
    told = [
        fine(place / "bin" / "python", *words, folder=tmp_path) for place in (installed.parent, tmp_path / "linked")
    ]
    assert told[0] == told[1] and "transect/text/data/tickets-sample.csv" in told[0]


def test_a_read_only_installation_serves_several_users(installed, tmp_path):
    (tmp_path / "small.yaml").write_text(SMALL)
    home = installed.parent / "lib"
    before = files_below(home)
    fine(installed / "transect", "run", "small.yaml", folder=tmp_path, PYTHONDONTWRITEBYTECODE="1")
    assert files_below(home) == before
