"""Self-checks of a device: a minute of work whose outcome is known, and timings."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lors.config import EncoderConfig, load_config
from lors.encoders import FlatModel, Frozen, build_dual_encoder
from lors.losses import wbce
from lors.matching.fitting import TOLERANCE, fitting_one_sided, relative_error
from lors.matching.meta_gradient import META_GRADIENTS, Inner, MetaGradient
from lors.matching.second_order import DERIVATIVES, Derivative, afresh, double, one_sided
from lors.matching.trajectory import distance_ratio
from lors.runs.doctor import Finding
from lors.runs.folders import SET
from lors.runs.pipeline import run
from lors.sets.distilled import DistilledSet
from lors.system.errors import LorsError
from lors.system.memory import forget_peak_memory, peak_memory
from lors.system.progress import Progress, Silent
from lors.system.timing import timed
from lors.training import Batch

__all__ = ["problem", "self_checks", "timings"]

ROUGH = 1e-3
"""How far exact ways may be from each other in single precision."""
LARGE = {"cuda": 4096, "mps": 2048, "cpu": 1024}
"""The side of a square matrix that is timed."""


def self_checks(device: torch.device, progress: Progress | None = None) -> Iterator[Finding]:
    """Check that results on a device are those that they should be.

    >>> first = next(self_checks(torch.device("cpu")))
    >>> first.what, first.well
    ('exact = unrolled', True)
    """
    checks: list[tuple[str, Callable[[torch.device], tuple[str, bool]]]] = [
        ("exact = unrolled", _exact_is_unrolled),
        ("ways agree", _ways_agree),
        ("same as on the CPU", _same_as_cpu),
        ("recompute keeps the bits", _recomputed),
        ("same bits after an interruption", _resumed),
    ]
    for what, check in (progress or Silent()).track(checks, "check the device", len(checks)):
        try:
            yield Finding(what, *check(device))
        except (RuntimeError, LorsError, ValueError, TypeError) as error:
            yield Finding(what, f"{type(error).__name__}: {error}", well=False)


def problem(
    device: torch.device,
    derivative: Derivative,
    dtype: torch.dtype = torch.float32,
    encoder: tuple[str, int] = ("nf_resnet_tiny", 16),
    pairs: int = 6,
    steps: int = 3,
    recompute: bool = False,
) -> Inner:
    """An inner run of a dual encoder on noise; the same numbers on every device.

    Args:
        device: where.
        derivative: how second derivatives are made.
        dtype: of all numbers.
        encoder: the image trunk, which trains, and the side of the images.
        pairs: m.
        steps: t.
        recompute: whether activations are computed again on the way back.
    """
    image, size = encoder
    draw = torch.Generator().manual_seed(0)

    def there(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw).to(device, dtype)

    model = build_dual_encoder(EncoderConfig(image=image, image_size=size), Frozen(32), 0)
    flat = FlatModel(model.to(device, dtype))
    theta = flat.flatten(model)
    target = theta + 0.01 * there(len(theta))
    if recompute:
        model.recompute()
    batches = [
        Batch(there(pairs, 3, size, size), there(pairs, 32), torch.eye(pairs).to(theta))
        for _ in range(steps)
    ]
    batches = [Batch(*(tensor.requires_grad_() for tensor in batch)) for batch in batches]

    def loss(theta: Tensor, batch: Batch) -> Tensor:
        return wbce(flat(theta, batch.inputs, batch.texts), batch.similarity)

    objective = partial(distance_ratio, start=theta, target=target, sides=flat.sides)
    rates = torch.full((2,), 0.05).to(theta)
    return Inner(loss, theta, batches, rates, flat.sides, objective, derivative)


def timings(device: torch.device) -> Iterator[tuple[str, str]]:
    """What parts of a run take on a device: what, and how long or how fast."""
    side = LARGE.get(device.type, 1024)
    a = torch.randn(side, side, device=device)
    seconds = _least(lambda: a @ a)
    yield f"product of {side} x {side}, float32", f"{2 * side**3 / seconds / 1e12:.2f} TFLOP/s"
    seconds = _least(lambda: a + 1)
    yield "sum, bytes read and written", f"{2 * a.nbytes / seconds / 1e9:.0f} GB/s"
    count = 4 if device.type == "cpu" else 64
    images, kernel = torch.randn(count, 64, 56, 56).to(a), torch.randn(64, 64, 3, 3).to(a)
    work = 2 * count * 56 * 56 * 64 * 64 * 9 / 1e12
    for name, order in (("", torch.contiguous_format), (", channels last", torch.channels_last)):
        x = images.contiguous(memory_format=order)
        seconds = _least(partial(F.conv2d, x, kernel, padding=1))
        yield f"3 x 3 convolution{name}", f"{work / seconds:.2f} TFLOP/s"
    sizes: list[tuple[tuple[str, int], int]] = [(("nf_resnet_tiny", 32), 20)]
    if device.type != "cpu":  # the paper's network, at its size and at its batch
        sizes.append((("nfnet_l0", 224), 20))
    for encoder, pairs in sizes:
        for way, derivative in (("one-sided", one_sided), ("kept", DERIVATIVES["kept"])):
            inner = problem(device, derivative, encoder=encoder, pairs=pairs, steps=2)
            forget_peak_memory(device)
            seconds = _least(lambda inner=inner: META_GRADIENTS["tesla"](inner), 2)  # type: ignore[misc]
            what = f"2 inner steps, {encoder[0]} {encoder[1]} px, {pairs} pairs, {way}"
            yield what, f"{1000 * seconds:.0f} ms, peak {peak_memory(device) / 2**20:.0f} MiB"


def _least(step: Callable[[], object], rounds: int = 3) -> float:
    step()
    return min(timed(step) for _ in range(rounds))


def _numbers(found: MetaGradient) -> list[Tensor]:
    parts = [found.rates, *(tensor for batch in found.batches for tensor in batch)]
    return [part.detach().cpu().double() for part in parts]


def _apart(first: MetaGradient, second: MetaGradient) -> float:
    """The worst relative difference of rates, images, texts and similarities."""
    pairs = zip(_numbers(first), _numbers(second), strict=True)
    return max(float((a - b).norm() / b.norm()) for a, b in pairs if b.any())


def _exact_is_unrolled(device: torch.device) -> tuple[str, bool]:
    dtype = torch.float32 if device.type == "mps" else torch.float64
    inner = problem(device, afresh(double), dtype)
    error = _apart(META_GRADIENTS["exact"](inner), META_GRADIENTS["unrolled"](inner))
    limit = 1e-8 if dtype == torch.float64 else ROUGH
    return (
        f"relative error {error:.1e} in {str(dtype).split('.')[1]}, limit {limit:g}",
        error < limit,
    )


def _ways_agree(device: torch.device) -> tuple[str, bool]:
    found, well = [], True
    for name, way in DERIVATIVES.items():
        inner = problem(device, way)
        direction = torch.randn(inner.theta.shape, generator=torch.Generator().manual_seed(1))
        args: Any = (inner.loss, inner.theta, inner.batches[0], direction.to(inner.theta))
        try:
            one = name == "one-sided"
            error = fitting_one_sided(*args)[1] if one else relative_error(way, *args)
        except (RuntimeError, NotImplementedError) as problem_there:
            found.append(f"{name} cannot ({type(problem_there).__name__}), so auto takes another")
            continue
        differs = name in ("central", "one-sided")  # which auto only takes where they are right
        note = ", so auto takes another" if differs and error > TOLERANCE else ""
        found.append(f"{name} {error:.1e}{note}")
        well &= differs or error < ROUGH
    return f"relative to double, in float32: {', '.join(found)}", well


def _same_as_cpu(device: torch.device) -> tuple[str, bool]:
    here = META_GRADIENTS["exact"](problem(torch.device("cpu"), afresh(double), torch.float64))
    there = META_GRADIENTS["exact"](problem(device, afresh(double)))
    error = _apart(there, here)
    limit = 0.05 if torch.backends.cudnn.allow_tf32 and device.type == "cuda" else ROUGH
    return f"relative error {error:.1e}, float32 against float64, limit {limit:g}", error < limit


def _recomputed(device: torch.device) -> tuple[str, bool]:
    plain, again = (
        META_GRADIENTS["exact"](problem(device, one_sided, recompute=r)) for r in (False, True)
    )
    error = _apart(again, plain)
    return ("equal to the bit" if not error else f"relative error {error:.1e}"), error < ROUGH


class _Interrupts(Silent):
    def note(self, **values: object) -> None:
        raise InterruptedError


def _resumed(device: torch.device) -> tuple[str, bool]:
    """Whether a run, the same run again, and one that was interrupted twice have the same bits."""
    with tempfile.TemporaryDirectory(prefix="lors-check-") as folder:
        experts = f"experts.folder={Path(folder) / 'experts'}"
        config = load_config("tiny", [f"device={device}", experts, "distill.checkpoint_every=1"])
        config = config.model_copy(
            update={"distill": config.distill.model_copy(update={"iterations": 3})}
        )
        sets = []
        for name in ("whole", "again", "interrupted"):
            out = Path(folder) / name
            for _ in range(2 if name == "interrupted" else 0):
                try:
                    run(config, out, _Interrupts(), references=False, evaluate=False)
                except InterruptedError:
                    continue
            run(config, out, references=False, evaluate=False)
            sets.append(DistilledSet.load(out / SET).pairs.state_dict())
    equal = [all(torch.equal(sets[0][k], other[k]) for k in other) for other in sets[1:]]
    words = ["equal" if each else "not equal" for each in equal]
    return f"the same run again: {words[0]}; interrupted twice: {words[1]}", all(equal)
