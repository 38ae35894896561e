"""An image trunk trained on one's own pairs, as a weight file for other configurations."""

from __future__ import annotations

from pathlib import Path

from lors.config import Config
from lors.encoders.dual import Side
from lors.encoders.image import image_trunk
from lors.encoders.splitting import split_trunk
from lors.evaluation.references import full_data_model
from lors.files.artifacts import write_tensors
from lors.setting import Setting
from lors.system.errors import InputError

__all__ = ["check_image_trunk_file", "write_image_trunk"]


def check_image_trunk_file(config: Config, path: str | Path) -> None:
    """Refuse to write an image trunk that cannot be written, before any is trained.

    Raises:
        InputError: the image trunk is frozen, or is a module given in Python.
    """
    if config.encoder.scope == "heads":
        raise InputError(
            "the image trunk is frozen in scope heads: set encoder.scope=image to train one"
        )
    if config.encoder.network is not None:
        raise InputError("a network given in Python is yours to save: only timm trunks are written")
    if Path(path).suffix != ".safetensors":
        raise InputError(f"{str(path)!r} must end in .safetensors")


def write_image_trunk(setting: Setting, path: str | Path) -> None:
    """Write the image trunk of the first expert, at its best epoch on val, as timm has it.

    A configuration with ``encoder.scope=heads`` and ``encoder.image_weights=PATH`` then works on
    its features. It has seen the images of the training split only.

    >>> write_image_trunk(setting_of(load_config("demo")), "trunk.safetensors")  # doctest: +SKIP

    Args:
        setting: one whose image trunk trains: ``encoder.scope`` is ``image`` or ``all``.
        path: a ``.safetensors`` file.

    Raises:
        InputError: see ``check_image_trunk_file``.
    """
    check_image_trunk_file(setting.config, path)
    side = full_data_model(setting).image
    assert isinstance(side, Side)
    encoder, trunk = setting.config.encoder, side[0]
    if encoder.trains_from is not None:  # with the layers before it, as they were
        trunk = image_trunk(*encoder.trunk()).eval()
        split_trunk(trunk, encoder.trains_from)[1].load_state_dict(side[0].state_dict())
    weights = trunk.state_dict()
    write_tensors(Path(path), {name: t.cpu().contiguous() for name, t in weights.items()})
