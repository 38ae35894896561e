from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lors.config import EncoderConfig
from lors.encoders.lsa import Lsa
from lors.encoders.text import build_text_trunk, embed_once
from lors.files import artifacts
from lors.runs.doctor import examine, remove
from lors.system.errors import InputError
from lors.system.progress import Silent

CAPTIONS = [
    "a red ball on the left",
    "a red disc on the left side",
    "a big green box",
    "a huge green cube",
    "two dogs run over a field",
    "a dog runs over grass",
]


def test_similar_captions_are_near_each_other() -> None:
    embedded = Lsa.fit(CAPTIONS, 3).embed(CAPTIONS, Silent())
    embedded -= embedded.mean(0)
    unit = embedded / np.linalg.norm(embedded, axis=1, keepdims=True)
    similarity = unit @ unit.T
    np.fill_diagonal(similarity, -1)
    assert similarity.argmax(1).tolist() == [1, 0, 3, 2, 5, 4]


def test_a_restored_trunk_embeds_the_same_bits() -> None:
    trunk = Lsa.fit(CAPTIONS, 3)
    again = Lsa.restore(EncoderConfig(), *trunk.state())
    assert again.fingerprint == trunk.fingerprint
    new = ["a green ball", "something unheard of"]
    assert np.array_equal(again.embed(new, Silent()), trunk.embed(new, Silent()))


def test_too_many_dimensions_and_empty_captions_are_refused() -> None:
    with pytest.raises(InputError, match=r"lower encoder\.text_dim"):
        Lsa.fit(CAPTIONS, 50)
    with pytest.raises(InputError, match="cannot be fitted"):
        Lsa.fit(["!", "?"], 1)


def test_captions_are_fitted_and_embedded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    config = EncoderConfig(text_dim=3)
    first = embed_once(build_text_trunk(config, CAPTIONS), CAPTIONS, Silent())

    def again(*_: object) -> None:
        raise AssertionError("worked twice")

    monkeypatch.setattr(Lsa, "fit", again)
    monkeypatch.setattr(Lsa, "embed", again)
    assert np.array_equal(embed_once(build_text_trunk(config, CAPTIONS), CAPTIONS, Silent()), first)
    assert list((artifacts.home() / "texts").glob("lsa-*.safetensors"))


def test_a_damaged_cache_says_how_it_is_made_again(lors_home: Path) -> None:
    config = EncoderConfig(text="lsa", text_dim=2)
    captions = [*CAPTIONS, "a caption that no other test has"]
    before = set((lors_home / "texts").glob("lsa-*"))
    Lsa.build("lsa", config, captions)
    (path,) = set((lors_home / "texts").glob("lsa-*.safetensors")) - before
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="run 'lors doctor --clean', and it is made again"):
        Lsa.build("lsa", config, captions)
    remove(examine())
    assert Lsa.build("lsa", config, captions).dim == 2
