"""The sketch of the notebook door in the design, line by line, on small data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import lors
from tests.test_notebook_door import QUICK, SMALL_LORS, latent, scenes

CAPTIONS = "captions.csv"


def photos(folder: Path) -> Path:
    images, captions = scenes(60)
    for number, image in enumerate(images):
        image.save(folder / f"{number}.png")
    rows = [f"{number}.png,{caption}" for number, caption in enumerate(captions)]
    (folder / CAPTIONS).write_text("\n".join(["image,caption", *rows]))
    return folder


def make_my_dual_encoder() -> tuple[nn.Module, nn.Module]:
    image = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.GELU(), nn.Flatten(), nn.LazyLinear(6))
    image(torch.zeros(1, 3, 16, 16))
    return image, nn.Linear(8, 6)


def my_loss(logits: Tensor, similarity: Tensor) -> Tensor:
    return (logits.sigmoid() - similarity).square().mean()


def test_every_line_of_the_sketch(tmp_path: Path, tiny_bert: Path) -> None:
    options: Any = SMALL_LORS
    images, texts = latent()
    dataset = list(zip(*scenes(60), strict=True))

    small = lors.distill(images, texts, pairs=20, rank=2, **QUICK)
    assert small.config.matching.kind == "hindsight"
    small = lors.distill(
        lors.Pairs.folder(photos(tmp_path)),
        pairs=10,
        method="lors",
        encoder=lors.Encoder(
            image="nf_resnet_tiny", image_size=16, text=f"transformers:{tiny_bert}", scope="image"
        ),
        **options,
    )
    assert small.images.shape[1:] == (3, 16, 16)
    small = lors.distill(
        dataset,
        pairs=10,
        model=make_my_dual_encoder,
        loss=my_loss,
        image_size=16,
        text_dim=8,
        **options,
    )
    assert small.loss is my_loss

    small = lors.distill(images, texts, pairs=20, method="lors", **options)
    assert len(small.images) == len(small.texts) == len(small.similarity)
    assert len(small.rates) == 2
    for batch_images, batch_texts, similarity in small.loader(batch_size=32):
        assert len(batch_images) == len(batch_texts) == len(similarity)
    recall = lors.evaluate(small, test=latent(50, seed=1), progress=False)
    assert recall.mean == recall.recall.mean.mean
    small.save(tmp_path / "small.safetensors")
    assert isinstance(lors.load(tmp_path / "small.safetensors"), lors.DistilledSet)

    @lors.matcher("sketched")
    class Mine:
        """Pulls the mean of the set to that of real pairs."""

        class Options(lors.MatchingOptions):
            strength: float = 1.0

        def __init__(self, setting: lors.Setting, options: Options) -> None:
            self.setting, self.options = setting, options
            self.state: dict[str, Tensor] = {}

        def backward(self, synthetic: lors.SyntheticPairs, generator: torch.Generator) -> float:
            inputs, words = self.setting.real_batch(generator, 32)
            loss = (inputs.mean(0) - synthetic.images.mean(0)).square().sum()
            loss = loss + (words.mean(0) - synthetic.texts.mean(0)).square().sum()
            (self.options.strength * loss).backward()
            return loss.item()

    table = lors.compare(
        images, texts, methods=["sketched", "lors", "hindsight"], pairs=[20], seeds=1, **options
    )
    assert {record.column for record in table.records} == {"sketched", "LoRS (wBCE)", "Hindsight"}
    assert not any(record.failed for record in table.records), table
