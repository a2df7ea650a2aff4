"""`transect new`: a plug-in to begin with, and a test of it, from the files to copy of docs/adding/."""

from __future__ import annotations

import keyword
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from transect.cli.check_plugin import know_plugins
from transect.cli.new_files import write_new
from transect.cli.output import print_lines
from transect.domain.errors import BadInput, unknown_name
from transect.domain.names import meant

# What docs/adding/ shows; scripts/generate-docs.py puts it there.
SCAFFOLDS = Path(__file__).with_name("scaffolds")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Names:
    """A plug-in's name, and what follows from it: `my-net` is in `my_net.py`, and its classes begin with `MyNet`."""

    name: str
    module: str
    camel: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scaffold:
    """The files of a kind, from their names in SCAFFOLDS to those in the folder, and the words that are replaced.

    `module` stands for the plug-in's own in the targets. `more` are options of the command that checks it.
    """

    files: dict[str, str]
    words: Callable[[_Names], dict[str, str]]
    more: str = ""


def _stage_words(names: _Names) -> dict[str, str]:
    many = re.sub(r"[^a-z0-9]+", "-", names.name.lower()).strip("-") + "s"
    return {
        # Its folder and its key in a study are Python's names.
        "transect.stages.toy": f"transect.stages.{names.module}",
        'key = "toy"': f'key = "{names.module}"',
        '"toy.workloads"': f'"{names.module}.workloads"',
        "toy: {workloads": f"{names.module}: {{workloads",
        "toy_norm": f"{names.module}_norm",
        "ToyCell": f"{names.camel}Cell",
        "ToySection": f"{names.camel}Section",
        "class Toy(": f"class {names.camel}Stage(",
        "def toys(": f"def {names.module}s(",
        "make=toys": f"make={names.module}s",
        "[plugins]": "[.]",
        "toys.yaml": f"{names.module}.yaml",
        "name: toys": f"name: {names.name}",
        '"toys"': f'"{many}"',
        "of toys": f"of {names.name}",
        "toy": names.name,
    }


def _parser_words(names: _Names) -> dict[str, str]:
    return {
        "extra-benchmark": names.name,
        "ExtraParser": f"{names.camel}Parser",
        "extra_parser": names.module,
        # A mark of its own: one line of a log is of one benchmark.
        "EXTRA BENCH": re.sub(r"[^A-Z0-9]+", " ", names.name.upper()).strip(),
    }


def _workload_words(names: _Names) -> dict[str, str]:
    # The page's own dataset is another plug-in.
    iris = {'"wine"': '"iris"', "13-16-3": "4-16-3", "(13,)": "(4,)", "Linear(13,": "Linear(4,"}
    return {"wine-mlp": names.name, "WineMlp": f"{names.camel}Workload", "extra_workload": names.module, **iris}


def _plugin(template: str, **more: str) -> dict[str, str]:
    return {f"{template}.py": "module.py", **more, f"tests/test_{template}.py": "tests/test_module.py"}


_SCAFFOLDS = {
    "framework": _Scaffold(
        files=_plugin("extra_framework"),
        words=lambda names: {
            "extra-framework": names.name,
            "ExtraFramework": f"{names.camel}Framework",
            "MlpTrainer": f"{names.camel}Trainer",
        },
    ),
    "strategy": _Scaffold(
        files=_plugin("extra_strategy"),
        words=lambda names: {"extra-reduce-broadcast": names.name, "ReduceBroadcast": f"{names.camel}Strategy"},
    ),
    "runtime": _Scaffold(
        files=_plugin("extra_runtime", **{"_extra_runner.py": "_module_runner.py"}),
        words=lambda names: {
            "extra-runtime": names.name,
            "ExtraRuntime": f"{names.camel}Runtime",
            "_extra_runner": f"_{names.module}_runner",
        },
    ),
    "parser": _Scaffold(
        files=_plugin("extra_parser", **{"tests/extra_parser.log": "tests/module.log"}),
        words=_parser_words,
        more="--log {folder}/tests/{module}.log",
    ),
    "stage": _Scaffold(
        files={
            **{f"toy/{part}.py": f"module/{part}.py" for part in ("cell", "stage", "payload", "report")},
            "toys.yaml": "module.yaml",
            "tests/test_toy.py": "tests/test_module.py",
        },
        words=_stage_words,
        more="--study {folder}/{module}.yaml",
    ),
    "workload": _Scaffold(files=_plugin("extra_workload"), words=_workload_words),
}


def new(
    kind: Annotated[str, typer.Argument(help="framework, strategy, runtime, parser, stage, workload")],
    name: Annotated[str, typer.Argument(help="the name by which a study will know it")],
    folder: Annotated[Path, typer.Option(help="the plug-in folder to write to")] = Path("plugins"),
) -> None:
    """Write a plug-in to begin with, which works as it is, and a test of it for pytest.

    Nothing is overwritten. Example: transect new strategy my-strategy --folder my-study/plugins
    """
    if kind not in _SCAFFOLDS:
        raise unknown_name("kind of plug-ins to begin with", kind, _SCAFFOLDS)
    names = _names(kind, name)
    _check_free(kind, names, folder)
    scaffold = _SCAFFOLDS[kind]
    words = scaffold.words(names)
    pattern = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))
    files = {}
    for template, target in scaffold.files.items():
        text = (SCAFFOLDS / template).read_text(encoding="utf-8")
        files[folder / target.replace("module", names.module)] = pattern.sub(lambda found: words[found[0]], text)
    write_new(files)
    print_lines(*(f"wrote {path}" for path in files))
    quoted = shlex.quote(str(folder))
    more = scaffold.more.format(folder=quoted, module=names.module)
    print_lines(
        f"next: transect check-plugin {kind} {name} --plugins {quoted} {more}".rstrip(),
        f"      pytest {shlex.quote(str(folder / 'tests' / f'test_{names.module}.py'))}",
    )


def _names(kind: str, name: str) -> _Names:
    """Return what follows from a name. Raises BadInput where it cannot be that of a file and of a class."""
    module = re.sub(r"[-.+]", "_", name)
    if not (re.fullmatch(r"[A-Za-z][A-Za-z0-9._+-]*", name) and module.isidentifier()) or keyword.iskeyword(module):
        raise BadInput(
            f"{kind} {name!r}: expected letters, digits and ._+-, first a letter, and no keyword of Python: "
            "its file is called like it"
        )
    dashed = module.replace("_", "-")
    if kind == "stage" and name not in (module, dashed):
        raise BadInput(f"stage {name!r}: is known by the name of its folder: expected '{dashed}' or '{module}'")
    words = [word for word in re.split(r"[-._+]", name) if word]
    camel = "".join(word[0].upper() + word[1:] for word in words).removesuffix(kind.capitalize())
    return _Names(name=name, module=module, camel=camel or "My")


def _check_free(kind: str, names: _Names, folder: Path) -> None:
    """Raise BadInput for a name that the project or the folder has, as people call it besides too."""
    from transect.cli.plugin_checks import kind_of
    from transect.domain.study import Study
    from transect.planning.stage import ordered_stages

    if folder.is_dir():
        know_plugins(None, folder)
    registry = kind_of(kind).registry
    called = registry.called()
    if taken := meant(names.name, called):
        one = taken[0]
        also = "" if one == names.name else f", which '{names.name}' may mean"
        raise BadInput(f"{kind} '{one}'{also} is there already, in {registry.source(one)}: expected another name")
    if kind == "stage":
        keys = {*Study.model_fields, *(stage.key for _, stage in ordered_stages())}
        if names.module in keys:
            raise BadInput(f"stage '{names.name}': the key '{names.module}' of a study is taken: expected another name")
