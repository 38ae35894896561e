from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from lors import load_config, run
from lors.cli import app
from lors.config import Config
from lors.data.embeddings import ENCODED
from lors.runs.encode import encode_shards
from lors.setting import setting_of
from lors.system import ranks
from lors.system.errors import InputError
from tests.data.test_webdataset import shard
from tests.ranks import run_ranks

WORDS = ["a red circle", "the blue star", "a green ring on black", "an orange square"]


def jpeg(seed: int) -> bytes:
    data = io.BytesIO()
    noise = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), np.uint8)
    Image.fromarray(noise).resize((40, 40)).save(data, "png")
    return data.getvalue()


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """60 images in three shards, with one or two captions each."""
    for number in range(3):
        members: dict[str, bytes | str] = {}
        for image in range(20 * number, 20 * number + 20):
            captions = [WORDS[image % 4], WORDS[image // 4 % 4]][: 1 + image % 2]
            members[f"{image:03d}.png"] = jpeg(image)
            members[f"{image:03d}.txt"] = "\n".join(captions)
        shard(tmp_path / f"data/train-{number}.tar", members)
    return tmp_path / "data"


def config(shards: Path, bert: Path, *changes: str) -> Config:
    settings = [
        "data.source=webdataset",
        f"data.root={shards}",
        "data.annotations={train: 'train-*.tar'}",
        "data.pairs={train: 48, val: 6, test: 6}",
        "encoder.scope=heads",
        "encoder.image_head=linear",
        "encoder.image_size=32",
        f"encoder.text=transformers:{bert}",
    ]
    return load_config("tiny", [*settings, *changes])


def test_embeddings_are_those_that_the_shards_themselves_give(
    shards: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    out, direct = tmp_path / "out", setting_of(config(shards, tiny_bert))
    encode_shards(config(shards, tiny_bert), out, batch=7)
    settings = [f"data.root={out}", "distill.budget=10", "similarity.rank=2"]
    given = setting_of(load_config("features", settings))
    for name, split in direct.real.items():
        other = given.real[name]
        np.testing.assert_allclose(split.images[:], other.images[:], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(split.texts[:], other.texts[:], rtol=1e-4, atol=1e-5)
        assert np.array_equal(split.owner, other.owner)
        assert list(direct.pairs.splits[name].captions) == list(given.pairs.splits[name].captions)
    first = json.loads((out / "train/pairs-train-1.jsonl").read_text().splitlines()[0])
    assert first == {"key": "020", "captions": ["a red circle"]}


def test_a_shard_that_is_there_is_kept_and_one_that_is_not_whole_is_made(
    shards: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    asked, out = config(shards, tiny_bert), tmp_path / "out"
    encode_shards(asked, out)
    kept = {path: path.stat().st_mtime_ns for path in (out / "train").glob("[!.]*-train-[02].*")}
    content = (out / "train/texts-train-1.npy").read_bytes()
    (out / "train/texts-train-1.npy").unlink()
    written = (
        "encoders.json",
        "train/shards.txt",
        "train/shard-train-1.txt",
        "train/texts-train-1.npy",
    )
    killed = [(out / name).with_name(f".{Path(name).name}.1.tmp") for name in written]
    for path in killed:
        path.touch()  # as a process leaves it that is killed while it writes
    encode_shards(asked, out)
    assert not any(path.exists() for path in killed)
    assert len(kept) == 2 * (len(ENCODED) + 1)
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert (out / "train/texts-train-1.npy").read_bytes() == content


def encoded_here(settings: dict[str, object], out: str) -> int:
    """Encode what other ranks leave, and tell how many shards this one made."""
    made = []

    class Counting:
        def track(self, items, what, total, done=0):  # type: ignore[no-untyped-def]
            for item in items:
                before = item.done()
                yield item
                made.append(what == "encode shards" and not before)

        def note(self, **facts: object) -> None: ...
        def say(self, text: str) -> None: ...

    encode_shards(load_config(settings), Path(out), Counting())
    assert ranks.size() == 2
    assert len(list(Path(out, "train").glob("[!.]*-train-*.*"))) == 3 * (len(ENCODED) + 1)
    return sum(made)


def test_ranks_share_the_shards(shards: Path, tiny_bert: Path, tmp_path: Path) -> None:
    asked = config(shards, tiny_bert)
    found = run_ranks(2, encoded_here, asked.model_dump(mode="json"), str(tmp_path / "out"))
    assert all(found)
    encode_shards(asked, tmp_path / "alone")
    for path in (tmp_path / "alone/train").glob("images-*.npy"):
        np.testing.assert_allclose(
            np.load(path), np.load(tmp_path / "out/train" / path.name), rtol=1e-4, atol=1e-5
        )


def test_a_selection_from_encoded_shards(shards: Path, tiny_bert: Path, tmp_path: Path) -> None:
    encode_shards(config(shards, tiny_bert), tmp_path / "out")
    settings = [f"data.root={tmp_path / 'out'}", "selection.kind=herding", "distill.budget=5"]
    settings += ["evaluate={seeds: 1, epochs: 2, checks: 1}"]
    run(load_config("features", settings), tmp_path / "run", references=False)
    listed = (tmp_path / "run/selection.csv").read_text().splitlines()[1:]
    assert all(line.split(",")[-1] in WORDS for line in listed)


def test_the_command_ends_with_what_to_do_next(
    shards: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(config(shards, tiny_bert).yaml())
    answer = CliRunner().invoke(app, ["encode", str(path), "--out", str(tmp_path / "out")])
    line = next(line for line in answer.output.splitlines() if line.startswith("lors select"))
    assert line == f"lors select herding features data.root={tmp_path / 'out'}"


def test_what_cannot_be_encoded_is_refused(shards: Path, tiny_bert: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match="fitted on all captions at once"):
        encode_shards(config(shards, tiny_bert, "encoder.text=lsa"), out)
    with pytest.raises(InputError, match=r"data\.source=webdataset"):
        encode_shards(config(shards, tiny_bert, "data.source=scenes"), out)
    assert not out.exists()
    with pytest.raises(InputError, match="holds no embeddings of lors encode"):
        encode_shards(config(shards, tiny_bert), shards)
    encode_shards(config(shards, tiny_bert, "data.annotations.train=train-0.tar"), out)
    with pytest.raises(InputError, match=r"other trunks \(image_trunk: .*\|32, not .*\|16\)"):
        encode_shards(config(shards, tiny_bert, "encoder.image_size=16"), out)
    shard(shards / "a/b.tar", {"x.png": jpeg(0), "x.txt": "a red star"})
    shard(shards / "a-b.tar", {"x.png": jpeg(0), "x.txt": "a red star"})
    with pytest.raises(InputError, match="under one name"):
        encode_shards(config(shards, tiny_bert, "data.annotations.train='{a/b,a-b}.tar'"), out)
    with pytest.raises(InputError, match="none of train, val, test"):
        encode_shards(config(shards, tiny_bert, "data.annotations.dev='a-b.tar'"), out)


def test_a_damaged_shard_is_named_and_the_others_are_kept(
    shards: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    whole = (shards / "train-1.tar").read_bytes()
    (shards / "train-1.tar").write_bytes(whole[:3000])
    asked, out = config(shards, tiny_bert), tmp_path / "out"
    with pytest.raises(InputError, match=r"train-1\.tar"):
        encode_shards(asked, out)
    assert [path.name for path in (out / "train").glob("images-*")] == ["images-train-0.npy"]
    with pytest.raises(InputError, match=r"2 of the 3 shards in .* are not encoded yet"):
        setting_of(load_config("features", [f"data.root={out}"]))
    (shards / "train-1.tar").write_bytes(whole)
    encode_shards(asked, out)
    assert len(list((out / "train").glob("images-*"))) == 3
