"""Session configuration entries of a study: what ONNX Runtime would take in silence is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from checkouts import environment_python
from transect.domain.errors import BadInput
from transect.runtimes.options import CONFIG_KEYS, CONFIG_KEYS_VERSION, check_options

HEADER = "onnxruntime_session_options_config_keys.h"
KEY = re.compile(r'\bconst\s+char\s*\*\s*const\s+\w+\s*=\s*"([^"]+)"')


@pytest.mark.env
def test_the_names_are_those_of_the_pinned_header(tmp_path: Path) -> None:
    python = Path(environment_python("onnxruntime-headers", tmp_path))
    include = python.parents[1] / "include"
    text = (include / HEADER).read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
    assert sorted(KEY.findall(lines)) == list(CONFIG_KEYS)
    # Nothing is declared in a form that the pattern does not know.
    assert len(KEY.findall(lines)) == len(re.findall(r"^\s*static const", lines, re.MULTILINE))
    version = CONFIG_KEYS_VERSION.split(".")[1]
    api = (include / "onnxruntime_c_api.h").read_text(encoding="utf-8")
    assert f"#define ORT_API_VERSION {version}\n" in api


def test_names_from_the_header_and_of_providers_pass() -> None:
    taken = {name: "1" for name in CONFIG_KEYS if "_num_threads" not in name}
    for name in ("enable_cpu_mem_arena", "enable_mem_pattern", "graph_optimization_level", "execution_mode"):
        del taken[f"session.{name}"]
    taken["ep.webgpuexecutionprovider.preferredLayout"] = "NHWC"
    check_options({"mine": taken}, "f: infer.options")


@pytest.mark.parametrize("value", ["0", None, 3])
@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("session.intra_op.allow_spining", "session.intra_op.allow_spinning"),
        ("sesion.disable_prepacking", "session.disable_prepacking"),
        ("session.Intra_op.allow_spinning", "session.intra_op.allow_spinning"),
        ("ep.context_enabled", "ep.context_enable"),
        ("intra_op_num_thread", "intra_op_num_threads"),
        ("enable_memory_pattern", "enable_mem_pattern"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest_one(key: str, near: str, value: object) -> None:
    """Whatever its value: null would leave unset what nobody sets."""
    with pytest.raises(BadInput) as caught:
        check_options({"mine": {key: value}}, "f: infer.options")
    message = str(caught.value)
    assert message.startswith(f"f: infer.options.mine: unknown session option '{key}': ")
    assert f"did you mean '{near}'?" in message and f"ONNX Runtime {CONFIG_KEYS_VERSION}" in message


def test_an_entry_that_an_option_sets_as_well_is_refused() -> None:
    """Threads of a cell would not be those that the study says."""
    with pytest.raises(BadInput, match=r"'session\.intra_op_num_threads', expected 'intra_op_num_t"):
        check_options({"mine": {"session.intra_op_num_threads": "4"}}, "f: infer.options")
