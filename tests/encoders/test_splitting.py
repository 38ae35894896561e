from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import load_file, save_file

from lors import load_config
from lors.encoders.splitting import layer_names, split_trunk
from lors.evaluation.protocol import measure
from lors.experts import experts_of
from lors.runs.pipeline import run
from lors.runs.plan import plan
from lors.sets.distilled import DistilledSet
from lors.setting import Setting, setting_of
from lors.share.retriever import Retriever
from lors.share.trunk import write_image_trunk
from lors.system.errors import InputError

TRUNK = "mobilenetv2_035"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trunk "pretrained" elsewhere, with statistics that are not those of a fresh one."""
    torch.manual_seed(0)
    trunk = timm.create_model(TRUNK)
    trunk.train()
    with torch.no_grad():
        for _ in range(3):
            trunk(torch.randn(8, 3, 32, 32))
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    save_file(trunk.state_dict(), path)
    return path


def settings(weights: Path, *more: str) -> list[str]:
    return [
        *(f"encoder.image={TRUNK}", f"encoder.image_weights={weights}", "encoder.image_size=32"),
        *("encoder.image_head=none", "encoder.scope=image", *more),
    ]


def setting_with(weights: Path, *more: str) -> Setting:
    return setting_of(load_config("tiny", settings(weights, *more)))


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("mobilenetv2_035", "blocks.3"),
        ("tf_efficientnet_lite0", "conv_head"),
        ("resnet10t", "layer3"),
        ("nf_resnet_tiny", "stages.1"),
        ("convnext_atto", "stages.2"),
    ],
)
def test_two_parts_are_the_whole(name: str, first: str) -> None:
    torch.manual_seed(0)
    trunk = timm.create_model(name, num_classes=0).eval()
    assert first in layer_names(trunk)
    before, after = split_trunk(trunk, first)
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(after(before(images)), trunk(images))
    assert sum(p.numel() for p in after.parameters()) < sum(p.numel() for p in trunk.parameters())


@pytest.mark.parametrize(
    ("name", "first", "says"),
    [
        ("mobilenetv2_035", "block.3", "did you mean"),
        ("mobilenetv2_035", "conv_stem", "no later layer"),
        ("mobilenetv2_035", "global_pool", "no weights"),
        ("vit_tiny_patch16_224", "blocks.5", "no chain"),
    ],
)
def test_a_layer_that_cannot_be_the_first_is_refused(name: str, first: str, says: str) -> None:
    trunk = timm.create_model(name, num_classes=0).eval()
    with pytest.raises(InputError, match=says):
        split_trunk(trunk, first)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["encoder.scope=heads", "encoder.image_head=linear"], "scope=image"),
        (["encoder.image_weights=null"], "image_weights"),
    ],
)
def test_it_needs_a_pretrained_trunk_that_trains(weights: Path, more: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_config("tiny", settings(weights, "encoder.trains_from=blocks.3", *more))


def test_untrained_networks_are_the_same_with_and_without(weights: Path) -> None:
    """Only what trains differs, so both retrieve the same before training."""
    whole, part = setting_with(weights), setting_with(weights, "encoder.trains_from=blocks.3")
    reached = [measure(each.model("a"), each.real["test"]) for each in (whole, part)]
    assert reached[0] == reached[1]
    assert part.flat.sides[0] < whole.flat.sides[0]
    assert part.flat.sides[1] == whole.flat.sides[1]


def test_the_first_part_stays_and_the_rest_trains(weights: Path, tmp_path: Path) -> None:
    setting = setting_with(weights, "encoder.trains_from=blocks.3", "experts.count=1")
    write_image_trunk(setting, path := tmp_path / "trunk.safetensors")
    trained, start = timm.create_model(TRUNK, num_classes=0), timm.create_model(TRUNK)
    trained.load_state_dict(load_file(path))
    start.load_state_dict(load_file(weights))
    assert torch.equal(trained.blocks[2][0].conv_dw.weight, start.blocks[2][0].conv_dw.weight)
    assert not torch.equal(trained.blocks[3][0].conv_dw.weight, start.blocks[3][0].conv_dw.weight)


def test_experts_of_another_part_are_others(weights: Path) -> None:
    folders = {
        experts_of(setting_with(weights, *more, "experts.count=1", "experts.epochs=3")).folder
        for more in ([], ["encoder.trains_from=blocks.3"], ["encoder.trains_from=blocks.5"])
    }
    assert len(folders) == 3


def test_a_plan_and_hindsight_know_the_part_that_trains(weights: Path) -> None:
    changes = settings(weights, "encoder.trains_from=blocks.5", "matching.kind=hindsight")
    found = plan(load_config("tiny", changes))
    assert found.parameters == setting_with(weights, "encoder.trains_from=blocks.5").flat.sides


def test_a_run_through_part_of_a_trunk_to_a_retriever(weights: Path, tmp_path: Path) -> None:
    changes = settings(weights, "encoder.trains_from=blocks.5", "distill.iterations=2")
    result = run(load_config("tiny", changes), tmp_path / "run")
    made = DistilledSet.load(tmp_path / "run" / "distilled.safetensors")
    assert made.images.shape[1:] == (3, 32, 32)
    assert result.distilled.mean > 0
    kept = Retriever.train(made)
    kept.save(tmp_path / "retriever.safetensors")
    loaded = Retriever.load(tmp_path / "retriever.safetensors")
    pixels = made.pixels().numpy()
    assert torch.equal(loaded.embed_pixels(pixels), kept.embed_pixels(pixels))
