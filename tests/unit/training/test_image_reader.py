"""The reader of image files: the stored pixels, and by name what has gone or changed."""

from __future__ import annotations

import numpy as np
import pytest
from image_folders import run

from transect.domain.errors import BadInput
from transect.training.images import FileReader, Images


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
    for number, (pixels, step) in enumerate(zip(reader.read([(0, step) for step in steps]), steps, strict=True)):
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
        return list(reader.read([(0, step) for step in steps]))
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


def test_memory_does_not_grow_with_the_number_of_files(base_python, tmp_path):
    code = """
import resource
from transect.domain.folder_manifest import write_manifest
from transect.training.datasets.images import ImageFolder
for label in range(2):
    home = root / f"class-{label}"
    home.mkdir(parents=True)
    Image.fromarray(noise(240, 240, 3) // 2 + 50 * label).save(home / "0.jpg")

def peak(name):
    divide = lambda shape, y, classes, own: (np.flatnonzero(y >= 0)[::2], np.flatnonzero(y >= 0)[1::2])
    write_manifest(root, out / f"{name}.manifest")
    given = {"folder": str(root), "manifest": str(out / f"{name}.manifest")}
    ImageFolder().store(given, (3, 224, 224), divide, out / name)
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
