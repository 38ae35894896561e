from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from lors.config import EncoderConfig
from lors.encoders.transformers_text import TransformersText
from lors.system.errors import InputError
from lors.system.progress import Silent

transformers = pytest.importorskip("transformers")

CAPTIONS = ["a red circle", "the star and a blue ring on the square", "green", "a star"]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_embeddings_equal_the_model_run_one_caption_at_a_time(
    tiny_bert: Path, pooling: str
) -> None:
    """Batches of similar length, padding and masks change nothing."""
    trunk = TransformersText(str(tiny_bert), pooling)
    embedded = trunk.embed(CAPTIONS, Silent(), batch=2)
    model = transformers.BertModel.from_pretrained(tiny_bert).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    for caption, ours in zip(CAPTIONS, embedded, strict=True):
        with torch.no_grad():
            hidden = model(**tokenizer(caption, return_tensors="pt")).last_hidden_state[0]
        expected = hidden[0] if pooling == "cls" else hidden.mean(0)
        torch.testing.assert_close(torch.from_numpy(ours), expected, rtol=1e-4, atol=1e-5)


def test_auto_pooling_follows_the_folder(tiny_bert: Path, tmp_path: Path) -> None:
    assert TransformersText(str(tiny_bert)).pooling == "cls"
    folder = tmp_path / "sentence"
    shutil.copytree(tiny_bert, folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"pooling_mode_mean_tokens": True})
    )
    assert TransformersText(str(folder)).pooling == "mean"


def test_input_embeddings_of_tokens_give_what_the_tokens_give(tiny_bert: Path) -> None:
    trunk = TransformersText(str(tiny_bert), "cls")
    tower = trunk.tower()
    full = ["a red circle on the square"] * 2  # no padding: every token counts
    tokens = torch.from_numpy(trunk.tokens(full, 8)).long()
    assert tokens.shape == (2, 8)
    assert (tokens != 0).all()
    torch.testing.assert_close(tower(tower.words(tokens)), tower(tokens))


def test_word_embeddings_are_frozen_and_the_rest_trains(tiny_bert: Path) -> None:
    tower = TransformersText(str(tiny_bert)).tower()
    frozen = {name for name, p in tower.named_parameters() if not p.requires_grad}
    assert frozen == {
        "model.embeddings.word_embeddings.weight",
        "model.pooler.dense.weight",
        "model.pooler.dense.bias",
    }


def test_without_weights_the_configuration_is_enough(tiny_bert: Path) -> None:
    trunk = TransformersText(str(tiny_bert), weights="none")
    first, again = (trunk.tower().model.state_dict() for _ in range(2))
    assert all(torch.equal(first[key], again[key]) for key in first)


def test_the_fingerprint_tells_pooling_and_files_apart(tiny_bert: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path / "copy")
    marks = {
        TransformersText(str(folder), pooling).fingerprint
        for folder in (tiny_bert, tmp_path / "copy")
        for pooling in ("cls", "mean")
    }
    assert len(marks) == 2  # a copy is the same trunk
    (tmp_path / "copy" / "vocab.txt").write_text("other")
    assert TransformersText(str(tmp_path / "copy"), "cls").fingerprint not in marks


def test_folders_beside_the_files_of_a_model_change_nothing(
    tiny_bert: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny_bert, copy)
    for name in (".cache/huggingface", ".git/objects", "onnx.old"):
        (copy / name).mkdir(parents=True)
    trunks = [TransformersText(str(folder), "cls") for folder in (tiny_bert, copy)]
    assert trunks[0].fingerprint == trunks[1].fingerprint


@pytest.mark.parametrize("dim", [1, 17])
def test_a_file_that_lies_about_the_length_of_embeddings_is_found_out(
    tiny_bert: Path, dim: int
) -> None:
    trunk = TransformersText(str(tiny_bert), "cls")
    header, tensors = trunk.state()
    lying = TransformersText.restore(EncoderConfig(), {"kind": "x", **header, "dim": dim}, tensors)
    with pytest.raises(InputError, match=f"gives embeddings of 16 numbers, but {dim} are"):
        lying.embed(["a red circle"], Silent())


def test_clips_text_tower_gives_its_own_projection_though_it_pads_with_the_end(
    tmp_path: Path, tiny_bert: Path
) -> None:
    config = transformers.CLIPTextConfig(
        vocab_size=22,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        projection_dim=6,
        eos_token_id=3,
        bos_token_id=2,
        pad_token_id=3,
    )
    model = transformers.CLIPTextModelWithProjection(config).eval()
    model.save_pretrained(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.eos_token = tokenizer.pad_token = "[SEP]"
    tokenizer.save_pretrained(tmp_path)
    captions = ["a red circle", "a star", "the blue ring on the square"]
    trunk = TransformersText(str(tmp_path))
    embedded = trunk.embed(captions, Silent())
    for caption, ours in zip(captions, embedded, strict=True):
        tokens = tokenizer(caption, return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            expected = model(**tokens).text_embeds[0]
        torch.testing.assert_close(torch.from_numpy(ours), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match="CLIP"):
        TransformersText.build(str(tmp_path), EncoderConfig(text_pooling="mean"), [])


def test_a_text_longer_than_the_model_reads_is_refused(tiny_bert: Path) -> None:
    config = EncoderConfig(scope="all", text_length=65)
    with pytest.raises(InputError, match="at most 64 tokens"):
        TransformersText.build(str(tiny_bert), config, [])


def test_an_absent_model_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="local folder"):
        TransformersText.build(str(tmp_path / "absent"), EncoderConfig(), [])


def test_pickled_weights_are_refused(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    shutil.copytree(tiny_bert, folder)
    (folder / "model.safetensors").unlink()
    model = transformers.BertModel.from_pretrained(tiny_bert)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot load the text trunk"):
        TransformersText(str(folder)).tower()


def test_code_of_a_model_is_never_run(tiny_bert: Path, tmp_path: Path) -> None:
    folder, trace = tmp_path / "evil", tmp_path / "trace"
    shutil.copytree(tiny_bert, folder)
    (folder / "evil.py").write_text(f"open({str(trace)!r}, 'w').write('run')\nclass Evil: pass")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "evil",
        "auto_map": {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="cannot load the text trunk"):
        TransformersText(str(folder)).embed(["a"], Silent())
    assert not trace.exists()
