"""Image folders: what is read, what is left out, and the same pixels on every path."""

from __future__ import annotations

import json
import subprocess
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import ROOT
from transect.domain.errors import BadInput
from transect.training.costs import parameter_count
from transect.training.datasets import DATASETS, StoredDataset
from transect.training.images import FileReader, Images
from transect.training.layers import Conv2d, Residual, shapes, walk
from transect.training.workloads import WORKLOADS
from transect.training.workloads._resnet import resnet_cifar

# Pillow is in the training environments only, so these parts run there. `answer` is printed.
PRELUDE = """
import json, os, struct, sys, threading, zlib
from pathlib import Path
import numpy as np
from PIL import Image
from transect.domain.errors import BadInput
from transect.training.images import FileReader
from transect.training.inputs import load_arrays
from transect.stages.data.worker import prepare

out = Path(sys.argv[1])
root = out / "pictures"

def noise(*shape):
    return np.random.default_rng(shape).integers(0, 256, shape, np.uint8)

def folder(classes=6, images=8, size=40, suffix="png"):
    for label in range(classes):
        home = root / f"class-{label}"
        home.mkdir(parents=True)
        for number in range(images):
            picture = noise(size, size + number, 3) // 2 + 20 * label
            Image.fromarray(picture.astype(np.uint8)).save(home / f"{number}.{suffix}")
    return root

def prepared(name="data", **options):
    spec = {"workload": "images-resnet20", "seed": 3, "repeats": 1,
            "parameters": {"batch": 8, "epochs": 1, "dataset_options": options}}
    return prepare(spec, out / name)

def refused(make):
    try:
        make()
    except BadInput as error:
        return str(error)
    return "nothing was raised"
"""

HOSTILE = """
folder()
home = root / "class-2"
good = (root / "class-1" / "0.png").read_bytes()
Image.fromarray(noise(200, 200, 3)).save(out / "large.jpg", quality=90)
jpeg = (out / "large.jpg").read_bytes()

def header_only(width, height):
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    return b"\\x89PNG\\r\\n\\x1a\\n" + chunk + good[33:]

(home / "empty.jpg").write_bytes(b"")
(home / "truncated.jpg").write_bytes(jpeg[: len(jpeg) // 2])
(home / "truncated.png").write_bytes(good[: len(good) // 2])
(home / "text.jpg").write_text("no image at all")
(home / "bomb.png").write_bytes(header_only(60000, 60000))
(home / "smaller-bomb.png").write_bytes(header_only(12000, 12000))
(home / "no-pixels.png").write_bytes(header_only(0, 10))
(home / "folder.jpg").mkdir()
(home / "inner").mkdir()
(home / "notes.txt").write_text("by hand")
(home / ".hidden.jpg").write_bytes(b"")
(root / ".git").mkdir()
(root / "readme.md").write_text("")
(home / "itself.jpg").symlink_to("itself.jpg")
(home / "nowhere.jpg").symlink_to("gone.jpg")
(home / "circle").symlink_to("..")
(root / "circle").symlink_to("circle")
os.mkfifo(home / "pipe.jpg")
Image.fromarray(noise(20, 20)).convert("P").save(home / "palette.jpg", format="GIF")
if os.geteuid():
    (home / "secret.jpg").write_bytes(jpeg)
    (home / "secret.jpg").chmod(0)

deep = np.full((20, 30), 0x8040, np.uint16)
Image.fromarray(deep).save(home / "deep.png")
Image.fromarray(noise(20, 20, 4)).save(home / "alpha.png")
Image.fromarray(noise(20, 20, 3)).convert("P").save(home / "palette.png")
Image.fromarray(noise(90, 50)).save(home / "GREY.JPEG", format="JPEG")
Image.fromarray(noise(90, 50, 3)).convert("CMYK").save(home / "print.jpg")
Image.fromarray(noise(20, 20, 3)).save(os.fsencode(home) + b"/\\xff\\xfe.png", format="PNG")
(home / "link.png").symlink_to("../class-1/0.png")

manifest = prepared(folder=str(root))
table = json.loads((out / "data" / "files.json").read_text())
rows = {part: np.load(out / "data" / f"{part}.npy") for part in ("x_train", "x_test")}
for part, x in rows.items():
    for row, entry in zip(x, table[part[2:]], strict=True):
        if entry["file"].endswith("deep.png"):
            grey = sorted(set(row.ravel().tolist()))
reader = FileReader(out / "data", np.float32, 2)
some = list(reader.read([np.arange(len(rows["x_train"]))]))[0]
reader.close()
answer = {"manifest": manifest, "table": table, "root": os.geteuid() == 0, "grey": grey,
          "same": bool((some == load_arrays(out / "data", np.float32)["x_train"][:]).all())}
"""

LEFT_OUT = {
    "class-2/empty.jpg": "empty",
    "class-2/truncated.jpg": "damaged",
    "class-2/truncated.png": "damaged",
    "class-2/text.jpg": "neither a JPEG nor a PNG",
    "class-2/bomb.png": "decompression bomb",
    "class-2/smaller-bomb.png": "12000 x 12000 pixels, more than",
    "class-2/no-pixels.png": "",
    "class-2/folder.jpg": "a folder, not a file",
    "class-2/inner": "a folder inside a class folder",
    "class-2/circle": "a folder inside a class folder",
    "class-2/notes.txt": "not named .jpg",
    "class-2/itself.jpg": "symbolic links",
    "class-2/nowhere.jpg": "No such file",
    "class-2/pipe.jpg": "not a regular file",
    "class-2/palette.jpg": "neither a JPEG nor a PNG",
    "readme.md": "beside the class folders",
    "circle": "beside the class folders",
}
USED = {
    "deep.png",
    "alpha.png",
    "palette.png",
    "GREY.JPEG",
    "print.jpg",
    "link.png",
    "\udcff\udcfe.png",
}


def run(python: str, folder: Path, code: str) -> Any:
    """Run code after PRELUDE with another interpreter; return its `answer`."""
    done = subprocess.run(
        [python, "-W", "error::DeprecationWarning", "-c", f"{PRELUDE}{code}\nprint(json.dumps(answer))", folder],
        env={"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_hostile_folder_is_read_and_what_is_left_out_is_listed(base_python, tmp_path):
    answer = run(base_python, tmp_path, HOSTILE)
    manifest, table = answer["manifest"], answer["table"]
    reasons = {one["file"]: one["reason"] for one in table["left_out"]}
    expected = LEFT_OUT | ({} if answer["root"] else {"class-2/secret.jpg": "Permission denied"})
    assert reasons.keys() == expected.keys()
    for file, words in expected.items():
        assert words in reasons[file], (file, reasons[file])
    assert manifest["left_out_count"] == len(expected)
    assert manifest["left_out"] == table["left_out"][:20]
    assert manifest["hidden_count"] == 2
    entries = table["train"] + table["test"]
    used = {one["file"].removeprefix("class-2/") for one in entries if one["label"] == 2}
    assert used == USED | {f"{number}.png" for number in range(8)}
    assert manifest["files_used"] == len(entries) == 6 * 8 + len(USED)
    # 16 bits are scaled, not clipped.
    assert answer["grey"] == [0x80]
    assert answer["same"]


def test_manifest_tells_files_apart_and_repeats_exactly(base_python, tmp_path):
    answer = run(
        base_python,
        tmp_path,
        """
folder()
first, again = prepared("a", folder=str(root)), prepared("b", folder=str(root))
changed = root / "class-3" / "5.png"
Image.fromarray(noise(9, 9, 3)).save(changed)
other = prepared("c", folder=str(root))
import hashlib
table = json.loads((out / "a" / "files.json").read_text())
entry = [e for e in table["train"] + table["test"] if e["file"] == "class-4/7.png"][0]
raw = (root / "class-4" / "7.png").read_bytes()
answer = {"equal": first == again, "digests": [first["source_sha256"], other["source_sha256"]],
          "arrays": [first["files"][n] == other["files"][n] for n in ("x_train.npy", "x_test.npy")],
          "entry": [entry["sha256"] == hashlib.sha256(raw).hexdigest(), entry["bytes"] == len(raw)],
          "generated": first["generated"], "size": len(json.dumps(first))}
""",
    )
    assert answer["equal"] and answer["entry"] == [True, True]
    assert answer["digests"][0] != answer["digests"][1]
    assert not all(answer["arrays"])
    assert answer["generated"] is False and answer["size"] < 10_000


def test_generated_images_are_files_read_like_any_others(base_python, tmp_path):
    answer = run(
        base_python,
        tmp_path,
        """
manifest, again = prepared("a", generate=8), prepared("b", generate=8)
more = prepared("c", generate=9, per_class=8)
files = sorted((out / "a" / "images").rglob("*.jpg"))
with Image.open(files[0]) as image:
    facts = [image.size, image.format]
with np.load(out / "a" / "data.npz") as data:
    arrays = {name: data[name] for name in data.files}
x = np.load(out / "a" / "x_train.npy")
scaled = x.astype(np.float64) / 255
normal = load_arrays(out / "a")["x_train"][:]
answer = {"manifest": manifest, "count": len(files), "facts": facts, "names": sorted(arrays),
          "same": manifest == again, "prefix": more["source_sha256"] == manifest["source_sha256"],
          "dtype": [str(x.dtype), list(x.shape)], "left": [p.name for p in (out / "a").iterdir()],
          "mean": float(np.abs(scaled.mean(axis=(0, 2, 3)) - arrays["mean"]).max()),
          "deviation": float(np.abs(scaled.std(axis=(0, 2, 3)) - arrays["deviation"]).max()),
          "normal": [float(normal.mean()), float(normal.std())]}
""",
    )
    assert answer["manifest"]["generated"] is True
    assert answer["count"] == 48 and answer["facts"] == [[150, 150], "JPEG"]
    assert answer["names"] == ["deviation", "mean", "y_test", "y_train"]
    # A larger number adds images and changes none.
    assert answer["same"] and answer["prefix"]
    assert answer["dtype"] == ["uint8", [36, 3, 32, 32]]
    assert max(answer["mean"], answer["deviation"]) < 1e-12
    assert answer["normal"] == pytest.approx([0, 1], abs=1e-9)
    assert sorted(answer["left"]) == [
        "data.npz", "files.json", "images", "start-0.npz", "x_test.npy", "x_train.npy",
    ]  # fmt: skip


def test_file_reader_gives_the_stored_pixels_bit_for_bit(base_python, tmp_path):
    answer = run(
        base_python,
        tmp_path,
        """
folder(suffix="jpg", size=160)
prepared(folder=str(root))
answer = {"equal": [], "ahead": []}
for dtype in (np.float32, np.float64):
    stored = load_arrays(out / "data", dtype)["x_train"]
    order = np.random.default_rng(1).permutation(len(stored))[:35]
    steps = [order[i : i + 5] for i in range(0, 35, 5)]
    reader = FileReader(out / "data", dtype, 3)
    decoded, plain = [], reader._decode
    reader._decode = lambda number, row: (decoded.append(number), plain(number, row))
    for number, (pixels, step) in enumerate(zip(reader.read(steps), steps, strict=True)):
        expected = stored[step]
        answer["equal"].append(pixels.dtype == dtype and pixels.tobytes() == expected.tobytes())
        answer["ahead"].append(len(decoded) <= 5 * (number + 2))
    answer["ahead"].append(sorted(decoded) == sorted(order.tolist()))
    reader.close()
    reader.close()
answer["threads"] = [t.name for t in threading.enumerate() if "decode" in t.name]
""",
    )
    assert len(answer["equal"]) == 14 and all(answer["equal"])
    assert all(answer["ahead"])
    assert answer["threads"] == []


def test_file_reader_names_what_has_gone_or_changed(base_python, tmp_path):
    answer = run(
        base_python,
        tmp_path,
        """
folder()
prepared(folder=str(root))
table = json.loads((out / "data" / "files.json").read_text())["train"]
steps = [np.arange(i, i + 8) for i in range(0, 32, 8)]
gone, changed = root / table[20]["file"], root / table[9]["file"]

def read():
    reader = FileReader(out / "data", np.float32, 2)
    try:
        return list(reader.read(steps))
    finally:
        reader.close()

gone.rename(out / "kept")
answer = {"gone": [str(gone), refused(read)]}
(out / "kept").rename(gone)
Image.fromarray(noise(9, 9, 3)).save(changed)
answer["changed"] = [str(changed), refused(read)]
table[0], table[1] = table[1], table[0]
whole = json.loads((out / "data" / "files.json").read_text())
(out / "data" / "files.json").write_text(json.dumps(whole | {"train": table}))
answer["decoder"] = [str(root / table[0]["file"]), refused(read)]
answer["threads"] = [t.name for t in threading.enumerate() if "decode" in t.name]
""",
    )
    for case, words in (
        ("gone", "No such file"),
        ("changed", "its content is another"),
        ("decoder", "pin one version"),
    ):
        path, message = answer[case]
        assert path in message and words in message, answer[case]
    assert answer["threads"] == []


def test_file_reader_without_files_says_so(tmp_path):
    with pytest.raises(BadInput, match=r"needs a dataset of image files.*no files\.json"):
        FileReader(tmp_path, np.float32, 1)


FOLDERS = {
    "no folder": ("prepared(folder=str(root / 'none'))", "none: No such file"),
    "a file": ("prepared(folder=str(root / 'class-0' / '0.png'))", "0.png: Not a directory"),
    "no classes": ("prepared(folder=str(root / 'class-0'))", "0 class folders, at least 2"),
    "a level too high": (
        "prepared(folder=str(out / 'upper'))",
        "upper: class 'test' has 0 usable images, at least 2 are needed; test/sea: a folder inside",
    ),
    "another number of classes": ("prepared(classes=5, generate=4)", "6,) outputs for 5 classes"),
    "too few": ("prepared(generate=2)", "batch 8 exceeds the 6 training samples"),
    "one usable image": (
        "[p.write_text('') for p in (root / 'class-3').iterdir() if p.name > '0.png']"
        " and prepared(folder=str(root))",
        "pictures: class 'class-3' has 1 usable images, at least 2 are needed; class-3/1.png: empty",
    ),
}


def test_folder_that_cannot_be_used_is_refused_with_its_name(base_python, tmp_path):
    for part in ("test", "train"):
        (tmp_path / "upper" / part / "sea").mkdir(parents=True)
    code = "folder()\nanswer = {}\n" + "".join(
        f"answer[{name!r}] = refused(lambda: {call})\n" for name, (call, _) in FOLDERS.items()
    )
    answer = run(base_python, tmp_path, code)
    for name, (_, words) in FOLDERS.items():
        assert words in answer[name], (name, answer[name])


def test_memory_does_not_grow_with_the_number_of_files(base_python, tmp_path):
    code = """
import resource
from transect.training.datasets.images import ImageFolder
for label in range(2):
    home = root / f"class-{label}"
    home.mkdir(parents=True)
    Image.fromarray(noise(240, 240, 3) // 2 + 50 * label).save(home / "0.jpg")

def peak(name):
    divide = lambda shape, y, classes: (np.flatnonzero(y >= 0)[::2], np.flatnonzero(y >= 0)[1::2])
    ImageFolder().store({"folder": str(root)}, (3, 224, 224), divide, out / name)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

for number in range(1, 40):
    [os.link(root / f"class-{label}" / "0.jpg", root / f"class-{label}" / f"{number}.jpg") for label in (0, 1)]
few = peak("few")
for number in range(40, 600):
    [os.link(root / f"class-{label}" / "0.jpg", root / f"class-{label}" / f"{number}.jpg") for label in (0, 1)]
answer = {"few": few, "many": peak("many"), "bytes": (out / "many" / "x_train.npy").stat().st_size}
"""
    answer = run(base_python, tmp_path, code)
    assert answer["bytes"] > 85e6
    assert answer["many"] - answer["few"] < 20e6


def test_images_are_read_from_the_disk_only_where_asked(tmp_path):
    stored = np.random.default_rng(0).integers(0, 256, (50, 3, 4, 4), np.uint8)
    np.save(tmp_path / "x.npy", stored)
    mean, deviation = np.array([0.4, 0.5, 0.6]), np.array([0.1, 0.2, 0.3])
    images = Images(np.load(tmp_path / "x.npy", mmap_mode="r"), mean, deviation, np.float64)
    some = images[np.array([3, 49, 3])]
    channels = (slice(None), None, None)
    expected = (stored[[3, 49, 3]] / 255 - mean[channels]) / deviation[channels]
    assert len(images) == 50 and images.shape == stored.shape
    assert isinstance(some, np.ndarray) and not isinstance(some, np.memmap)
    np.testing.assert_allclose(some, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"foldr": "x"}, "dataset_options.foldr"),
        ({"folder": 3}, "dataset_options.folder"),
        ({"per_class": 1}, "dataset_options.per_class"),
        ({"generate": "many"}, "dataset_options.generate"),
        ({"generate": 1.5}, "dataset_options.generate"),
        ({"classes": 1}, "dataset_options.classes"),
        ({"size": 0}, "dataset_options.size"),
        ({"size": 64}, "takes images of 32 x 32 pixels, given 64"),
    ],
)
def test_wrong_option_is_named(options, words):
    dataset = DATASETS.get("images")
    assert isinstance(dataset, StoredDataset)
    with pytest.raises(BadInput, match=words):
        dataset.check(options, (3, 32, 32))
    dataset.check({"size": 32, "per_class": 2, "folder": None}, (3, 32, 32))
    with pytest.raises(BadInput, match="gives samples"):
        dataset.check({}, (1, 8, 8))


# Trained parameters of the 1000-class networks as torchvision publishes them.
PUBLISHED = {50: 25_557_032, 101: 44_549_160, 152: 60_192_808}


@pytest.mark.parametrize("depth", PUBLISHED)
def test_resnet_has_the_published_number_of_parameters(depth):
    workload = WORKLOADS.get(f"images-resnet{depth}")
    heads = (1000 - 6) * (2048 + 1)
    assert parameter_count(workload.layers) == PUBLISHED[depth] - heads
    states = shapes(workload.layers, workload.sample)
    assert (2048, 7, 7) in states and states[-1] == (6,)
    strided = [
        placed.layer.kernel
        for placed in walk(workload.layers, workload.sample)
        if isinstance(placed.layer, Conv2d) and placed.layer.stride == 2 and "body" in placed.name
    ]
    # What makes it v1.5.
    assert strided == [3, 3, 3]


def test_resnet20_is_that_of_the_paper_with_projections():
    # 0.27 million with padded identities; the two projections add 2,752.
    assert parameter_count(resnet_cifar(3, 10)) == 269_722 + 2_752
    layers = WORKLOADS.get("images-resnet20").layers
    assert sum(isinstance(layer, Residual) for layer in layers) == 9
    assert sum(isinstance(layer, Residual) and bool(layer.shortcut) for layer in layers) == 2


def test_mlp_is_the_published_one():
    workload = WORKLOADS.get("images-mlp")
    widths = [one[0] for one in shapes(workload.layers, workload.sample) if len(one) == 1]
    assert prod(workload.sample) == 67_500
    assert list(dict.fromkeys(widths)) == [67_500, 40, 10, 6]
