"""`transect fetch-data` against a publisher on loopback: licence, token, resuming, checksums, what is there already."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile

import pytest
import yaml

from data_server import publishing
from transect.domain.errors import BadInput
from transect.domain.files import free_bytes
from transect.domain.folder_manifest import check_manifest
from transect.domain.paths import ROOT
from transect.engine.fetch import download as downloading
from transect.engine.fetch import fetch as fetching
from transect.engine.fetch.definition import Definition, load_definition
from transect.engine.fetch.fetch import Wish, fetch
from transect.engine.fetch.known import Known

KEY = "tell-nobody-0123456789"
CONTENT = bytes(range(256)) * 4000
PIECE = downloading._PIECE


@pytest.fixture
def publisher():
    with publishing() as running:
        yield running


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(downloading, "PAUSE_S", 0.0)
    monkeypatch.delenv("SECRET_KEY", raising=False)
    return tmp_path / "settings" / "transect" / "fetched" / "some.json"


def zipped(**files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return made.getvalue()


def definition(files, **more):
    return {
        "title": "Some set",
        "home": "https://example.org/set",
        "licence": {"name": "Some 1.0", "terms": "be kind", "url": "https://example.org/licence"},
        "who": "anybody",
        "layout": "class-folders",
        "use": "folder: {folder}",
        "files": files,
        **more,
    }


TOKEN = {
    "where": "https://example.org/account",
    "ways": [
        {"kind": "basic", "variables": ["SECRET_NAME", "SECRET_KEY"]},
        {"kind": "bearer", "file": "~/token"},
        {"kind": "cookie", "variables": ["SECRET_COOKIE"]},
    ],
}


class Fetcher:
    def __init__(self, content, folder):
        self.definition = Definition.model_validate_json(json.dumps(content))
        self.to, self.said = folder / "data" / "some", []

    def __call__(self, accept=True, **wish):
        return fetch("some", self.definition, Wish(to=self.to, accept=accept, **wish), self.said.append, self.told)

    def told(self, what):
        return lambda done, total: None

    def files(self):
        return {str(path.relative_to(self.to)): path.read_bytes() for path in self.to.rglob("*") if path.is_file()}


@pytest.fixture
def fetcher(publisher, tmp_path):
    def make(content=CONTENT, file=(), more=(), **how):
        url = publisher.publish("a.bin", content, **how)
        return Fetcher(definition([{"name": "a.bin", "url": url, **dict(file)}], **dict(more)), tmp_path)

    return make


def test_the_licence_is_shown_and_asked_for_once_with_these_words(fetcher, publisher, settings):
    fetch_it = fetcher()
    with pytest.raises(BadInput) as refused:
        fetch_it(accept=False)
    said = str(refused.value)
    assert all(words in said for words in ("Some set", "Some 1.0", "be kind", "anybody", "--accept-licence"))
    assert publisher.asked == [] and not settings.exists()
    fetch_it()
    fetch_it.to = fetch_it.to.with_name("again")
    fetch_it(accept=False)
    other = fetch_it.definition.licence.model_copy(update={"terms": "be kinder"})
    fetch_it.definition = fetch_it.definition.model_copy(update={"licence": other})
    fetch_it.to = fetch_it.to.with_name("third")
    with pytest.raises(BadInput, match="be kinder"):
        fetch_it(accept=False)


def test_without_a_token_one_message_says_where_to_get_it(fetcher, publisher):
    with pytest.raises(BadInput) as refused:
        fetcher(more={"token": TOKEN})()
    said = str(refused.value)
    expected = ("https://example.org/account", "set SECRET_NAME and SECRET_KEY", "~/token", "--archives FOLDER")
    assert all(words in said for words in expected)
    assert publisher.asked == []


@pytest.mark.parametrize("by", ["variables", "file", "cookie"])
def test_a_token_goes_to_its_publisher_and_nowhere_else(by, fetcher, publisher, tmp_path, monkeypatch, capfd):
    header = "Authorization"
    if by == "variables":
        monkeypatch.setenv("SECRET_NAME", "somebody")
        monkeypatch.setenv("SECRET_KEY", KEY)
        value = f"Basic {base64.b64encode(f'somebody:{KEY}'.encode()).decode()}"
    elif by == "cookie":
        monkeypatch.setenv("SECRET_COOKIE", KEY)
        header, value = "Cookie", KEY
    else:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "token").write_text(f"{KEY}\n")
        (tmp_path / "home" / "token").chmod(0o600)
        value = f"Bearer {KEY}"
    with publishing() as bucket:
        signed = bucket.publish("bucket.bin", CONTENT, cuts=[PIECE + 1000])
        publisher.publish("a.bin", b"")
        fetch_it = fetcher(needs=(header, value), more={"token": TOKEN})
        publisher.files["/a.bin"].elsewhere = signed
        assert fetch_it() is True
        assert [headers.get(header.lower()) for _, headers in publisher.asked] == [value] * 2
        assert not any(KEY in sent or value in sent for _, headers in bucket.asked for sent in headers.values())
        assert bucket.ranges("bucket.bin") == [None, f"bytes={PIECE}-"]
    assert fetch_it.files() == {"a.bin": CONTENT}
    out = "".join([*capfd.readouterr(), *fetch_it.said])
    left = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "token"]
    assert KEY not in out and left and not any(KEY.encode() in content for content in left)


@pytest.mark.parametrize("token", ["schlüssel-0123", "two\nlines-0123"])
def test_a_token_that_no_header_can_hold_is_refused_without_showing_it(token, fetcher, publisher, monkeypatch):
    monkeypatch.setenv("SECRET_COOKIE", token)
    with pytest.raises(BadInput, match="SECRET_COOKIE: expected a token of one line, of ASCII characters") as refused:
        fetcher(more={"token": TOKEN})()
    assert "0123" not in str(refused.value) and publisher.asked == []


def test_a_token_that_others_can_read_is_refused(fetcher, publisher, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text(KEY)
    (tmp_path / "home" / "token").chmod(0o644)
    with pytest.raises(BadInput, match="mode 644: expected a token that only its owner can read") as refused:
        fetcher(more={"token": TOKEN})()
    assert KEY not in str(refused.value) and publisher.asked == []


def test_a_netrc_of_the_users_is_not_looked_into(fetcher, publisher, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".netrc").write_text(f"machine 127.0.0.1 login me password {KEY}\n")
    fetcher()()
    assert [headers.get("authorization") for _, headers in publisher.asked] == [None]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "refuses it .401.: the token is missing"),
        (403, "refuses it .403."),
        (404, "has it no more .404."),
        (451, "status 451"),
    ],
)
def test_what_a_server_refuses_is_one_message(status, words, fetcher, publisher, tmp_path):
    fetch_it = fetcher(refusals=[status])
    with pytest.raises(BadInput, match=words):
        fetch_it()
    assert len(publisher.asked) == 1 and not fetch_it.to.exists()


def test_an_address_without_https_is_not_followed(fetcher, publisher):
    fetch_it = fetcher(elsewhere="http://127.0.0.2:9/a.bin")
    with pytest.raises(BadInput, match=r"127\.0\.0\.1: leads to an address that does not begin with https://"):
        fetch_it()


def test_a_cut_connection_goes_on_where_it_ended(fetcher, publisher):
    fetch_it = fetcher(cuts=[PIECE + 1, 0, 1, 5 * PIECE, 1000])
    fetch_it()
    assert fetch_it.files() == {"a.bin": CONTENT}
    begins = [1, 1, 1, 6, 6]
    assert publisher.ranges("a.bin") == [None, *(f"bytes={at * PIECE}-" for at in begins)]
    tags = {headers.get("if-range") for _, headers in publisher.asked[1:]}
    assert tags == {publisher.files["/a.bin"].version}


def test_a_file_that_changes_meanwhile_begins_anew(fetcher, publisher):
    fetch_it = fetcher(cuts=[PIECE] + [0] * 9)
    with pytest.raises(BadInput, match=f"gave no more after {PIECE} bytes .*it goes on from there"):
        fetch_it()
    publisher.publish("a.bin", CONTENT[::-1])
    fetch_it()
    assert publisher.ranges("a.bin")[-1] == f"bytes={PIECE}-"
    assert fetch_it.files() == {"a.bin": CONTENT[::-1]}


@pytest.mark.parametrize("how", [{"ranges": False}, {"tag": None}, {"tag": 'W/"weak"'}], ids=str)
def test_a_server_without_ranges_or_versions_gives_the_whole_file(how, fetcher, publisher):
    fetch_it = fetcher(cuts=[2 * PIECE], **how)
    fetch_it()
    assert fetch_it.files() == {"a.bin": CONTENT}


def test_what_comes_without_a_size_needs_a_checksum(fetcher, publisher):
    with pytest.raises(BadInput, match="says no size and no checksum of it is known"):
        fetcher(unsized=True)()
    known = {"sha256": hashlib.sha256(CONTENT).hexdigest()}
    fetch_it = fetcher(file=known, unsized=True)
    fetch_it()
    assert fetch_it.files() == {"a.bin": CONTENT}
    fetch_it = fetcher(file=known, unsized=True, cuts=[PIECE])
    fetch_it.to = fetch_it.to.with_name("again")
    with pytest.raises(BadInput, match=r"its sha256 is .* what came was removed"):
        fetch_it()


def test_a_file_is_kept_as_its_server_has_it(fetcher, publisher):
    packed = gzip.compress(CONTENT)
    fetch_it = fetcher(packed, headers={"Content-Encoding": "gzip"}, cuts=[PIECE // 2])
    fetch_it()
    assert fetch_it.files() == {"a.bin": packed}


def test_a_server_that_begins_anew_each_time_is_given_up(fetcher, publisher):
    short, long = [PIECE], [2 * PIECE]
    fetch_it = fetcher(ranges=False, cuts=(short + long) * 20)
    with pytest.raises(BadInput, match=f"gave no more after {2 * PIECE} bytes"):
        fetch_it()
    assert len(publisher.asked) == 6


def test_a_busy_server_is_asked_again(fetcher, publisher):
    fetch_it = fetcher(refusals=[503, 429])
    fetch_it()
    assert len(publisher.asked) == 3 and fetch_it.files() == {"a.bin": CONTENT}


def test_a_connection_that_falls_silent_is_taken_up(fetcher, publisher, monkeypatch):
    monkeypatch.setattr(downloading, "_TIMEOUTS_S", (60, 2))
    fetch_it = fetcher(stalls_after=PIECE)
    fetch_it()
    assert publisher.ranges("a.bin") == [None, f"bytes={PIECE}-"] and fetch_it.files() == {"a.bin": CONTENT}


def test_a_wrong_checksum_leaves_nothing_behind(fetcher, publisher, tmp_path):
    for kind, wrong in (("md5", "0" * 32), ("sha256", "0" * 64)):
        fetch_it = fetcher(file={kind: wrong})
        with pytest.raises(BadInput, match=f"its {kind} is [0-9a-f]+, expected {wrong} as its publisher says"):
            fetch_it()
        assert not fetch_it.to.exists() and not list(tmp_path.rglob("a.bin*"))
    for size in (7, len(CONTENT) + 1):
        with pytest.raises(BadInput, match=f"has {len(CONTENT)} bytes, expected {size}"):
            fetcher(file={"bytes": size})()
    with pytest.raises(BadInput, match="more than the 7 bytes"):
        fetcher(file={"bytes": 7}, unsized=True)()
    right = {"md5": hashlib.md5(CONTENT).hexdigest(), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    fetch_it = fetcher(file=right | {"bytes": len(CONTENT)})
    fetch_it()
    assert any("sha256 as its publisher says" in line for line in fetch_it.said)


def test_without_a_checksum_the_first_fetch_counts_also_elsewhere(fetcher, publisher, settings):
    fetch_it = fetcher()
    fetch_it()
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert any("no checksum of its publisher's" in line and digest in line for line in fetch_it.said)
    assert json.loads(settings.read_text())["files"][f"{publisher.address}/a.bin"]["sha256"] == digest
    fetch_it.to = fetch_it.to.with_name("again")
    fetch_it()
    assert any("as at the first fetch" in line for line in fetch_it.said)
    publisher.publish("a.bin", CONTENT + b"more")
    fetch_it.to = fetch_it.to.with_name("third")
    with pytest.raises(BadInput, match=f"expected {digest} as the first fetch, of .* in .*some.json, says"):
        fetch_it()


def test_what_is_there_is_checked_and_not_fetched(fetcher, publisher):
    fetch_it = fetcher()
    assert fetch_it() is True
    asked = len(publisher.asked)
    left = fetch_it.to.with_name(".some.fetch")
    left.mkdir()
    (left / "a.bin.part").touch()
    assert fetch_it(accept=False) is False and not left.exists()
    assert len(publisher.asked) == asked and "as it was fetched" in fetch_it.said[-1]
    check_manifest(fetch_it.to, fetch_it.to.with_name("some.manifest"))
    (fetch_it.to / "a.bin").write_bytes(CONTENT[:-1])
    with pytest.raises(BadInput, match=r"1 truncated: a\.bin"):
        fetch_it()
    # Removed and fetched again, it is held to the manifest that stayed.
    (fetch_it.to / "a.bin").unlink()
    fetch_it.to.rmdir()
    assert fetch_it() is True and any("the same as" in line for line in fetch_it.said)


def test_a_folder_of_somebody_elses_stays_as_it_is(fetcher, publisher):
    fetch_it = fetcher()
    fetch_it.to.mkdir(parents=True)
    (fetch_it.to / "mine").touch()
    with pytest.raises(BadInput, match="is there already, without"):
        fetch_it()
    assert publisher.asked == [] and set(fetch_it.files()) == {"mine"}


def test_room_is_looked_for_before_anything_is_fetched(fetcher, publisher, tmp_path):
    free = free_bytes(tmp_path)
    with pytest.raises(BadInput, match=r"bytes free, expected .* to fetch and unpack"):
        fetcher(file={"bytes": 2 * free})()
    with pytest.raises(BadInput, match=r"bytes free, expected .* to fetch and unpack"):
        fetcher(file={"into": ".", "most_bytes": 2 * free})()
    assert publisher.asked == []


def test_room_is_looked_for_when_the_server_says_the_size(fetcher, publisher, monkeypatch):
    monkeypatch.setattr(downloading, "free_bytes", lambda folder: len(CONTENT) - 1)
    with pytest.raises(BadInput, match=f"has {len(CONTENT) - 1} bytes free, expected {len(CONTENT)}"):
        fetcher()()


def test_two_who_fetch_the_same_do_not_mix(fetcher, publisher, monkeypatch):
    fetch_it = fetcher()

    def meanwhile(*given):
        with pytest.raises(BadInput, match="is being fetched by process"):
            fetch_it()
        return checked(*given)

    checked = fetching._check_room
    monkeypatch.setattr(fetching, "_check_room", meanwhile)
    assert fetch_it() is True and len(publisher.asked) == 1


def test_archives_are_unpacked_and_held_to_what_they_hold(fetcher, publisher):
    inner = hashlib.sha256(b"first").hexdigest()
    archive = zipped(sea__1_jpg=b"first", land__2_jpg=b"second")
    file = {"into": "pictures", "most_bytes": 100, "holds": {"sea/1_jpg": inner}}
    fetch_it = fetcher(archive, file)
    fetch_it()
    assert fetch_it.files() == {"pictures/sea/1_jpg": b"first", "pictures/land/2_jpg": b"second"}
    assert not fetch_it.to.with_name(".some.fetch").exists()
    publisher.publish("b.bin", zipped(sea__1_jpg=b"other"))
    changed = fetch_it.definition.files[0].model_copy(update={"url": f"{publisher.address}/b.bin"})
    fetch_it.definition = fetch_it.definition.model_copy(update={"files": (changed,)})
    fetch_it.to = fetch_it.to.with_name("again")
    with pytest.raises(BadInput, match=f"sea/1_jpg of a.bin: its sha256 is .* expected {inner}"):
        fetch_it()


def test_two_who_fetch_at_once_keep_what_both_found(settings):
    first, second = Known("some"), Known("some")
    for known, name in ((first, "a"), (second, "b")):
        known.note(name, downloading.Got(bytes=1, sha256=name * 64))
        known.save()
    second.note("a", downloading.Got(bytes=1, sha256="0" * 64))
    second.save()
    kept = {name: facts["sha256"][0] for name, facts in json.loads(settings.read_text())["files"].items()}
    assert kept == {"a": "a", "b": "b"}
    for broken in ("[]", '{"files": null, "licences": {}}', "{"):
        settings.write_text(broken)
        with pytest.raises(BadInput, match=r"some\.json: cannot be read"):
            Known("some")


def test_what_cannot_be_unpacked_is_no_first_fetch(fetcher, publisher, settings):
    fetch_it = fetcher(b"<html>please log in</html>", {"into": ".", "most_bytes": 100})
    with pytest.raises(BadInput, match=r"a\.bin: no whole zip or tar file"):
        fetch_it()
    assert json.loads(settings.read_text())["files"] == {}
    publisher.publish("a.bin", zipped(sea__1_jpg=b"first"))
    fetch_it()
    assert fetch_it.files() == {"sea/1_jpg": b"first"} and len(json.loads(settings.read_text())["files"]) == 1


def test_files_fetched_by_hand_need_no_token_and_stay(fetcher, publisher, tmp_path):
    hand = tmp_path / "hand"
    hand.mkdir()
    more = {"token": TOKEN}
    fetch_it = fetcher(file={"md5": hashlib.md5(CONTENT).hexdigest()}, more=more)
    with pytest.raises(BadInput, match="no token of yours"):
        fetch_it(archives=hand)
    (hand / "a.bin").write_bytes(CONTENT[1:])
    with pytest.raises(BadInput, match=f"{hand}/a.bin: its md5 is"):
        fetch_it(archives=hand)
    (hand / "a.bin").write_bytes(CONTENT)
    assert fetch_it(archives=hand) is True
    (hand / "a.bin").write_bytes(b"his own again")
    assert publisher.asked == [] and fetch_it.files() == {"a.bin": CONTENT}
    with pytest.raises(BadInput, match="no such folder"):
        fetch_it(archives=tmp_path / "none")


def started(tmp_path, *arguments, **more):
    environment = os.environ | {"SECRET_NAME": "somebody", "SECRET_KEY": KEY, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "transect", "fetch-data", *map(str, arguments)]
    return subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, stdout=-1, stderr=-1, **more)


@pytest.mark.env
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_killed_midway_the_command_goes_on(end, publisher, tmp_path):
    needs = ("Authorization", f"Basic {base64.b64encode(f'somebody:{KEY}'.encode()).decode()}")
    archive = zipped(sea__1_jpg=b"\7" * 4_000_000)
    url = publisher.publish("a.zip", archive, needs=needs, stalls_after=3_000_000)
    file = {"name": "a.zip", "url": url, "into": ".", "most_bytes": 5_000_000}
    path = tmp_path / "some.yaml"
    path.write_text(yaml.safe_dump(definition([file], token=TOKEN)))
    first = started(tmp_path, path, "--accept-licence")
    assert publisher.waits.wait(60)
    part = tmp_path / "data" / ".some.fetch" / "files" / "a.zip.part"
    until = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size) and time.monotonic() < until:
        time.sleep(0.01)
    first.send_signal(end)
    out, err = first.communicate(timeout=60)
    publisher.released.set()
    assert first.returncode != 0 and "Traceback" not in err and not (tmp_path / "data" / "some").exists()
    second = started(tmp_path, path)
    more_out, more_err = second.communicate(timeout=60)
    assert second.returncode == 0, more_err
    assert KEY not in out + err + more_out + more_err
    begun = int(publisher.ranges("a.zip")[1].removeprefix("bytes=").removesuffix("-"))
    assert 0 < begun <= 3_000_000
    assert (tmp_path / "data" / "some" / "sea" / "1_jpg").stat().st_size == 4_000_000
    third = started(tmp_path, path, "--json")
    facts = json.loads(third.communicate(timeout=60)[0])
    assert facts["fetched"] is False and facts["files"] == 1 and facts["use"] == f"folder: {tmp_path}/data/some"


LABELS = "ImageID,Source,LabelName,Confidence\n"
IDS = [f"{number:016x}" for number in range(8)]


@pytest.fixture
def images(publisher, tmp_path):
    rows = [
        (IDS[0], "verification", "/m/cat", 1),
        (IDS[1], "verification", "/m/dog", 1),
        (IDS[2], "verification", "/m/cat", 1),
        (IDS[2], "crowdsource-verification", "/m/dog", 1),  # both: for neither
        (IDS[3], "verification", "/m/cat", 0),  # not there, as a person says
        (IDS[4], "verification", "/m/cat", 1),
        (IDS[4], "crowdsource-verification", "/m/cat", 1),
        (IDS[5], "verification", "/m/dog", 1),
        (IDS[6], "verification", "/m/dog", 1),
        (IDS[7], "machine", "/m/cat", 0.9),
    ]
    labels = LABELS + "".join(",".join(map(str, row)) + "\n" for row in rows)
    files = [
        {"name": "labels.csv", "url": publisher.publish("labels.csv", labels.encode())},
        {
            "name": "names.csv",
            "url": publisher.publish("names.csv", b"LabelName,DisplayName\n/m/cat,Cat\n/m/dog,Dog\n"),
        },
    ]
    for number in IDS:
        publisher.publish(f"validation/{number}.jpg", number.encode())
    part = {
        "url": f"{publisher.address}/{{subset}}/{{id}}.jpg",
        "labels": {"validation": "labels.csv"},
        "names": "names.csv",
        "subset": "validation",
        "classes": ["Cat", "Dog"],
        "per_class": 2,
    }
    return Fetcher(definition(files, slice=part), tmp_path)


def of(*numbers):
    return {f"validation/{IDS[number]}.jpg" for number in numbers} | {"labels.csv", "names.csv"}


def test_a_slice_has_the_first_images_of_each_class(images, publisher):
    images()
    assert set(images.files()) == of(0, 4, 1, 5)
    with pytest.raises(BadInput, match="is there already: move it away, or fetch these images into another folder"):
        images(per_class=3)
    images.to = images.to.with_name("more")
    with pytest.raises(BadInput, match="validation has 2 images that show Cat and no other of the classes, expected 3"):
        images(per_class=3)
    with pytest.raises(BadInput, match="unknown class 'Cow'"):
        images(classes=["Cow", "Dog"])
    # An image that changed since the first fetch is told.
    publisher.publish(f"validation/{IDS[5]}.jpg", b"another")
    with pytest.raises(BadInput, match=f"{IDS[5]}.jpg: its sha256 is .* as the first fetch"):
        images()


def test_images_that_are_there_no_more(images, publisher, tmp_path):
    """Others of their classes come instead; what was asked for by name, or was there once, is missed."""
    (tmp_path / "ids.txt").write_text(f"validation/{IDS[3]}\nvalidation/{IDS[1]}\n")
    del publisher.files[f"/validation/{IDS[1]}.jpg"]
    images()
    assert set(images.files()) == of(0, 4, 5, 6)
    assert f"there no more, so others of their classes came instead: validation/{IDS[1]}" in images.said
    images.to = images.to.with_name("listed")
    with pytest.raises(BadInput, match=f"1 of 2 images are there no more, such as validation/{IDS[1]}"):
        images(ids=tmp_path / "ids.txt")
    del publisher.files[f"/validation/{IDS[0]}.jpg"]
    images.to = images.to.with_name("again")
    with pytest.raises(BadInput, match=rf"{IDS[0]}.jpg: .* has it no more \(404\)"):
        images()


def test_tables_of_a_slice_that_are_none_are_told(images, publisher):
    names = "LabelName,DisplayName\n/m/cat,Cat\n/m/dog,Dog\n/m/dog2,Dog\n"
    publisher.publish("names.csv", names.encode())
    with pytest.raises(BadInput, match=r"names.csv: unknown class 'Dog': did you mean Dog /m/dog"):
        images()
    publisher.publish("labels.csv", b"<html>please log in</html>")
    images.to = images.to.with_name("other")
    with pytest.raises(BadInput, match=r"labels.csv: no labels of whole images: expected the columns ImageID, "):
        images(classes=["Cat", "Dog /m/dog"])


def test_a_slice_may_be_a_list(images, publisher, tmp_path):
    ids = tmp_path / "ids.txt"
    ids.write_text(f"validation/{IDS[7]}\nvalidation/{IDS[3]}.jpg\n\n")
    images(ids=ids)
    assert set(images.files()) == of(3, 7)
    images.to = images.to.with_name("other")
    with pytest.raises(BadInput, match="expected --ids, or --classes and --per-class, not both"):
        images(ids=ids, classes=["Cat", "Dog"])
    for wrong, words in (("train/" + IDS[0], "line 1: expected SUBSET/ID with validation"), ("", "no images in it")):
        ids.write_text(wrong)
        with pytest.raises(BadInput, match=words):
            images(ids=ids)
    ids.write_text("validation/" + "f" * 16)
    with pytest.raises(BadInput, match="1 of 1 images are there no more, such as validation/ffff"):
        images(ids=ids)


def test_a_set_that_is_fetched_whole_has_no_slices(fetcher):
    with pytest.raises(BadInput, match="is fetched whole"):
        fetcher()(per_class=3)


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "datasets").glob("*.yaml")), ids=lambda path: path.stem)
def test_definitions_that_ship_can_be_read(path):
    name, shipped = load_definition(path.stem)
    assert name == path.stem and "{folder}" in shipped.use
    named = {file.name for file in shipped.files}
    assert shipped.slice is None or {shipped.slice.names, *shipped.slice.labels.values()} <= named


def test_the_definition_of_the_page_can_be_copied(tmp_path):
    (example,) = re.findall(r"```yaml\n(title: .*?)```", (ROOT / "docs" / "data.md").read_text(), re.DOTALL)
    (tmp_path / "microscope.yaml").write_text(example)
    name, mine = load_definition(str(tmp_path / "microscope.yaml"))
    assert name == "microscope" and [way.kind for way in mine.token.ways] == ["bearer", "bearer"]


WRONG = {
    "http": ({"files": [{"name": "a", "url": "http://example.org/a"}]}, "begins with https://"),
    "a path": ({"files": [{"name": "../a", "url": "https://example.org/a"}]}, "without a folder"),
    "no bound": ({"files": [{"name": "a", "url": "https://example.org/a", "into": "."}]}, "most_bytes"),
    "out of it": (
        {"files": [{"name": "a", "url": "https://example.org/a", "into": "../b", "most_bytes": 1}]},
        "below that",
    ),
    "twice": ({"files": [{"name": "a", "url": f"https://example.org/{n}"} for n in "ab"]}, "found twice: a"),
    "half a token": (
        {"token": {"where": "there", "ways": [{"kind": "basic", "variables": ["A"]}]}},
        "a name and a key",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_definition_that_is_wrong_is_refused(what, tmp_path):
    changed, words = WRONG[what]
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(definition([{"name": "a", "url": "https://example.org/a"}]) | changed))
    with pytest.raises(BadInput, match=words):
        load_definition(str(path))
