"""`transect manifest` and `transect fetch-data` as they are called."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        (tmp_path / "set" / str(number)).mkdir(parents=True)
        (tmp_path / "set" / str(number) / "a.jpg").write_bytes(bytes(number))
    return tmp_path / "set"


def test_a_manifest_is_written_once_and_checked(transect, folder):
    code, out, err = transect("manifest", "set", "--json")
    made = json.loads(out)
    assert code == 0 and (made["files"], made["bytes"]) == (3, 3) and made["manifest"] == f"{folder}.manifest", err
    code, _, err = transect("manifest", "set")
    assert code == 2 and "is there already: check the folder with --check" in err
    code, out, _ = transect("manifest", "set", "--check", "set.manifest")
    assert code == 0 and made["sha256"] in out
    assert json.loads(transect("manifest", "set/1/..", "--out", "b", "--json")[1])["sha256"] == made["sha256"]
    code, _, err = transect("manifest", "set/1/..")
    assert code == 2 and f"{folder}.manifest: is there already" in err
    (folder / "1" / "a.jpg").unlink()
    code, out, err = transect("manifest", "set", "--check", "set.manifest")
    assert code == 1 and "1 missing: 1/a.jpg" in err and "Traceback" not in err
    for wrong, words in ((("none",), "none: No such file"), (("set", "--check", "none"), "no readable manifest")):
        code, _, err = transect("manifest", *wrong)
        assert code == 2 and words in err and "Traceback" not in err
    code, _, err = transect("manifest", "set", "--check", "a", "--out", "b")
    assert code == 2 and "expected --out or --check" in err


def test_sets_are_listed_and_refusals_have_their_code(transect, folder):
    code, out, _ = transect("fetch-data", "--list", "--json")
    assert code == 0 and {"imagenet", "intel-scenes", "openimages"} <= set(json.loads(out))
    for arguments, words in (
        ((), "`transect fetch-data --list` has them"),
        (("imagnet",), "did you mean 'imagenet'"),
        (("imagenet",), "--accept-licence"),
        (("imagenet", "--per-class", "3"), "is fetched whole"),
    ):
        code, out, err = transect("fetch-data", *arguments)
        assert code == 2 and words in err and out == "" and "Traceback" not in err
    assert not (folder.parent / "data").exists() and not (folder.parent / "settings").exists()


def test_a_definition_of_ones_own_is_found_by_name(transect, folder):
    own = folder.parent / "config" / "datasets" / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("# My own set.\ntitle: Mine\nhome: https://example.org\n")
    assert json.loads(transect("fetch-data", "--list", "--json")[1])["mine"] == "My own set."
    code, _, err = transect("fetch-data", "mine")
    assert code == 2 and "mine.yaml: key 'licence' is missing" in err
