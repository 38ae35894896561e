"""The dataset card of a set: what it is, how it was made, what it is worth, how to train on it.

It is the README.md of a dataset on the Hugging Face Hub, whose front matter says how to load it.
See https://huggingface.co/docs/hub/datasets-cards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from lors.config import Config, SimilarityConfig
from lors.config.public import public_config
from lors.encoders.own import is_own
from lors.evaluation.results import FULL_DATA, Row, recall_table
from lors.runs.training_code import TESTING, test_inputs, training_code
from lors.sets.distilled import DistilledSet

__all__ = ["card"]

OWN_ENCODER = "an encoder given in Python"
LICENCE = """\
# license: to be filled in, as far as that of the source data allows
"""


def card(
    distilled: DistilledSet,
    rows: Mapping[str, Row],
    versions: Mapping[str, str],
    files: Mapping[str, str] | None = None,
) -> str:
    """The card as Markdown. It names no folder of this machine.

    Args:
        distilled: the set.
        rows: what it is worth, and what it is compared with; may be empty.
        versions: of the software that made the set.
        files: what lies beside it in an export, by name.
    """
    files = files or {}
    parts = [
        _front_matter(distilled, files),
        f"# {_title(distilled)}",
        _summary(distilled, rows),
        *(["## Files", _table(("file", "what it is"), files.items())] if files else []),
        "## How it was made",
        _table(("", ""), _making(distilled, versions).items()),
        *(
            []
            if distilled.imported
            else [f"Again, with the same bits on the same machine: `{_command(distilled)}`"]
        ),
        *(["## What it is worth", _worth(distilled), _recalls(rows)] if rows else []),
        "## How to train on it",
        "With `lors` installed, this is the protocol that the set was measured with:",
        f"```python\n{training_code(distilled)}```",
        f"To test it on pairs of your own, {test_inputs(distilled)}:",
        f"```python\n{TESTING}```",
        _variations(distilled),
        "## What it is not",
        _caveats(distilled),
        "## Licence",
        "To be filled in by whoever publishes this set, above and here. The pairs derive from "
        "the source data, so its licence has a say; `lors` claims no rights in them.",
    ]
    return "\n\n".join(parts) + "\n"


def _front_matter(distilled: DistilledSet, files: Mapping[str, str]) -> str:
    count = len(distilled)
    size = "n<1K" if count < 1000 else "1K<n<10K" if count < 10_000 else "10K<n<100K"
    about: dict[str, Any] = {
        "pretty_name": _title(distilled),
        "tags": ["dataset-distillation", "image-text", "contrastive-learning", "lors"],
        "size_categories": [size],
    }
    data = ["metadata.jsonl", "images/*.png"] if "metadata.jsonl" in files else ["pairs.jsonl"]
    if files:
        about["configs"] = [
            {"config_name": "default", "data_files": [{"split": "train", "path": data}]}
        ]
    return f"---\n{LICENCE}{yaml.safe_dump(about, sort_keys=False, allow_unicode=True)}---"


def _source(distilled: DistilledSet) -> str:
    data = distilled.config.data
    return data.name or data.source


def _title(distilled: DistilledSet) -> str:
    how = "distilled" if distilled.config.selection.kind is None else "selected"
    how = "imported for lors," if distilled.imported else how
    return f"{len(distilled)} image-text pairs {how} from {_source(distilled)}"


def _summary(distilled: DistilledSet, rows: Mapping[str, Row]) -> str:
    real = f"{rows[FULL_DATA].pairs:,} " if FULL_DATA in rows else ""
    what = (
        f"{len(distilled)} pairs that another project made for the {real}real ones"
        if distilled.imported
        else f"{len(distilled)} synthetic pairs that stand for the {real}real ones"
        if distilled.config.selection.kind is None
        else f"{len(distilled)} pairs chosen from the {real}real ones"
    )
    return (
        f"{what} of `{_source(distilled)}` when a CLIP-style dual encoder is trained: images, text "
        "embeddings, and the similarity S between every image and every text. They hold as many "
        f"numbers as {distilled.storage():.2f} plain pairs."
    )


def _making(distilled: DistilledSet, versions: Mapping[str, str]) -> dict[str, str]:
    config = public_config(distilled.config)
    encoder = config.encoder
    similarity = config.similarity_within(distilled.pairs.pair_numbers())
    if distilled.imported:
        method = f"of another project, imported from `{distilled.imported}`"
    elif config.selection.kind is not None:
        method = f"selection by {config.selection.kind}"
    else:
        most = "at most " if config.distill.patience else ""
        method = f"{config.matching.kind} matching, {most}{config.distill.iterations} iterations"
    image_rate, text_rate = distilled.rates
    return {
        "method": method,
        "data": f"{_source(distilled)}, the training split",
        "an image": f"{_shape(distilled.pairs.images)} numbers, space `{encoder.space}`",
        "a text": f"{_shape(distilled.pairs.texts)} numbers",
        "similarity": _similarity(similarity, len(distilled)),
        **_encoders(distilled, config),
        "what trains": f"scope `{encoder.scope}`",
        "loss": f"{config.loss}, temperature {encoder.temperature:g}",
        "rates": f"{image_rate:.4g} (image), {text_rate:.4g} (text)",
        "budget": f"{config.distill.budget} pairs",
        "seed": str(config.seed),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def _similarity(config: SimilarityConfig, pairs: int) -> str:
    if config.kind != "lowrank":
        return config.kind
    lors = "[LoRS](https://arxiv.org/abs/2406.03793)"
    return f"low-rank ({lors}), rank {min(config.rank, pairs)}, α = {config.alpha:g}"


def _encoders(distilled: DistilledSet, config: Config) -> dict[str, str]:
    encoder = config.encoder
    network = {} if encoder.network is None else {"network": "given in Python"}
    if distilled.given:
        return {"encoders": "unknown: the data came as embeddings", **network}
    weights = encoder.image_weights or "none"
    untrained = ", untrained" if encoder.text_weights == "none" else ""
    image, text = f"{encoder.image}, weights: {weights}", f"{encoder.text}{untrained}"
    if is_own(encoder.image) or (network and encoder.scope != "heads"):
        image = OWN_ENCODER
    return {
        "image encoder": f"{image}, {encoder.size()} px",
        "text encoder": OWN_ENCODER if is_own(encoder.text) else text,
        **network,
    }


def _shape(tensor: Any) -> str:
    return " × ".join(str(size) for size in tensor.shape[1:])


def _command(distilled: DistilledSet) -> str:
    kind = distilled.config.selection.kind
    root = " data.root=FOLDER" if distilled.config.data.root is not None else ""
    return f"lors {'distill' if kind is None else f'select {kind}'} config.yaml{root}"


def _worth(distilled: DistilledSet) -> str:
    scope = distilled.config.encoder.scope
    return (
        "Recall on the test split in percent, mean ± deviation over freshly trained networks, at "
        f"the epoch with the best validation recall, within scope `{scope}`. IR: captions query "
        "images; TR: images query captions."
    )


def _recalls(rows: Mapping[str, Row]) -> str:
    head, *lines = recall_table(rows)
    return _table(head, lines)


def _variations(distilled: DistilledSet) -> str:
    standardised = distilled.text_standard is not None
    units = ", on standardised embeddings" if standardised else ""
    fails = ", and without standardisation these rates did not train at all" if standardised else ""
    return (
        f"The set is made for this optimiser, its rates, its loss and its S{units}. Where others "
        "were measured (`docs/guide/training-loop.md` of lors), Adam cost a few points of recall, "
        f"InfoNCE without S more{fails}."
    )


def _caveats(distilled: DistilledSet) -> str:
    config = distilled.config
    if distilled.imported:
        first = (
            "It was not made by `lors`, and what it was made from is not known here: the data, "
            "encoders and loss above are those that whoever imported it named."
        )
    elif config.selection.kind is not None:
        first = (
            "The pairs are not synthetic: they are images and captions of the source data. Who "
            "publishes them publishes a part of it."
        )
    elif config.encoder.space == "features":
        first = (
            "The images are not pictures: they are features of the image encoder, learned so that "
            "training on them resembles training on the real data. The real images nearest to "
            "them are left out on purpose: whether they may be passed on is for their licence."
        )
    else:
        noise = config.distill.init == "noise"
        start = "noise" if noise else "real images, and may still show them"
        first = (
            "The images are not photos: they were learned so that training on them resembles "
            f"training on the real data, and what they show need not exist. They began as {start}."
        )
    lines = (
        first,
        "The texts are embeddings. A caption beside a pair is only the one of the training split "
        "whose embedding is nearest: it is quoted from the source data, and need not describe the "
        "image.",
        "It is made for the encoders, scope and loss above. With others it may be worth less.",
        "It cannot show what the source data lacks, and has its biases.",
    )
    return "\n".join(f"- {line}" for line in lines)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    every = [head, ["---"] * len(head), *lines]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in every)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
