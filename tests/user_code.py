"""A researcher's code, for mypy --strict: every public name of lors, used as its types say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

import lors
from lors.setting import setting_of

T = TypeVar("T")


class Titles:
    """A ``lors.Progress`` of one's own."""

    def track(self, items: Iterable[T], what: str, total: int, done: int = 0) -> Iterator[T]:
        print(what, total - done)
        return iter(items)

    def note(self, **facts: Any) -> None:
        print(facts)

    def say(self, text: str) -> None:
        print(text)


@lors.loss("user-squared")
def squared(logits: Tensor, similarity: Tensor) -> Tensor:
    return (logits - 10 * similarity).square().mean()


@lors.register("head", "user-head")
def user_head(inputs: int, outputs: int) -> nn.Module:
    return nn.Linear(inputs, outputs)


@lors.image_trunk("user-flat")
def flat() -> nn.Module:
    return nn.Flatten()


@lors.text_trunk("user-lengths")
def lengths(captions: Sequence[str]) -> np.ndarray:
    return np.array([[len(caption), caption.count(" ")] for caption in captions], np.float32)


@lors.network("user-heads")
def heads() -> tuple[nn.Module, nn.Module]:
    return nn.Linear(12, 4), nn.Linear(10, 4)


@lors.matcher("user-means", loss="wbce", similarity="lowrank")
class Means:
    """Pulls the mean of the set to that of real pairs."""

    class Options(lors.MatchingOptions):
        strength: float = 1.0

    def __init__(self, setting: lors.Setting, options: Options) -> None:
        self.setting, self.options = setting, options
        self.state: dict[str, Tensor] = {}

    def backward(self, synthetic: lors.SyntheticPairs, generator: torch.Generator) -> float:
        images, texts = self.setting.real_batch(generator, 32)
        loss = (images.mean(0) - synthetic.images.mean(0)).square().sum()
        loss = loss + (texts.mean(0) - synthetic.texts.mean(0)).square().sum()
        (self.options.strength * loss).backward()
        return float(loss.item())


def distilled(images: np.ndarray, texts: Tensor, out: Path, progress: lors.Progress) -> None:
    small: lors.DistilledSet = lors.distill(
        images, texts, pairs=10, method="lors", loss=squared, out=out, progress=progress, rank=2
    )
    parts: tuple[Tensor, Tensor, Tensor] = (small.images, small.texts, small.similarity)
    image_rate, text_rate = small.rates
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray] = small.arrays()
    words: Sequence[str] = small.captions
    block: Tensor = small.to("cpu").similarity_at([0, 1])
    both: lors.DistilledSet = lors.merge([small, out / "other.safetensors"], budget=30)
    loss = lors.ClipLoss(small.config.loss)
    for batch in small.loader(batch_size=4):
        print(len(batch), parts, image_rate + text_rate, arrays, words, block, both, loss)
    small.save(out / "small.safetensors")


def measured(path: Path, images: np.ndarray, texts: np.ndarray) -> float:
    opened: lors.DistilledSet | lors.Retriever | lors.Run = lors.load(path)
    if isinstance(opened, lors.Retriever):
        hits: list[tuple[int, float]] = opened.search("a dog", opened.embed_photos(["a.jpg"]))
        return hits[0][1]
    row: lors.Row = lors.evaluate(opened, test=(images, texts), model=heads, loss="wbce")
    saved: lors.Row = lors.evaluate_set(path, ["evaluate.seeds=2"])
    return row.mean - saved.recall.ir1.mean


def imported(theirs: Path, out: Path) -> float:
    found: lors.DistilledSet = lors.import_set(theirs, like="demo", alpha=3)
    lors.export_published(found, out / "back.pt")
    store = lors.import_experts([theirs], "demo", out / "experts", {"experts.epochs": 2})
    judged: lors.Results = lors.judge(theirs, "demo", ["evaluate.seeds=2"], references=False)
    return judged.distilled.mean + len(store.missing(1))


def compared(images: np.ndarray, texts: np.ndarray, method: lors.Method) -> lors.Comparison:
    found: lors.Comparison = lors.compare(
        images, texts, methods=["random", "user-means", method], pairs=[5, 10], seeds=2
    )
    frame = found.to_pandas()
    print(frame, found.mean("random", 5), found.records[0].seed, found.full_data[0].mean)
    return found


def photos(images: list[Image.Image], captions: list[str]) -> lors.DistilledSet:
    pairs: lors.Pairs = lors.Pairs.images(images, captions, skip_bad=True)
    problems: list[str] = pairs.skipped
    encoder = lors.Encoder(image=flat, text="own:user-lengths", image_size=8, scope="heads")
    print(problems, encoder.settings())
    try:
        return lors.distill(pairs, pairs=8, encoder=encoder)
    except lors.InputError as error:
        raise lors.LorsError(f"not these: {error}") from error


def ran(out: Path) -> Path:
    config = lors.load_config("tiny", {"distill.iterations": 2})
    results: lors.Results = lors.run(config, out, Titles(), references=False)
    setting = setting_of(config)
    small = lors.Run(out).distilled
    model = lors.train_on(small.pairs, setting.model("user"), small.loss, config.evaluate)
    test = setting.real["test"]
    images, texts = test.embed(model)
    same = lors.recall(images, texts, torch.from_numpy(test.owner)) == lors.measure(model, test)
    print(results.distilled.mean, same, lors.__version__)
    found = lors.search(out, "a red circle", count=3)
    print([(match.name, match.score) for match in found])
    return lors.write_report(out)
