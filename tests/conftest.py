"""Shared parts of the tests."""

from __future__ import annotations

import copy
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch

from lors.config import Config, load_config
from lors.experts import experts_of
from lors.runs.pipeline import run
from lors.selection import select
from lors.sets.synthetic import SyntheticPairs
from lors.setting import Setting, setting_of
from tests import devices
from tests.processes import loaded_processes

# No deadlines, which fail on a busy machine, and the same examples each time.
hypothesis.settings.register_profile("lors", deadline=None, derandomize=True)
hypothesis.settings.load_profile("lors")

collect_ignore = ["user_code.py"]  # read by mypy; importing it would register its things

devices.prepare()

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        devices.skip_elsewhere(item)


@pytest.fixture(scope="session", autouse=True)
def tolerances() -> Iterator[None]:
    """On other devices than the CPU, numbers may differ a little more: see ``tests/devices.py``."""
    with devices.loosened():
        yield


@pytest.fixture(scope="session", autouse=True)
def lors_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Caches and experts of the tests and of the docstrings live in a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.getbasetemp() / "lors home"
        patch.setenv("LORS_HOME", str(home))
        yield home


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Jobs in the background of a shell ignore SIGINT or SIGHUP, and so would the tests of them."""
    handlers: dict[int, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def loaded_workers() -> Iterator[None]:
    """Workers start with PyTorch imported, and with one thread each: other tests need the cores.

    Commands in processes of their own, as in ``test_outside.py``, have workers as users have them.
    """
    started = SimpleNamespace(get_context=lambda method: loaded_processes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lors.system.workers.multiprocessing", started)
        patch.setattr("lors.comparison.run._cores", lambda: 1)
        yield


@pytest.fixture(scope="session")
def tiny() -> Config:
    return load_config("tiny")


@pytest.fixture(scope="session")
def setting(tiny: Config) -> Setting:
    """That of the smallest preset, with its experts trained."""
    made = setting_of(tiny)
    experts_of(made)
    return made


def altered(setting: Setting, **parts: Any) -> Setting:
    """A setting with other parts than its configuration would give it: ``real``, ``model``, …"""
    other = copy.copy(setting)
    vars(other).update({"flat": setting.flat, **parts})
    return other


@pytest.fixture(scope="session")
def tiny_run(tiny: Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the smallest preset. Copy it before changing anything in it."""
    out = tmp_path_factory.mktemp("runs") / "tiny"
    run(tiny, out)
    return out


FEATURES = [
    "distill.iterations=2",
    "distill.evaluate_every=0",
    "evaluate.epochs=2",
    "evaluate.seeds=1",
    "encoder.scope=heads",
    "encoder.space=features",
    "encoder.image_head=linear",
]


@pytest.fixture(scope="session")
def features_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in scenes as features."""
    out = tmp_path_factory.mktemp("runs") / "features"
    run(load_config("tiny", FEATURES), out, references=False)
    return out


@pytest.fixture(scope="session")
def embeddings_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Given embeddings, without captions, in a folder that nobody should hear of."""
    root = tmp_path_factory.mktemp("secret")
    draw = np.random.default_rng(0)
    for name in ("images", "texts"):
        np.save(root / f"{name}.npy", draw.normal(size=(60, 8)).astype(np.float32))
    files = ["data.annotations.images=images.npy", f"data.annotations.texts={root}/texts.npy"]
    source = ["data.source=embeddings", "data.pairs={}", f"data.root={root}", *files]
    out = tmp_path_factory.mktemp("runs") / "embeddings"
    folder = f"experts.folder={root}/experts"
    small = ["distill.budget=12", "similarity.rank=1"]
    run(load_config("tiny", [*FEATURES, *source, *small, folder]), out, references=False)
    return out


def random_pairs(setting: Setting, rate: float = 0.1) -> SyntheticPairs:
    """Real pairs of a setting, as many as its budget holds."""
    (images, _), captions = select(setting, "random", setting.config.distill.budget, 0)
    pairs = setting.plain_pairs(images, captions)
    pairs.rates.data.fill_(rate)
    return pairs


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


WORDS = "a an the red green blue yellow purple orange white black circle square star ring on and"


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two small layers with a vocabulary of a few words, as transformers saves it."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("tiny_bert")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A CLIP small enough to build in a moment, registered with open_clip."""
    open_clip = pytest.importorskip("open_clip")
    path = tmp_path_factory.mktemp("open_clip") / "tiny-clip.json"
    vision = {"image_size": 32, "layers": 1, "width": 16, "patch_size": 16, "head_width": 16}
    text = {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
    path.write_text(json.dumps({"embed_dim": 8, "vision_cfg": vision, "text_cfg": text}))
    open_clip.add_model_config(path)
    return "tiny-clip"
