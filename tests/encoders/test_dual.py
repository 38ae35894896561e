from __future__ import annotations

import pytest
import torch

from lors.config import EncoderConfig
from lors.encoders import DualEncoder, FlatModel, Frozen
from lors.encoders import build_dual_encoder as build
from lors.encoders.image import image_trunk
from lors.system.errors import InputError

CONFIG = EncoderConfig(image_size=16, text_dim=6)


def build_dual_encoder(config: EncoderConfig, text_dim: int, seed: int) -> DualEncoder:
    if config.scope != "heads":
        return build(config, Frozen(text_dim), seed)
    torch.manual_seed(0)
    trunk = image_trunk(config.image, None, config.size())
    return build(config, Frozen(text_dim, feature_dim=128, trunk=trunk), seed)


def inputs(m: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    return torch.randn(m, 3, 16, 16, generator=rng), torch.randn(m, 6, generator=rng)


def test_logits_are_cosines_over_temperature() -> None:
    model = build_dual_encoder(CONFIG, 6, 0)
    images, texts = inputs()
    u, v = model.embed_images(images), model.embed_texts(texts)
    torch.testing.assert_close(u.norm(dim=1), torch.ones(4))
    torch.testing.assert_close(model(images, texts), u @ v.T / 0.07)


def test_images_in_any_order_of_memory_give_the_same_bits() -> None:
    model = build_dual_encoder(CONFIG, 6, 0)
    images, texts = inputs()
    other = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(model(images, texts), model(other, texts))
    assert torch.equal(model.embed_images(images), model.embed_images(other))
    assert torch.equal(*(model.trunk_features(i, texts)[0] for i in (images, other)))


def test_the_flat_model_is_the_model() -> None:
    model, other = build_dual_encoder(CONFIG, 6, 0), build_dual_encoder(CONFIG, 6, 1)
    flat = FlatModel(other)
    theta = flat.flatten(model)
    assert len(theta) == sum(flat.sides)
    torch.testing.assert_close(flat(theta, *inputs()), model(*inputs()))
    flat.load(theta, other)
    torch.testing.assert_close(other(*inputs()), model(*inputs()))


def test_image_parameters_come_first_and_move_only_images() -> None:
    flat = FlatModel(build_dual_encoder(CONFIG, 6, 0))
    theta = flat.flatten(flat.model).requires_grad_()
    images, texts = inputs()
    (grad,) = torch.autograd.grad(flat.model.embed_texts(texts).sum() + 0 * theta.sum(), theta)
    assert grad.abs().sum() == 0
    moved = theta.detach().clone()
    moved[: flat.sides[0]] += 0.1
    flat.load(moved, flat.model)
    fresh = build_dual_encoder(CONFIG, 6, 0)
    torch.testing.assert_close(flat.model.embed_texts(texts), fresh.embed_texts(texts))
    assert not torch.allclose(flat.model.embed_images(images), fresh.embed_images(images))


def test_seeds_draw_what_trains_and_nothing_else() -> None:
    for scope in ("image", "heads"):
        config = CONFIG.model_copy(update={"scope": scope, "image_head": "linear"})
        first, again, other = (build_dual_encoder(config, 6, seed) for seed in (0, 0, 1))
        flat = FlatModel(first)
        assert torch.equal(flat.flatten(first), flat.flatten(again))
        assert not torch.equal(flat.flatten(first), flat.flatten(other))
        frozen = first.freeze(inputs()[0])
        assert torch.equal(frozen, other.freeze(inputs()[0]))


def test_scope_heads_trains_only_the_heads() -> None:
    config = CONFIG.model_copy(
        update={"scope": "heads", "image_head": "mlp", "text_head": "mlp", "embed_dim": 8}
    )
    model = build_dual_encoder(config, 6, 0)
    images, texts = inputs()
    features = model.freeze(images)
    assert features.shape == (4, 128)
    assert model.trunk is not None
    model(features, texts).sum().backward()
    assert all(p.grad is None for p in model.trunk.parameters())
    assert all(p.grad is not None for side in model.sides() for p in side)
    assert sum(FlatModel(model).sides) == sum(
        p.numel() for p in model.parameters() if p.requires_grad
    )


def test_normalise_undoes_mean_and_deviation() -> None:
    model = build_dual_encoder(CONFIG, 6, 0)
    grey = torch.full((1, 3, 2, 2), 255, dtype=torch.uint8)
    torch.testing.assert_close(model.normalise(grey), torch.full((1, 3, 2, 2), (1 - 0.5) / 0.25))


def test_head_none_needs_equal_sizes() -> None:
    with pytest.raises(InputError, match=r"encoder\.embed_dim"):
        build_dual_encoder(CONFIG.model_copy(update={"embed_dim": 5}), 6, 0)
