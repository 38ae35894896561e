"""Files of other projects: nothing but tensors is made of them, and only of what is right."""

from __future__ import annotations

import io
import pickle
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lors.files.published import published_experts, read_published_set
from lors.system.errors import InputError
from tests.published import Malicious, full, low_rank, numbers, written

Change = Callable[[dict[str, Any]], object]


def test_a_set_is_read_number_by_number(tmp_path: Path) -> None:
    content = low_rank()
    content["image"] = content["image"].transpose(2, 3)  # not contiguous
    content["text"] = nn.Parameter(content["text"])
    content["syn_lr_txt"] = 0.5
    found = read_published_set(written(tmp_path / "set.pt", content))
    assert torch.equal(found.images, content["image"])
    assert torch.equal(found.texts, content["text"])
    assert all(map(torch.equal, found.factors, content["similarity_params"]))
    assert found.matrix is not None
    assert torch.equal(found.matrix, content["similarity_mat"])
    assert found.rates.tolist() == pytest.approx([0.1, 0.5])
    assert not found.texts.requires_grad


def test_a_part_of_a_larger_tensor_is_read_as_that_part(tmp_path: Path) -> None:
    content = low_rank()
    content["text"] = numbers(20, 12)[3:9]
    found = read_published_set(written(tmp_path / "set.pt", content))
    assert torch.equal(found.texts, content["text"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda s: s.update(image=numbers(6, 3, 16, 8)), "not (N, 3, size, size)"),
        (lambda s: s.update(image=numbers(6, 12)), "image is not a tensor of 4 dimensions"),
        (lambda s: s.update(text=numbers(5, 12)), "text has shape (5, 12)"),
        (lambda s: s.update(text="words"), "text is not a tensor"),
        (lambda s: s.update(similarity_mat=numbers(6, 5)), "similarity_mat has shape"),
        (lambda s: s.update(similarity_params=[numbers(6)] * 2), "neither [ω, L, R] nor [S]"),
        (lambda s: s["similarity_params"].__setitem__(2, numbers(6, 3)), "R has shape (6, 3)"),
        (lambda s: s.update(syn_lr_img=torch.tensor([0.1, 0.2])), "syn_lr_img is not one number"),
        (lambda s: s.update(syn_lr_img=10**80), "syn_lr_img is not one number"),
        (lambda s: s.update(syn_lr_img=float("nan")), "syn_lr_img is not one number"),
        (lambda s: s.update(syn_lr_img=torch.tensor(-0.1)), "must be positive"),
        (lambda s: s["text"].__setitem__((2, 3), torch.nan), "finite"),
        (lambda s: s.pop("syn_lr_txt"), "holds no 'syn_lr_txt'"),
        (lambda s: s.update(args={"seed": 1}), "'args', which a published set has not"),
        (lambda s: s.update(text=numbers(6, 12).long()), "LongStorage, not floating-point"),
        (lambda s: s.update(text=numbers(1, 12).expand(6, 12)), "does not fit its 12 numbers"),
        (lambda s: s.update(text=numbers(6, 12).to_sparse()), "not only tensors"),
        (lambda s: s.update(text=numbers(6, 12).numpy()), "not only tensors"),
        (lambda s: s.update(text=numbers(6, 0)), "not a tensor|numbers in one place"),
    ],
)
def test_what_is_no_set_is_refused_in_a_sentence(
    change: Change, sentence: str, tmp_path: Path
) -> None:
    content = low_rank()
    change(content)
    path = written(tmp_path / "set.pt", content)
    with pytest.raises(InputError) as caught:
        read_published_set(path)
    assert any(part in str(caught.value) for part in sentence.split("|"))
    assert str(path) in str(caught.value)


def test_a_quantised_tensor_is_refused(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # quantised tensors are on their way out
        packed = torch.quantize_per_tensor(numbers(6, 12), 0.1, 0, torch.qint8)
        path = written(tmp_path / "set.pt", {**low_rank(), "text": packed})
    with pytest.raises(InputError, match="cannot import"):
        read_published_set(path)


def changed_pickle(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Put another pickle into an archive, with a good checksum."""
    with zipfile.ZipFile(path) as archive:
        records = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, record in records.items():
            archive.writestr(name, change(record) if name.endswith("data.pkl") else record)


def test_a_storage_that_claims_more_than_the_file_holds_is_refused(tmp_path: Path) -> None:
    """torch itself would read whatever lies behind it in memory."""
    path = written(tmp_path / "set.pt", low_rank())
    old, new = (pickle.dumps(n, 2)[2:-1] for n in (6 * 3 * 16 * 16, 2**30))
    changed_pickle(path, lambda data: data.replace(old, new, 1))
    with pytest.raises(InputError, match="should have 4,294,967,296 bytes, and has 18,432"):
        read_published_set(path)


@pytest.mark.parametrize("nested", [False, True])
def test_a_malicious_pickle_does_not_run(nested: bool, tmp_path: Path) -> None:
    target = tmp_path / "was run"
    evil = Malicious(target)
    content = {**low_rank(), "syn_lr_img": evil} if nested else evil
    path = written(tmp_path / "set.pt", content)
    with pytest.raises(InputError, match=r"not only tensors|more than tensors"):
        read_published_set(path)
    assert not target.exists()
    torch.load(path, weights_only=False)  # it would have
    assert target.exists()


def test_malicious_experts_do_not_run(tmp_path: Path) -> None:
    target = tmp_path / "was run"
    experts = [[[numbers(3)], [Malicious(target)]]]
    path = written(tmp_path / "img_replay_buffer_0.pt", experts)
    written(tmp_path / "txt_replay_buffer_0.pt", experts)
    with pytest.raises(InputError, match="not only tensors"):
        list(published_experts(path, ([(3,)], [(3,)]), epochs=1))
    assert not target.exists()


def test_a_plain_pickle_and_a_file_of_an_old_torch_are_refused_unread(tmp_path: Path) -> None:
    target = tmp_path / "was run"
    plain, old = tmp_path / "plain.pt", tmp_path / "old.pt"
    plain.write_bytes(pickle.dumps(Malicious(target)))
    torch.save(low_rank(), old, _use_new_zipfile_serialization=False)
    for path in (plain, old):
        with pytest.raises(InputError, match="no ZIP archive"):
            read_published_set(path)
    assert not target.exists()


def test_archives_that_torch_does_not_write_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "set.pt", low_rank())
    whole = path.read_bytes()
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(path) as old,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
    places = [len(whole) // 2, len(whole) - 30]
    cut = [whole[:-1], whole[:100], b"PK\x03\x04", b"", b"x" + whole, whole + b"x"]
    flipped = [whole[:p] + bytes([whole[p] ^ 1]) + whole[p + 1 :] for p in places]
    for bad in (packed.getvalue(), *cut, *flipped):
        path.write_bytes(bad)
        with pytest.raises(InputError, match="cannot import"):
            read_published_set(path)


def test_endless_pickles_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lors.files.pickles.OPERATIONS", 1000)
    path = written(tmp_path / "set.pt", low_rank())
    changed_pickle(path, lambda data: b"\x80\x02" + b"]" * 2000 + b".")
    with pytest.raises(InputError, match="more than tensors could need"):
        read_published_set(path)


def snapshots(epochs: int, *shapes: tuple[int, ...], seed: int = 0) -> list[list[torch.Tensor]]:
    return [
        [numbers(*shape, seed=seed + 10 * epoch + i) for i, shape in enumerate(shapes)]
        for epoch in range(epochs)
    ]


IMAGE, TEXT = [(4, 3), (4,)], [(2, 4)]


def test_experts_are_image_then_text_of_each_epoch(tmp_path: Path) -> None:
    images = [snapshots(3, *IMAGE, seed=seed) for seed in (0, 100)]
    texts = [snapshots(3, *TEXT, seed=seed) for seed in (50, 150)]
    path = written(tmp_path / "img_replay_buffer_7.pt", images)
    written(tmp_path / "txt_replay_buffer_7.pt", texts)
    first, second = published_experts(path, (IMAGE, TEXT), epochs=2)
    assert first.shape == (3, 24)
    flat = [p.reshape(-1) for p in (*images[1][2], *texts[1][2])]
    assert torch.equal(second[2], torch.cat(flat))


def test_experts_that_are_none_or_do_not_fit_are_refused(tmp_path: Path) -> None:
    image, text = tmp_path / "img_replay_buffer_0.pt", tmp_path / "txt_replay_buffer_0.pt"
    good = [snapshots(3, *IMAGE)]
    written(text, [snapshots(3, *TEXT)])
    last = list(good[0][2])
    same = [[[p.clone() for p in last] for _ in range(3)]]
    for content, sentence in (
        ([[last, last, last]], "same parameters after epochs 0 and 1"),  # as a CPU writes them
        (same, "same parameters after epochs 0 and 1"),
        ([snapshots(4, *IMAGE)], "set experts.epochs=3"),
        ([snapshots(3, (4, 3))], "image side has 1 parameters"),
        ([snapshots(3, (4, 3), (5,))], r"parameter 1 of its image side has shape \(5,\)"),
        ({"a": 1}, "list of lists of lists"),
        ([], "list of lists of lists"),
        (good * 2, "holds 2 experts"),
        ([[[p * torch.inf for p in epoch] for epoch in good[0]]], "finite|same"),
    ):
        written(image, content)
        with pytest.raises(InputError, match=sentence):
            list(published_experts(image, (IMAGE, TEXT), epochs=2))
    with pytest.raises(InputError, match=r"not named img_replay_buffer_K\.pt"):
        list(published_experts(text, (IMAGE, TEXT), epochs=2))
    text.unlink()
    written(image, good)
    with pytest.raises(InputError, match="there is no file"):
        list(published_experts(image, (IMAGE, TEXT), epochs=2))


def test_half_and_double_precision_are_read(tmp_path: Path) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        content = {**full(), "image": numbers(6, 3, 16, 16).to(dtype)}
        found = read_published_set(written(tmp_path / "set.pt", content))
        assert torch.equal(found.images.to(dtype), content["image"])
        assert found.texts.dtype == found.images.dtype
        assert found.images.dtype == (dtype if dtype == torch.float64 else torch.float32)


def test_numpy_scalars_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "set.pt", {**low_rank(), "syn_lr_img": np.float64(0.1)})
    with pytest.raises(InputError, match="not only tensors"):
        read_published_set(path)
