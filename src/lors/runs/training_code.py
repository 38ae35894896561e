"""Code that trains on a set by its protocol, and tests what was trained, for its card."""

from __future__ import annotations

from lors.encoders.own import is_own
from lors.sets.distilled import DistilledSet

__all__ = ["TESTING", "test_inputs", "training_code"]

TRAINING = """\
{imports}

distilled = lors.DistilledSet.load("distilled.safetensors")
{networks}
image_rate, text_rate = distilled.rates
sides = [
    {{"params": image.parameters(), "lr": image_rate}},
    {{"params": text.parameters(), "lr": text_rate}},
]
optimizer = torch.optim.SGD(sides, momentum={momentum}, weight_decay={weight_decay})
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [{half}], gamma=0.1)
for epoch in range({epochs}):
    for images, texts, similarity in distilled.batches({batch_size}, seed=epoch):
        u, v = F.normalize(image(images), dim=1), F.normalize(text(texts), dim=1)
        loss = distilled.loss(u @ v.T / {temperature}, similarity)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
"""

TESTING = """\
image.eval(), text.eval()
with torch.no_grad():
    u, v = F.normalize(image(images), dim=1), F.normalize(text(texts), dim=1)
print(lors.recall(u, v, owner))  # owner: for each text, the number of its image
"""


OWN_IMPORTS = {
    "image_trunk(": "from lors.encoders.image import image_trunk",
    "HEADS[": "from lors.encoders.heads import HEADS",
    "NETWORKS[": "from lors.encoders.own_parts import NETWORKS",
}
"""What was given in Python, and must be given again before it is used."""


def training_code(distilled: DistilledSet) -> str:
    """The protocol as a script; it needs nothing but the set and lors."""
    config = distilled.config
    imports = ["import torch", "import torch.nn.functional as F", "from torch import nn", ""]
    imports.append("import lors")
    networks = _networks(distilled)
    if any("MlpHead(" in line for line in networks):
        imports.append("from lors.encoders.heads import MlpHead")
    if any("feature_size(" in line for line in networks):
        imports.append("from lors.encoders.image import feature_size")
    if any("split_trunk(" in line for line in networks):
        imports.append("from lors.encoders.splitting import split_trunk")
    for line in networks:
        imports += [
            done for use, done in OWN_IMPORTS.items() if use in line and done not in imports
        ]
    if any("timm." in line for line in networks):
        imports.insert(0, "import timm")
    return TRAINING.format(
        imports="\n".join(imports),
        networks="\n".join(networks),
        temperature=config.encoder.temperature,
        half=config.evaluate.half(),
        **config.evaluate.model_dump(),
    )


def _networks(distilled: DistilledSet) -> list[str]:
    """Code for the two sides, as they are in the evaluation."""
    encoder = distilled.config.encoder
    lines, trunk = [], ""
    network = encoder.network is not None
    if encoder.space == "features" or (network and encoder.scope != "heads"):
        features = str(distilled.pairs.images.shape[1])
    else:
        features = "feature_size(trunk)"
        lines.append(f"trunk = {_trunk(distilled)}")
        if encoder.trains_from is not None:
            lines.append(f'split_trunk(trunk, "{encoder.trains_from}")[0].requires_grad_(False)')
        trunk = "trunk, "
    dim = str(encoder.embed_dim or features)
    if encoder.scope == "heads" and distilled.image_standard is not None:
        trunk += "distilled.image_standard, "
    words = "distilled.text_trunk.tower(), " if encoder.scope == "all" else ""
    if distilled.text_standard is not None:
        words = "distilled.text_standard, "
    if network:
        pixels = encoder.scope != "heads"
        lines.append(f'image, text = NETWORKS["{encoder.network}"].sides({pixels})')
    for side, parts, head, inputs in (
        ("image", trunk, encoder.image_head, features),
        ("text", words, encoder.text_head, str(distilled.text_trunk.dim)),
    ):
        made = side if network else _head(head, inputs, dim)
        lines.append(f"{side} = nn.Sequential({parts}{made})")
    return lines


def _head(name: str, inputs: str, dim: str) -> str:
    known = {"linear": "nn.Linear", "mlp": "MlpHead"}
    if name == "none":
        return "nn.Identity()"
    return f"""{known.get(name, f'HEADS["{name}"]')}({inputs}, {dim})"""


def _trunk(distilled: DistilledSet) -> str:
    encoder, name = distilled.config.encoder, distilled.image_trunk.split("|")[0]
    if encoder.scope == "heads":
        return "distilled.frozen_trunk()"
    if is_own(encoder.image):
        return f'image_trunk("{encoder.image}", None, {encoder.size()}).eval()'
    pretrained = encoder.image_weights is not None
    classes = ", num_classes=0" if encoder.image_outputs == "features" else ""
    return f'timm.create_model("{name}", pretrained={pretrained}{classes}).eval()'


def test_inputs(distilled: DistilledSet) -> str:
    """What tests a network that was trained on the set."""
    encoder = distilled.config.encoder
    if distilled.given:
        return "take image and text embeddings of the same encoders, as they are"
    size = encoder.size()
    images = f"`images = distilled.normalise(pixels)` of uint8 pixels (M, 3, {size}, {size})"
    if encoder.space == "features":
        trunk = "the image encoder" if is_own(encoder.image) else encoder.image
        images = f"`images`: features of {trunk} at {size} px, as they are"
    texts = "`texts = distilled.embed(captions)`"
    if encoder.scope == "all":
        tokens = f"distilled.text_trunk.tokens(captions, {encoder.text_length})"
        texts = f"`texts = torch.from_numpy({tokens}).long()`"
    return f"take {images} and {texts}"
