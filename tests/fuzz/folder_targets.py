"""Settings, and folders of several files that belong together."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import save_file

from lors.config import DataConfig, EncoderConfig, load_config
from lors.data.embeddings import load_embeddings
from lors.data.huggingface import read_huggingface
from lors.data.labelled import load_labelled
from lors.data.patterns import matching_files
from lors.encoders.image import image_trunk
from lors.encoders.text import build_text_trunk
from lors.runs.encode import _check_origin
from lors.system.progress import Silent
from tests.fuzz import mutate
from tests.fuzz.target import Target

PATTERNS = ("a-{0..2}.npy", "{a,b}-*.npy", "*", "a-[01].npy", "{00..01}-{a,b}.npy", "./a-0.npy")


def check_pairs(config: DataConfig) -> None:
    """Embeddings that load are numbers that fit each other, with captions that are text."""
    for split in load_embeddings(config, Silent()).splits.values():
        assert split.texts is not None
        assert np.isfinite(split.images[:]).all()
        assert np.isfinite(split.texts[:]).all()
        assert len(split.owner) == len(split.texts)
        assert set(split.owner) == set(range(len(split.images)))
        for caption in split.captions:
            caption.encode()


def array(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def make_tensors(root: Path) -> list[bytes]:
    (root / "texts.npy").write_bytes(array(values(20, 3)))
    made = []
    for tensors in ({"images": values(20, 4)}, {"x": values(20, 4).astype(np.float16)}):
        save_arrays(tensors, root / "images.safetensors")
        made.append((root / "images.safetensors").read_bytes())
    save_arrays({"images": values(20, 4), "other": values(3)}, root / "images.safetensors")
    return [*made, (root / "images.safetensors").read_bytes()]


def read_embedded(**names: str) -> Callable[[Path], None]:
    return lambda root: check_pairs(
        DataConfig(source="embeddings", root=root, annotations={**names})
    )


def make_texts(root: Path) -> list[bytes]:
    (root / "images.npy").write_bytes(array(values(20, 4)))
    return [array(values(20, 3)), array(values(20, 2, 3)), array(values(20, 3).astype("f8"))]


def make_owners(root: Path) -> list[bytes]:
    make_texts(root)
    (root / "texts.npy").write_bytes(array(values(40, 3)))
    owner = np.repeat(np.arange(20), 2)
    return [array(owner), array(owner.astype(np.uint8)), array(owner.astype(">i4"))]


def make_encoded(root: Path) -> None:
    """What ``lors encode`` writes of two shards of ten images."""
    (root / "train").mkdir(exist_ok=True)
    for name in ("a", "b"):
        arrays = {"images": values(10, 4), "texts": values(20, 3)}
        arrays["owner"] = np.repeat(np.arange(10), 2)
        for side, content in arrays.items():
            (root / "train" / f"{side}-{name}.npy").write_bytes(array(content))
        lines = [{"key": f"{name}{i}", "captions": ["one", "two é"]} for i in range(10)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (root / "train" / f"pairs-{name}.jsonl").write_text(text)
    (root / "train" / "shards.txt").write_text("a\nb\n")


def make_shard_list(root: Path) -> list[bytes]:
    make_encoded(root)
    return [b"a\nb\n"]


def make_encoded_captions(root: Path) -> list[bytes]:
    make_encoded(root)
    return [(root / "train" / "pairs-b.jsonl").read_bytes()]


ORIGIN = {"image_trunk": "nf_resnet_tiny|None|32", "text_trunk": "0123456789abcdef"}


def make_origin(root: Path) -> list[bytes]:
    return [json.dumps(ORIGIN).encode()]


def read_origin(root: Path) -> None:
    _check_origin(root, dict(ORIGIN))


def make_patterns(root: Path) -> list[bytes]:
    for name in ("a-0", "a-1", "a-2", "b-0", "00-a", "00-b", "01-a", "01-b"):
        (root / f"{name}.npy").touch()
    (root.parent / "secret.npy").touch()
    if not (root / "link.npy").is_symlink():
        (root / "link.npy").symlink_to(root.parent / "secret.npy")
    return [pattern.encode() for pattern in PATTERNS]


def change_pattern(data: bytes, rng: Random) -> bytes:
    parts = (
        b"{",
        b"}",
        b"..",
        b"*",
        b"**",
        b"/",
        b"../",
        b"{0..99}",
        b"{a,b}",
        b"?",
        b"[!a]",
        b",",
    )
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(parts) * rng.choice((1, 1, 2, 9)) + data[place:]


def read_pattern(root: Path) -> None:
    pattern = (root / "pattern").read_text("utf-8", "replace")
    for path in matching_files(root.resolve(), pattern, "data.annotations.train"):
        assert path.is_relative_to(root.resolve())


OVERRIDES = (
    "distill.budget=8\nevaluate.epochs=3",
    "data={source: table, root: /x}\nencoder.scope=heads",
    "experts.text_rate=null\ntrackers=[tensorboard]\nmatching.phases=[]",
    "similarity.kind=lowrank\nsimilarity.rank=2\ndistill.fixed=[rates]\nloss=wbce",
)


def make_overrides(root: Path) -> list[bytes]:
    return [text.encode() for text in OVERRIDES]


def read_overrides(root: Path) -> None:
    lines = (root / "overrides").read_text("utf-8", "surrogateescape").split("\n")
    config = load_config("tiny", lines)
    assert load_config(config.model_dump(mode="json")) == config


WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "red", "star", "on", "blue")


def make_bert(root: Path) -> Path:
    """A BERT of one small layer, as transformers and sentence-transformers save it."""
    import transformers

    folder = root / "bert"
    if not folder.exists():
        folder.mkdir()
        (folder / "vocab.txt").write_text("\n".join(WORDS))
        transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
        sizes = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2}
        sizes |= {"intermediate_size": 4, "max_position_embeddings": 16}
        config = transformers.BertConfig(vocab_size=len(WORDS), **sizes)
        transformers.BertModel(config).save_pretrained(folder)
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    return folder


def bert_file(name: str) -> Callable[[Path], list[bytes]]:
    return lambda root: [(make_bert(root) / name).read_bytes()]


def read_bert(root: Path) -> None:
    config = EncoderConfig(text=f"transformers:{root / 'bert'}")
    trunk = build_text_trunk(config, [])
    assert trunk.fingerprint
    embedded = trunk.embed(["a red star", "blue"], Silent())
    assert embedded.shape == (2, trunk.dim)


def make_weights(root: Path) -> list[bytes]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_file(image_trunk("nf_resnet_tiny", None, 32).state_dict(), root / "made.safetensors")
    return [(root / "made.safetensors").read_bytes()]


def read_weights(root: Path) -> None:
    trunk = image_trunk("nf_resnet_tiny", str(root / "weights.safetensors"), 32)
    assert trunk(torch.zeros(1, 3, 32, 32)).shape == (1, 128)


def make_cifar(root: Path) -> list[bytes]:
    (root / "cifar-10-batches-bin").mkdir(exist_ok=True)
    return [bytes(2 * (1 + 3 * 32 * 32))]


def read_cifar(root: Path) -> None:
    images = load_labelled("cifar10", root)
    for place in range(min(3, len(images))):
        assert images[place][0].size == (32, 32)


def hugging_face(root: Path) -> Any:
    """The package, with its caches in the folder of the target."""
    import datasets

    datasets.config.HF_DATASETS_CACHE = root.parent / "datasets"
    datasets.disable_progress_bars()
    return datasets


def read_dataset(root: Path) -> None:
    datasets = hugging_face(root)
    try:
        config = DataConfig(source="huggingface", root=root / "data")
        found = read_huggingface(config, Silent())
        for item in (item for items in found.values() for item in items):
            assert all(caption.strip() for caption in item.captions)
            assert item.load().mode == "RGB"
    finally:
        shutil.rmtree(datasets.config.HF_DATASETS_CACHE, ignore_errors=True)


def rows() -> list[dict[str, str]]:
    return [{"file_name": f"{i}.png", "caption": f"grey {i}"} for i in range(3)]


def make_image_folder(root: Path) -> None:
    from tests.fuzz.targets import picture

    (root / "data" / "train").mkdir(parents=True, exist_ok=True)
    for number in range(3):
        (root / "data" / "train" / f"{number}.png").write_bytes(picture(number))


def make_metadata(root: Path) -> list[bytes]:
    make_image_folder(root)
    return ["\n".join(map(json.dumps, rows())).encode()]


def make_metadata_csv(root: Path) -> list[bytes]:
    make_image_folder(root)
    table = io.StringIO()
    writer = csv.DictWriter(table, ["file_name", "caption"])
    writer.writeheader()
    writer.writerows(rows())
    return [table.getvalue().encode()]


def make_dataset(root: Path) -> Any:
    from tests.fuzz.targets import picture

    datasets = hugging_face(root)
    images = [{"bytes": picture(number), "path": None} for number in range(3)]
    kinds = datasets.Features({"image": datasets.Image(), "caption": datasets.Value("string")})
    return datasets.Dataset.from_dict({"image": images, "caption": ["a", "b", "c"]}, kinds)


def make_parquet(root: Path) -> list[bytes]:
    (root / "data").mkdir(exist_ok=True)
    made = make_dataset(root)
    made.to_parquet(root / "made.parquet")
    return [(root / "made.parquet").read_bytes()]


def saved_file(name: str) -> Callable[[Path], list[bytes]]:
    def make(root: Path) -> list[bytes]:
        if not (root / "data").exists():
            make_dataset(root).save_to_disk(root / "data")
        (found,) = (root / "data").glob(name)
        return [found.read_bytes()]

    return make


JSON = (mutate.swap_in_json,)
JSON_LINES = (mutate.swap_in_json_lines,)
CELLS = (mutate.change_cells,)
ARRAY = (mutate.change_array,)
ARRAYS = {"images": "images.npy", "texts": "texts.npy"}


def bert(name: str, aware: tuple[mutate.Mutation, ...] = JSON) -> Target:
    return Target(f"bert/{name}", bert_file(name), aware, read_bert, 0.02, "transformers")


def dataset(
    name: str, make: Callable[[Path], list[bytes]], aware: tuple[mutate.Mutation, ...] = ()
) -> Target:
    return Target(f"data/{name}", make, aware, read_dataset, 0.02, "datasets")


FOLDER_TARGETS = {
    "tensor embeddings": Target(
        "images.safetensors",
        make_tensors,
        (mutate.change_tensors,),
        read_embedded(images="images.safetensors", texts="texts.npy"),
        share=0.4,
    ),
    "text embeddings": Target("texts.npy", make_texts, ARRAY, read_embedded(**ARRAYS), share=0.4),
    "owners": Target(
        "owner.npy", make_owners, ARRAY, read_embedded(**ARRAYS, owner="owner.npy"), share=0.4
    ),
    "shard list": Target("train/shards.txt", make_shard_list, CELLS, read_embedded(), share=0.3),
    "encoded captions": Target(
        "train/pairs-b.jsonl", make_encoded_captions, JSON_LINES, read_embedded(), share=0.2
    ),
    "encoders": Target("encoders.json", make_origin, JSON, read_origin),
    "pattern": Target("pattern", make_patterns, (change_pattern,), read_pattern, share=0.3),
    "overrides": Target("overrides", make_overrides, CELLS, read_overrides, share=0.3),
    "transformers config": bert("config.json"),
    "transformers tokenizer": bert("tokenizer.json"),
    "transformers tokenizer config": bert("tokenizer_config.json"),
    "transformers weights": bert("model.safetensors", (mutate.change_tensors,)),
    "pooling": bert("1_Pooling/config.json"),
    "image weights": Target(
        "weights.safetensors", make_weights, (mutate.change_tensors,), read_weights, share=0.1
    ),
    "cifar": Target("cifar-10-batches-bin/data_batch_1.bin", make_cifar, (), read_cifar),
    "metadata lines": dataset("train/metadata.jsonl", make_metadata, JSON_LINES),
    "metadata table": dataset("train/metadata.csv", make_metadata_csv, CELLS),
    "parquet": dataset("train.parquet", make_parquet),
    "saved state": dataset("state.json", saved_file("state.json"), JSON),
    "saved information": dataset("dataset_info.json", saved_file("dataset_info.json"), JSON),
    "arrow": dataset("data-00000-of-00001.arrow", saved_file("*.arrow")),
}
