"""Layouts of image folders: which files are of which class and part, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from image_folders import run

from transect.domain.errors import BadInput
from transect.training.datasets import DATASETS
from transect.training.datasets._layouts import scan


def put(root, *files, content=b"x"):
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_bytes(content)


def reasons(found):
    return {entry["file"]: entry["reason"] for entry in found.left_out}


SCENES = [
    f"{part}/{part}/{name}/{n}.jpg" for part in ("seg_train", "seg_test") for name in ("sea", "forest") for n in (2, 1)
]


def test_intel_scenes_have_their_own_test_part(tmp_path):
    put(tmp_path, *SCENES, "seg_pred/seg_pred/7.jpg", "seg_train/.DS_Store", "notes.txt")
    found = scan(tmp_path)
    assert found.layout == "intel-scenes"
    assert found.train == {name: [f"seg_train/seg_train/{name}/{n}.jpg" for n in (1, 2)] for name in ("forest", "sea")}
    assert found.test == {name: [f"seg_test/seg_test/{name}/{n}.jpg" for n in (1, 2)] for name in ("forest", "sea")}
    assert reasons(found) == {"seg_pred": "without labels", "notes.txt": "beside the class folders"}
    assert found.hidden == {"seg_train/.DS_Store"}


def test_intel_scenes_may_be_unpacked_without_the_second_folder(tmp_path):
    put(tmp_path, *(file.replace("seg_train/seg_train", "seg_train") for file in SCENES))
    found = scan(tmp_path)
    assert found.train["sea"] == ["seg_train/sea/1.jpg", "seg_train/sea/2.jpg"]
    put(tmp_path, "seg_train/seg_train/sea/3.jpg")
    with pytest.raises(BadInput, match="seg_train: has seg_train and class folders beside it: expected one of the two"):
        scan(tmp_path)


SYNSETS = ("n00000001", "n00000002", "n00000003")
TRAIN = [f"train/{name}/{name}_{n}.JPEG" for name in SYNSETS for n in (1, 2)]
VAL = [f"val/ILSVRC2012_val_{n:08d}.JPEG" for n in range(1, 7)]


def devkit(root, truth=(3, 1, 2, 3, 9, 1), base="ILSVRC2012_devkit_t12/data"):
    """As ILSVRC's meta.mat has it: a struct array with ILSVRC2012_ID, WNID, words and more."""
    from scipy.io import savemat

    rows = [
        (3, "n00000001", "tench, Tinca tinca"),
        (1, "n00000002", "crane"),
        (2, "n00000003", "crane, bird"),
        (9, "n00000009", "other"),
    ]
    kinds = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("num_children", "O")]
    synsets = np.array([(*row, 0) for row in rows], dtype=kinds).reshape(-1, 1)
    (root / base).mkdir(parents=True)
    savemat(root / base / "meta.mat", {"synsets": synsets})
    (root / base / "ILSVRC2012_validation_ground_truth.txt").write_text("".join(f"{number}\n" for number in truth))


def test_imagenets_flat_validation_part_has_the_labels_of_the_devkit(tmp_path):
    put(tmp_path, *TRAIN, *VAL, "val/readme.txt", "test/1.JPEG")
    devkit(tmp_path)
    found = scan(tmp_path)
    assert found.layout == "imagenet"
    tench, crane, bird = "n00000001 tench", "n00000002 crane", "n00000003 crane"
    assert list(found.train) == [tench, crane, bird] == list(found.test)
    assert found.train[crane] == [f"train/n00000002/n00000002_{n}.JPEG" for n in (1, 2)]
    # The fifth is of a synset that has no training files.
    assert found.test == {tench: [VAL[0], VAL[3]], crane: [VAL[1], VAL[5]], bird: [VAL[2]]}
    assert reasons(found) == {"val/readme.txt": "not named .jpg, .jpeg, .png", "test": "without labels"}
    with pytest.raises(BadInput, match="'crane' may be n00000002 crane and n00000003 crane: name one of them"):
        scan(tmp_path, classes=["tench", "crane"])
    by_name = scan(tmp_path, classes=["tench", "n00000003"])
    assert list(by_name.train) == list(by_name.test) == [tench, bird] and by_name.other_classes == 1


def test_imagenets_validation_part_may_lie_in_folders(tmp_path):
    put(tmp_path, *TRAIN, *(f"val/{name}/ILSVRC2012_val_{n:08d}.JPEG" for n, name in enumerate(SYNSETS)))
    found = scan(tmp_path, classes=2)
    assert list(found.train) == list(SYNSETS[:2]) and found.other_classes == 1
    assert found.test["n00000002"] == ["val/n00000002/ILSVRC2012_val_00000001.JPEG"]
    put(tmp_path, VAL[0])
    with pytest.raises(BadInput, match=r"val: has folders and files such as ILSVRC2012_val_00000001.JPEG"):
        scan(tmp_path)


NAMES = "/m/cat,Cat\n/m/dog,Dog\n/m/emu,Emu\n/m/emu2,Emu\n"
LABELS = [
    ("a1", "/m/cat", 1),
    ("a2", "/m/dog", 1),
    ("a3", "/m/cat", 1),
    ("a3", "/m/dog", 1),
    ("a4", "/m/cat", 0),
    ("a4", "/m/dog", 1),
    ("a5", "/m/cat", 0.9),
    ("a6", "/m/emu", 1),
    ("a7", "/m/cat", 1),
    ("a7", "/m/emu2", 1),
    ("gone", "/m/cat", 1),
]


def open_images(root, part="train", labels=LABELS, header="LabelName,DisplayName\n"):
    put(root, *(f"{part}/a{n}.jpg" for n in range(1, 9)))
    rows = "".join(f"{image},verification,{label},{sure}\n" for image, label, sure in labels)
    (root / "labels.csv").write_text(f"ImageID,Source,LabelName,Confidence\n{rows}")
    (root / "names.csv").write_text(header + NAMES)
    (root / "boxes.csv").write_text("ImageID,Source,LabelName,Confidence,XMin\na8,xclick,/m/cat,1,0.5\n")


@pytest.mark.parametrize("header", ["LabelName,DisplayName\n", ""])
def test_of_open_images_the_one_chosen_class_that_a_person_verified_counts(header, tmp_path):
    open_images(tmp_path, header=header)
    found = scan(tmp_path, classes=["Dog", "Cat"])
    assert found.layout == "openimages" and found.test is None
    assert found.train == {"Cat": ["train/a1.jpg", "train/a7.jpg"], "Dog": ["train/a2.jpg", "train/a4.jpg"]}
    assert reasons(found) == {
        "train/a3.jpg": "shows 2 of the chosen classes",
        "train/a5.jpg": "without a verified label",
        "train/a6.jpg": "shows none of the chosen classes",
        "train/a8.jpg": "without a verified label",
        "boxes.csv": "neither labels of whole images nor names of classes",
    }
    assert found.other_classes == 2 and "a person verified" in found.rule
    # Two classes that are called the same are told apart.
    every = scan(tmp_path)
    assert list(every.train) == ["Cat", "Dog", "Emu /m/emu", "Emu /m/emu2"]
    assert reasons(every)["train/a7.jpg"] == "shows 2 of the chosen classes"
    assert scan(tmp_path, classes=["/m/cat", "/m/emu2"]).train["Cat"] == ["train/a1.jpg", "train/a3.jpg"]


def test_of_open_images_test_is_the_test_part_and_else_validation(tmp_path):
    open_images(tmp_path)
    put(tmp_path, "validation/b1.jpg", "validation/b2.jpg")
    with (tmp_path / "labels.csv").open("a") as table:
        table.writelines(
            f"{image},verification,/m/{name},1\n" for image, name in (("b1", "cat"), ("b2", "dog"), ("c1", "cat"))
        )
    found = scan(tmp_path, classes=["Cat", "Dog"])
    assert found.test == {"Cat": ["validation/b1.jpg"], "Dog": ["validation/b2.jpg"]}
    put(tmp_path, "test/c1.jpg")
    found = scan(tmp_path, classes=["Cat", "Dog"])
    assert found.test == {"Cat": ["test/c1.jpg"], "Dog": []}
    assert reasons(found)["validation"] == "test is the test part"


def test_class_folders_may_be_chosen(tmp_path):
    put(tmp_path, *(f"{name}/{n}.png" for name in "abc" for n in (1, 2)))
    assert list(scan(tmp_path).train) == ["a", "b", "c"]
    assert list(scan(tmp_path, classes=2).train) == ["a", "b"]
    found = scan(tmp_path, "class-folders", ["c", "a"])
    assert list(found.train) == ["a", "c"] and found.other_classes == 1 and found.test is None


def both(root):
    put(root, *SCENES, *TRAIN, "val/n00000001/1.JPEG")


def three(root):
    put(root, *(f"{name}/{n}.png" for name in "abc" for n in (1, 2)))


def flat(root, **how):
    put(root, *TRAIN, *VAL)
    devkit(root, **how)


def bad_row(root):
    open_images(root)
    (root / "labels.csv").write_text("ImageID,Source,LabelName,Confidence\na1,verification,/m/cat,yes\n")


REFUSED = {
    "mixed": (both, {}, "looks like intel-scenes and like imagenet: name one by the option 'layout'"),
    "another one": (three, {"layout": "imagenet"}, "no imagenet there: expected train/nNNNNNNNN/"),
    "half of the scenes": (
        lambda root: put(root, SCENES[0]),
        {},
        "only seg_train is there: expected seg_train/seg_train/CLASS",
    ),
    "a class less": (
        lambda root: put(root, *SCENES[:6]),
        {},
        "1 classes of seg_train/seg_train are not in seg_test/seg_test, such as forest",
    ),
    "no val": (lambda root: put(root, *TRAIN), {}, "train is there, and no val: .* or name .*/train"),
    "odd synset": (
        lambda root: put(root, *TRAIN, "train/fish/1.JPEG", "val/x"),
        {},
        "train: fish: expected folders named as synsets",
    ),
    "no devkit": (
        lambda root: put(root, *TRAIN, *VAL),
        {},
        "val has no folders: expected ILSVRC2012_validation_ground_truth.txt",
    ),
    "short truth": (
        lambda root: flat(root, truth=(1, 2)),
        {},
        "ILSVRC2012_val_00000003.JPEG: .* of 2 lines has no synset",
    ),
    "unknown number": (lambda root: flat(root, truth=[77] * 6), {}, "of 6 lines has no synset for it"),
    "no numbers": (lambda root: flat(root, truth=["x"]), {}, "no numbers of synsets, one a line"),
    "unknown class": (
        three,
        {"classes": ["a", "aa"]},
        "option 'classes': unknown class 'aa': did you mean a[?] 3 are there",
    ),
    "too many": (three, {"classes": 4}, "option 'classes': 4 are asked for, 3 are there"),
    "one class": (lambda root: put(root, "a/1.png"), {}, "1 class folders, at least 2 are needed"),
    "no sure label": (lambda root: open_images(root, labels=[]), {}, "0 classes, at least 2 are needed"),
    "bad row": (bad_row, {}, "labels.csv: line 2: expected ImageID, Source, LabelName, Confidence, found"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_layout_that_is_wrong_or_mixed_is_one_message(what, tmp_path):
    make, options, words = REFUSED[what]
    make(tmp_path)
    with pytest.raises(BadInput, match=words) as refused:
        scan(tmp_path, **options)
    assert len(refused.value.args) == 1


def test_broken_tables_of_synsets_are_told(tmp_path):
    flat(tmp_path)
    (tmp_path / "ILSVRC2012_devkit_t12/data/meta.mat").write_bytes(b"no table")
    with pytest.raises(BadInput, match=r"meta.mat: no table of synsets"):
        scan(tmp_path)


def test_options_are_looked_at_before_a_study_runs():
    dataset = DATASETS.get("images")
    for options, words in (
        ({"layout": "coco"}, "dataset_options.layout"),
        *(
            (
                {"classes": wrong},
                "dataset_options.classes': .*expected how many, 2 to 10,000, or a list of two different",
            )
            for wrong in (1, 10_001, 2.0, True, "cat", [], ["a"], ["a", "a"], ["a", 3])
        ),
        ({"manifest": "m"}, "expected a folder beside it"),
    ):
        with pytest.raises(BadInput, match=words):
            dataset.check(options, (3, 32, 32))
    dataset.check({"folder": "f", "manifest": "m", "layout": "imagenet", "classes": ["a", "b"]}, (3, 32, 32))
    # Without its folder a set may be generated; without its manifest it may not.
    options = {"folder": "f", "manifest": "m", "otherwise": "generate"}
    assert dataset.without(options, "folder") == options | {"folder": None, "manifest": None}
    assert dataset.without(options, "manifest") is None
    # A file that is named is an input of the cell.
    assert {"folder", "manifest"} == set(dataset.paths)


END_TO_END = """
from transect.domain.folder_manifest import write_manifest

def scene(part, label, number):
    home = root / part / part / f"class-{label}"
    home.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise(40, 40 + number + 9 * label, 3) // 2 + 20 * label).save(home / f"{number}.JPEG", format="JPEG")

for label in range(7):
    for number in range(5):
        scene("seg_train", label, number)
    for number in range(3):
        scene("seg_test", label, number)
(root / "seg_test" / "seg_test" / "class-2" / "0.JPEG").write_bytes(b"damaged")
(root / "seg_pred").mkdir()
sheet = out / "manifest"
made = write_manifest(root, sheet)
asked = {"folder": str(root), "manifest": str(sheet), "classes": 6, "per_class": 4}
facts = prepared("a", **asked)
table = json.loads((out / "a" / "files.json").read_text())
with np.load(out / "a" / "data.npz") as data:
    y = {part: data[f"y_{part}"].tolist() for part in ("train", "test")}
    mean = data["mean"]
x = np.load(out / "a" / "x_train.npy")
reader = FileReader(out / "a", np.float32, 2)
some = list(reader.read([(0, np.arange(len(x)))]))[0]
reader.close()
answer = {"facts": facts, "y": y, "made": made.sha256, "again": prepared("b", **asked) == facts,
          "parts": {part: [e["file"] for e in table[part]] for part in ("train", "test")},
          "labels": {part: [e["label"] for e in table[part]] for part in ("train", "test")},
          "mean": float(np.abs((x / 255).mean(axis=(0, 2, 3)) - mean).max()),
          "read": bool((some == load_arrays(out / "a", np.float32)["x_train"][:]).all())}
with (root / "seg_train" / "seg_train" / "class-6" / "0.JPEG").open("ab") as stream:
    stream.write(b"more")
answer["changed"] = refused(lambda: prepared("c", **asked))
for number in range(3):
    (root / "seg_test" / "seg_test" / "class-5" / f"{number}.JPEG").write_bytes(b"")
answer["empty"] = refused(lambda: prepared("d", folder=str(root), classes=6))
answer["other"] = refused(lambda: prepared("e", folder=str(root), layout="class-folders"))
"""


@pytest.mark.env
def test_the_sets_own_test_part_is_the_test_part_of_a_study(base_python, tmp_path):
    answer = run(base_python, tmp_path, END_TO_END)
    facts = answer["facts"]
    assert facts["layout"] == "intel-scenes" and facts["test_part"] == "the set's own" and facts["other_classes"] == 1
    assert facts["manifest_sha256"] == answer["made"] and answer["again"] and answer["read"]
    assert facts["train"] == 6 * 4 and facts["test"] == 6 * 3 - 1
    assert all(file.startswith("seg_train/") for file in answer["parts"]["train"])
    assert all(file.startswith("seg_test/") for file in answer["parts"]["test"])
    assert (
        answer["y"]
        == answer["labels"]
        == {
            "train": [label for label in range(6) for _ in range(4)],
            "test": [label for label in range(6) for _ in range(2 if label == 2 else 3)],
        }
    )
    assert answer["mean"] < 1e-12
    assert {entry["file"]: entry["reason"] for entry in facts["left_out"]} == {
        "seg_pred": "without labels",
        "seg_test/seg_test/class-2/0.JPEG": "neither a JPEG nor a PNG image",
    }
    assert "1 longer: seg_train/seg_train/class-6/0.JPEG" in answer["changed"]
    assert "class 'class-5' has 0 usable images in the test part, at least 1 is needed; seg_test/" in answer["empty"]
    assert "class 'seg_pred' has 0 usable images, at least 2 are needed" in answer["other"]
