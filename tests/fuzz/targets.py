"""What is fuzzed: for each reader, whole files to damage and what must hold if one still loads."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import yaml
from PIL import Image

from lors import DistilledSet, Retriever
from lors.config import Config, DataConfig, load_config, presets
from lors.data.embeddings import load_embeddings
from lors.data.images import decode_image
from lors.data.karpathy import read_karpathy
from lors.data.pairs import Item
from lors.data.table import read_table
from lors.data.webdataset import read_webdataset
from lors.distillation.state import State
from lors.experts import TrajectoryStore
from lors.files import artifacts
from lors.runs import checkpoints
from lors.runs.info import describe
from lors.selection.forgetting import forgetting_events
from lors.sets.synthetic import SyntheticPairs
from lors.setting.resolve import resolve
from lors.similarity import LowRank
from lors.system.progress import Silent
from tests.fuzz import mutate
from tests.fuzz.folder_targets import FOLDER_TARGETS
from tests.fuzz.published_targets import PUBLISHED_TARGETS
from tests.fuzz.run_targets import RUN_TARGETS
from tests.fuzz.target import Target

OLD = Path(__file__).parents[1] / "fixtures" / "format-1"
SECRET = (250, 0, 250)


def picture(grey: int, kind: str = "png") -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (5, 4), (grey,) * 3).save(data, kind)
    return data.getvalue()


def photos(root: Path) -> None:
    """Four images, and one that must never be read, with a link to it."""
    for number in range(4):
        (root / f"{number}.png").write_bytes(picture(10 * number))
    Image.new("RGB", (5, 4), SECRET).save(root.parent / "secret.png")
    if not (root / "link.png").is_symlink():
        (root / "link.png").symlink_to(root.parent / "secret.png")


ROWS = [{"image": f"{i}.png", "caption": f"grey {i}", "split": "train"} for i in range(4)]


def make_table(root: Path) -> list[bytes]:
    photos(root)
    lines = [",".join(row.values()) for row in ROWS]
    return ["\n".join(["image,caption,split", *lines]).encode()]


def make_lines(root: Path) -> list[bytes]:
    photos(root)
    return ["\n".join(map(json.dumps, ROWS)).encode()]


def make_annotations(root: Path) -> list[bytes]:
    photos(root)
    listed = [{"image": row["image"], "caption": [row["caption"], "grey"]} for row in ROWS]
    return [json.dumps(ROWS).encode(), json.dumps(listed).encode()]


def make_shards(root: Path) -> list[bytes]:
    photos(root)
    members = {"a.png": picture(10), "a.txt": b"one\ntwo", "b.jpg": picture(20, "jpeg")}
    members |= {"b.json": json.dumps({"caption": ["three", "four"]}).encode()}
    shards = []
    for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=kind) as tar:
            for name, content in members.items():
                member = tarfile.TarInfo(("é" * 120 if kind == tarfile.PAX_FORMAT else "") + name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        content = file.getvalue().rstrip(b"\0")
        shards.append(content.ljust(-(-len(content) // 512) * 512 + 1024, b"\0"))
    return shards


def check_items(splits: dict[str, list[Item]]) -> None:
    for item in (item for items in splits.values() for item in items):
        assert item.captions
        for caption in item.captions:
            assert caption.strip()
            assert "\0" not in caption
            assert caption.encode()
        image = item.load()
        assert image.mode == "RGB"
        assert image.getpixel((0, 0)) != SECRET


def read_rows(root: Path) -> None:
    check_items(read_table(DataConfig(source="table", root=root), Silent()))


def read_annotations(root: Path) -> None:
    names = {"train": "train.json"}
    check_items(
        read_karpathy(DataConfig(source="karpathy", root=root, annotations=names), Silent())
    )


def read_shards(root: Path) -> None:
    names = {"train": "train.tar"}
    config = DataConfig(source="webdataset", root=root, annotations=names)
    check_items(read_webdataset(config, Silent()))


def make_images(root: Path) -> list[bytes]:
    noise = np.random.default_rng(0).integers(0, 256, (7, 9, 3), np.uint8)
    colours = Image.fromarray(noise)
    exif = Image.Exif()
    exif[0x0112] = 6
    grey = Image.fromarray(np.arange(63, dtype=np.uint16).reshape(7, 9) * 1000)
    files: list[tuple[Image.Image, str, dict[str, Any]]]
    files = [(colours, "JPEG", {"exif": exif}), (colours.convert("CMYK"), "JPEG", {})]
    files += [(colours.convert("RGBA"), kind, {}) for kind in ("PNG", "WEBP", "TIFF")]
    files += [(colours.convert("P"), "PNG", {"transparency": 3}), (grey, "PNG", {})]
    files += [(colours.convert("P"), "GIF", {"save_all": True, "append_images": [colours] * 2})]
    files += [(colours, "TIFF", {"compression": "tiff_lzw"}), (colours, "BMP", {})]
    made = []
    for image, kind, options in files:
        file = io.BytesIO()
        image.save(file, kind, **options)
        made.append(file.getvalue())
    return made


def read_image(root: Path) -> None:
    image = decode_image(root / "image", "it")
    assert image.mode == "RGB"
    assert np.asarray(image).shape == (*image.size[::-1], 3)


def make_arrays(root: Path) -> list[bytes]:
    values = np.random.default_rng(0).normal(size=(20, 3))
    np.save(root / "texts.npy", values.astype(np.float32))
    made = []
    for array in (values.astype(np.float32), values.astype(np.float16), values.T.copy().T):
        file = io.BytesIO()
        np.save(file, array)
        made.append(file.getvalue())
    packed = io.BytesIO()
    np.savez(packed, values)
    return [*made, packed.getvalue()]


def read_arrays(root: Path) -> None:
    names = {"images": "images.npy", "texts": "texts.npy"}
    pairs = load_embeddings(DataConfig(source="embeddings", root=root, annotations=names), Silent())
    for split in pairs.splits.values():
        assert np.isfinite(split.images[:]).all()


def signed_and_not(*files: bytes) -> list[bytes]:
    return [*files, *map(mutate.unsigned, files)]


def make_sets(root: Path) -> list[bytes]:
    DistilledSet.load(OLD / "distilled.safetensors").save(root / "new")
    return signed_and_not((root / "new").read_bytes())


def read_artifact(root: Path) -> None:
    describe(root / "file.safetensors")
    for kind in ("distilled set", "text trunk"):
        with artifacts.open_artifact(root / "file.safetensors") as (header, _):
            found = header["kind"]
        if found == kind:
            _, tensors = artifacts.load(root / "file.safetensors", kind)
            assert all(tensor.isfinite().all() for tensor in tensors.values())


def make_artifacts(root: Path) -> list[bytes]:
    trunk = artifacts.load(OLD / "text-trunk.safetensors", "text trunk")
    artifacts.save(root / "trunk", "text trunk", *trunk)
    return [*make_sets(root), *signed_and_not((root / "trunk").read_bytes())]


def read_set(root: Path) -> None:
    found = DistilledSet.load(root / "file.safetensors")
    assert found.storage() <= found.config.distill.budget
    assert all(tensor.isfinite().all() for tensor in found.pairs.state_dict().values())
    for images, texts, similarity in found.batches(2):
        assert similarity.shape == (len(images), len(texts))
        assert found.loss(torch.zeros(similarity.shape), similarity.float()).isfinite()
    if found.config.encoder.space == "pixels":
        assert found.pixels().dtype == torch.uint8
    assert found.embed(["a red star"]).shape == (1, found.text_trunk.dim)


def make_retrievers(root: Path) -> list[bytes]:
    Retriever.train(DistilledSet.load(OLD / "distilled.safetensors")).save(root / "new")
    return signed_and_not((root / "new").read_bytes())


def read_retriever(root: Path) -> None:
    found = Retriever.load(root / "file.safetensors")
    size = found.encoder.size()
    texts = found.embed_texts(["a red star"])
    if size < 100:
        assert found.embed_pixels(np.zeros((1, 3, size, size), np.uint8)).shape == texts.shape


def a_run() -> State:
    pairs = SyntheticPairs(torch.zeros(4, 3, 4, 4), torch.zeros(4, 3), LowRank(4, rank=1))
    return State(pairs, load_config("tiny").distill, seed=0)


def make_checkpoints(root: Path) -> list[bytes]:
    state = a_run()
    checkpoints.load(OLD / "checkpoint.safetensors", state)
    state.matcher_states = [{"step": torch.tensor(3)}]
    checkpoints.save(root / "new", state)
    return signed_and_not((root / "new").read_bytes())


def read_checkpoint(root: Path) -> None:
    state = a_run()
    checkpoints.load(root / "file.safetensors", state)
    assert state.iteration == checkpoints.reached(root / "file.safetensors")
    for parameter in state.synthetic.parameters():
        parameter.grad = torch.zeros_like(parameter)
    state.optimizer.step()
    if state.best:
        state.synthetic.load_state_dict(state.best)
    assert all(tensor.isfinite().all() for tensor in state.synthetic.state_dict().values())


ORIGIN = {"data": "flickr", "encoder": {"image": "nfnet", "size": 224}, "parameters": 5}


def make_experts(root: Path) -> list[bytes]:
    theta = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    learned = torch.tensor([[True, False], [True, True]])
    whole = {"theta": theta, "learned": learned}
    artifacts.save(root / "whole", "trajectory", {"origin": ORIGIN}, whole)
    part = {"theta": theta[0], "learned": learned[0]}
    artifacts.save(root / "part", "snapshot", {"origin": ORIGIN}, part)
    compact = {"start": theta[0], "moved": theta[1:].bfloat16(), "learned": learned}
    header = {"origin": ORIGIN, "epochs": [0, 1, 2]}
    artifacts.save(root / "compact", "trajectory", header, compact)
    return signed_and_not(*((root / name).read_bytes() for name in ("whole", "part", "compact")))


def read_experts(root: Path) -> None:
    content = (root / "expert-000.safetensors").read_bytes()
    begun = root / "unfinished-000" / "epoch-0000.safetensors"
    begun.parent.mkdir(exist_ok=True)
    begun.write_bytes(content)
    (root / "expert-000.safetensors").unlink()
    for snapshot in TrajectoryStore(root, ORIGIN).begun(0):
        assert snapshot.theta.isfinite().all()
    (root / "expert-000.safetensors").write_bytes(content)
    store = TrajectoryStore(root, ORIGIN)
    assert store.snapshots(0, [0, 2]).isfinite().all()
    assert forgetting_events(store.learned(0)).shape == (2,)


def make_configs(root: Path) -> list[bytes]:
    return [Config().yaml().encode(), *(presets()[n].encode() for n in ("tiny", "features"))]


def swap_in_yaml(data: bytes, rng: Random) -> bytes:
    try:
        value = yaml.safe_load(data)
        return yaml.safe_dump(mutate.swapped(value, rng)).encode("utf-8", "surrogatepass")
    except (yaml.YAMLError, ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return mutate.flip(data, rng)


def read_config(root: Path) -> None:
    config = load_config(root / "config.yaml")
    (root / "again.yaml").write_text(config.yaml(), "utf-8")
    assert load_config(root / "again.yaml") == config
    resolve(config)


def long_header(data: bytes, rng: Random) -> bytes:
    """A file that says its header is as long as can be."""
    return struct.pack("<Q", rng.choice((0, 1, 10**8, 2**32, 2**63, 2**64 - 1))) + data[8:]


JSON = (mutate.swap_in_json,)
TENSORS = (*(mutate.change_safetensors,) * 6, long_header)
TARGETS = {
    "table": Target("table.csv", make_table, (mutate.change_cells,), read_rows),
    "json lines": Target("table.jsonl", make_lines, (mutate.swap_in_json_lines,), read_rows),
    "karpathy": Target("train.json", make_annotations, JSON, read_annotations),
    "webdataset": Target("train.tar", make_shards, (mutate.change_tar,), read_shards),
    "image": Target("image", make_images, (), read_image),
    "embeddings": Target("images.npy", make_arrays, (mutate.change_array,), read_arrays, share=0.4),
    "artefact": Target("file.safetensors", make_artifacts, TENSORS, read_artifact),
    "distilled set": Target("file.safetensors", make_sets, TENSORS, read_set, share=0.5),
    "retriever": Target("file.safetensors", make_retrievers, TENSORS, read_retriever, share=0.03),
    "checkpoint": Target("file.safetensors", make_checkpoints, TENSORS, read_checkpoint, share=0.1),
    "experts": Target("expert-000.safetensors", make_experts, TENSORS, read_experts),
    "configuration": Target("config.yaml", make_configs, (swap_in_yaml,), read_config, share=0.05),
    **FOLDER_TARGETS,
    **RUN_TARGETS,
    **PUBLISHED_TARGETS,
}
