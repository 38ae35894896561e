from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lors.data.labelled import LABELLED, load_labelled
from lors.system.errors import InputError


def class_folders(folder: Path, names: tuple[str, ...]) -> None:
    """One grey image, without colours, per class."""
    for number, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        Image.new("L", (4, 3), 10 * number).save(folder / name / "image_0001.jpg")


@pytest.mark.parametrize("name", ["mit-indoor", "dtd", "caltech101", "imagenet1k"])
def test_a_folder_is_a_class(tmp_path: Path, name: str) -> None:
    class_folders(tmp_path / LABELLED[name].folder, ("airport", "bakery", "bar"))
    dataset = load_labelled(name, tmp_path)
    assert [dataset[i][1] for i in range(len(dataset))] == [0, 1, 2]
    assert {dataset[i][0].mode for i in range(len(dataset))} == {"RGB"}


def test_inaturalist_classes_lie_two_folders_deep(tmp_path: Path) -> None:
    class_folders(tmp_path / "2018", ("Fungi/1", "Plantae/0", "Plantae/2"))
    dataset = load_labelled("inaturalist18", tmp_path)
    assert [dataset[i][1] for i in range(len(dataset))] == [0, 1, 2]
    assert dataset[0][0].mode == "RGB"


@pytest.mark.parametrize(
    ("name", "files", "labels"),
    [
        ("cifar10", ("data_batch_1.bin", "data_batch_2.bin"), (7,)),
        ("cifar100", ("train.bin",), (3, 99)),
    ],
)
def test_cifar_is_read_from_its_binary_version(
    tmp_path: Path, name: str, files: tuple[str, ...], labels: tuple[int, ...]
) -> None:
    planes = np.arange(3, dtype=np.uint8).repeat(32 * 32).reshape(3, 32, 32)
    planes[:, 0, 5] = 200
    folder = tmp_path / LABELLED[name].folder
    folder.mkdir()
    for file in (*files, "test_batch.bin", "test.bin"):
        (folder / file).write_bytes((bytes(labels) + planes.tobytes()) * 2)
    dataset = load_labelled(name, tmp_path)
    assert len(dataset) == 2 * len(files)
    image, label = dataset[1]
    assert label == labels[-1]
    assert image.getpixel((5, 0)) == (200, 200, 200)
    assert image.getpixel((0, 5)) == (0, 1, 2)


@pytest.mark.parametrize("name", LABELLED)
def test_missing_data_says_what_to_download_and_where_it_goes(tmp_path: Path, name: str) -> None:
    place = re.escape(str(tmp_path / LABELLED[name].folder))
    with pytest.raises(InputError, match=rf"{name}' is missing: unpack .*https://.*{place}"):
        load_labelled(name, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", LABELLED)
def test_an_empty_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / LABELLED[name].folder).mkdir(parents=True)
    with pytest.raises(InputError, match=f"cannot read the labelled dataset '{name}'"):
        load_labelled(name, tmp_path)


def test_an_unknown_name_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'cifar10'"):
        load_labelled("cifar-10", tmp_path)
