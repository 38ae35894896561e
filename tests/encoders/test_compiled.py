from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from lors.config import EncoderConfig, load_config
from lors.encoders import DualEncoder, FlatModel, Frozen, build_dual_encoder
from lors.encoders.compiled import Compiler
from lors.losses import nce
from lors.setting import setting_of
from lors.system.errors import InputError
from lors.training import Batch, sgd, train_step

CONFIG = EncoderConfig(image="nf_resnet_tiny", image_size=16)


def network(text_head: str = "linear") -> DualEncoder:
    config = CONFIG.model_copy(update={"text_head": text_head})
    return build_dual_encoder(config, Frozen(text_dim=6), 0)


def trained(model: DualEncoder, compiler: Compiler | None) -> Tensor:
    """θ after steps on batches of two sizes."""
    model.compiler = compiler
    draw = torch.Generator().manual_seed(0)
    for m in (4, 3, 4):
        images, texts = (torch.randn(m, *s, generator=draw) for s in ((3, 16, 16), (6,)))
        train_step(model, sgd(model, (0.1, 0.1)), Batch(images, texts, torch.eye(m)), nce)
    return FlatModel(model).flatten(model)


def test_compiled_steps_learn_the_same() -> None:
    """Each size of a batch in code of its own."""
    graphs = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        graphs.append(graph)
        return graph

    said: list[str] = []
    compiler = Compiler(said.append, backend)
    torch.testing.assert_close(trained(network(), compiler), trained(network(), None))
    assert len(graphs) == 2
    assert compiler.works
    assert said == []
    torch.testing.assert_close(
        trained(network(), Compiler(said.append, "aot_eager")), trained(network(), None)
    )


def test_what_cannot_be_compiled_trains_as_it_is_and_says_so_once() -> None:
    def broken(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        raise ValueError("no compiler\nand much more")

    said: list[str] = []
    compiler = Compiler(said.append, broken)
    for _ in range(2):
        assert torch.equal(trained(network(), compiler), trained(network(), None))
    (sentence,) = said
    assert sentence.startswith("compile=true has no effect: torch.compile fails here")
    assert "ValueError: no compiler" in sentence
    assert "much more" not in sentence


def test_a_mistake_of_the_caller_is_not_hidden() -> None:
    said: list[str] = []
    model = network()
    model.compiler = Compiler(said.append, "eager")
    batch = Batch(torch.ones(2, 3, 16, 16), torch.ones(2, 5), torch.eye(2))
    with pytest.raises(RuntimeError, match="shapes"):
        train_step(model, sgd(model, (0.1, 0.1)), batch, nce)


def test_dropout_and_activations_that_are_made_again_are_not_compiled() -> None:
    compiler = Compiler(print, "eager")
    assert compiler.serves(network())
    assert not compiler.serves(network("mlp-published"))
    model = network()
    model.compiler = compiler
    model.recompute()
    assert model.compiler is None
    with pytest.raises(InputError, match="compile=false or recompute=false"):
        load_config("tiny", ["compile=true", "recompute=true"])


def test_a_setting_compiles_its_networks_where_it_is_asked_to() -> None:
    plain, asked = (setting_of(load_config("tiny", c)) for c in ([], ["compile=true"]))
    assert plain.model(0).compiler is None
    assert asked.model(0).compiler is asked.model(1).compiler is not None
