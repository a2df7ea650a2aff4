"""`transect list`: what a study can name, and what there is to run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transect.cli.check_plugin import know_plugins
from transect.cli.output import Json, print_lines, print_table
from transect.domain.errors import unknown_name
from transect.domain.names import only_meant
from transect.domain.terminal import say

if TYPE_CHECKING:
    from transect.domain.registry import Registry

Sentences = Mapping[str, str]


def list_(
    kind: Annotated[
        str | None, typer.Argument(help="studies, systems, frameworks, rules, …; without it: what can be listed")
    ] = None,
    study: Annotated[str | None, typer.Option(help="a study's name or file: also what it brings")] = None,
    plugins: Annotated[Path | None, typer.Option(help="a plug-in folder: also what lies there")] = None,
    as_json: Json = False,
) -> None:
    """List names, each with a sentence: studies, systems, every kind of plug-in, environments, rules, metrics.

    Examples: transect list; transect list frameworks --plugins my-study/plugins
    """
    know_plugins(study, plugins)
    kinds = _kinds()
    if kind is None:
        counts = {name: len(find()) for name, (_, find) in kinds.items()}
        if as_json:
            print(json.dumps([{"kind": name, "names": count} for name, count in counts.items()], indent=1))
            return
        print_table(("kind", "names"), [(name, str(count)) for name, count in counts.items()])
        print_lines("`transect list KIND` lists one of them")
        return
    singular = {name: (one,) for name, (one, _) in kinds.items()}
    chosen = only_meant(kind, singular)
    if chosen not in kinds:
        raise unknown_name("kind", kind, kinds, others=singular)
    found = kinds[chosen][1]()
    if as_json:
        print(json.dumps([{"name": name, "about": about} for name, about in found.items()], indent=1))
    else:
        print_table(("name", "what"), list(found.items()))


def _kinds() -> dict[str, tuple[str, Callable[[], Sentences]]]:
    """Return what can be listed by its name: that in the singular, and what finds names and sentences."""
    from transect.cli.kinds import REGISTRIES, plural
    from transect.planning.study import names_of

    return {
        "studies": ("study", partial(names_of, "study")),
        "systems": ("system", partial(names_of, "system")),
        **{
            plural(one.kind).replace(" ", "-"): (one.kind, partial(_registered, one))
            for one in sorted(REGISTRIES, key=lambda one: one.kind)
        },
        "environments": ("environment", _environments),
        "metrics": ("metric", _metrics),
        "rules": ("rule", _rules),
    }


def _registered(registry: Registry[Any]) -> Sentences:
    return {name: registry.about(name) for name in registry}


def _environments() -> Sentences:
    from transect.planning.environments import environment_folder, environment_names, environment_source

    def about(name: str) -> str:
        built = (environment_folder(name) / "transect-complete.json").is_file()
        pins = _pins((environment_source(name) / "requirements.txt").read_text(encoding="utf-8").splitlines())
        return f"{pins} packages, {'built' if built else 'not built yet'}"

    # Python of the driver and of the tests is made by `make`.
    return {name: about(name) for name in environment_names() if name not in ("driver", "test")}


def _pins(lines: Iterable[str]) -> int:
    return sum("==" in line.partition("#")[0] for line in lines)


def _metrics() -> Sentences:
    from transect.domain.metrics import METRICS

    return {name: one.description for name, one in METRICS.items()}


def _rules() -> Sentences:
    from transect.report.engine.parts import all_parts
    from transect.report.engine.rules import rules_of

    parts = all_parts()
    for problem in parts.problems:
        say(str(problem))
    return rules_of(parts)
