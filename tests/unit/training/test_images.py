"""Image folders: what is read, what is left out, and what is refused."""

from __future__ import annotations

import pytest
from image_folders import run

from transect.domain.errors import BadInput
from transect.training.datasets import DATASETS, StoredDataset

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
some = list(reader.read([(0, np.arange(len(rows["x_train"])))]))[0]
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


USED = {"deep.png", "alpha.png", "palette.png", "GREY.JPEG", "print.jpg", "link.png", "\udcff\udcfe.png"}


def test_hostile_folder_is_read_and_what_is_left_out_is_listed(base_python, tmp_path):
    answer = run(base_python, tmp_path, HOSTILE)
    manifest, table = answer["manifest"], answer["table"]
    reasons = {entry["file"]: entry["reason"] for entry in table["left_out"]}
    expected = LEFT_OUT | ({} if answer["root"] else {"class-2/secret.jpg": "Permission denied"})
    assert reasons.keys() == expected.keys()
    for file, words in expected.items():
        assert words in reasons[file], (file, reasons[file])
    assert manifest["left_out_count"] == len(expected)
    assert manifest["left_out"] == table["left_out"][:20]
    assert manifest["hidden_count"] == 2
    entries = table["train"] + table["test"]
    used = {entry["file"].removeprefix("class-2/") for entry in entries if entry["label"] == 2}
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
    assert sorted(answer["left"]) == ["data.npz", "files.json", "images", "start-0.npz", "x_test.npy", "x_train.npy"]


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
        "[p.write_text('') for p in (root / 'class-3').iterdir() if p.name > '0.png'] and prepared(folder=str(root))",
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"foldr": "x"}, "dataset_options.foldr"),
        ({"generate": 1.5}, "dataset_options.generate"),
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
