"""What the paper's presets would take on GPUs: a model, from tensors that are counted, not made.

python benchmarks/gpu.py            each kind of preset, as docs/guide/gpu.md has it
python benchmarks/gpu.py memory     counted bytes against what a process takes, on this CPU
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import psutil
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from lors.config import Config, load_config
from lors.config.matchers import TrajectoryOptions
from lors.encoders import DualEncoder, FlatModel, Frozen, build_dual_encoder
from lors.encoders.image import feature_size, image_trunk
from lors.losses import LOSSES
from lors.matching.meta_gradient import META_GRADIENTS
from lors.matching.second_order import DERIVATIVES
from lors.matching.trajectory import meta_gradient
from lors.runs.gpu_model import GPUS, modelled_memory, modelled_seconds
from lors.runs.self_check import problem
from lors.system.counting import Counts, PeakBytes, counted
from lors.system.memory import forget_peak_memory, peak_memory
from lors.training import Batch

TEXTS = 768
"""Numbers of a text embedding, by BERT."""

ITERATIONS = {
    "LoRS, TESLA, AMD, PTM-ST": "flickr30k-lors-100",
    "PTM-ST, 500 pairs": "flickr30k-ptm-st-500",
    "MTT-VL": "flickr30k-mtt-vl-100",
}
"""A preset for each kind of iteration that differs in what it costs."""

SMALL = (("nf_resnet_tiny", 32, 64), ("resnet10t", 96, 24), ("vit_tiny_patch16_224", 128, 24))
"""Trunk, side of images and pairs."""


def network(config: Config) -> DualEncoder:
    encoder = config.encoder.model_copy(update={"image_weights": None})
    if encoder.scope == "image":
        return build_dual_encoder(encoder, Frozen(TEXTS), 0)
    trunk = image_trunk(*encoder.trunk())
    return build_dual_encoder(encoder, Frozen(TEXTS, feature_size(trunk), trunk), 0)


def noise(config: Config, pairs: int, learned: bool) -> Batch:
    size = config.encoder.image_size or 224
    tensors = (torch.randn(pairs, 3, size, size), torch.randn(pairs, TEXTS), torch.eye(pairs))
    return Batch(*(tensor.requires_grad_(learned) for tensor in tensors))


def iteration(config: Config, derivative: str, recompute: bool = False) -> Counts:
    """An iteration of trajectory matching, at its full size."""
    options, model = config.matching, network(config)
    assert isinstance(options, TrajectoryOptions)
    flat = FlatModel(model)
    if recompute:
        model.recompute()
    with FakeTensorMode(allow_non_fake_inputs=True):
        start, target = (torch.randn(sum(flat.sides)) for _ in range(2))
        batches = [noise(config, options.batch_size, True) for _ in range(options.steps)]
        way, rates = DERIVATIVES[derivative], torch.rand(2)
        inner = (flat, LOSSES[config.loss], options, start, target, batches, rates, way, 0)
        return counted(lambda: meta_gradient(*inner))


def training_step(config: Config, recompute: bool = False) -> Counts:
    """A step of an expert, which is also one of an evaluation of 128 pairs or more."""
    model = network(config)
    flat = FlatModel(model)
    if recompute:
        model.recompute()
    with FakeTensorMode(allow_non_fake_inputs=True):
        theta = torch.randn(sum(flat.sides)).requires_grad_()
        batch = noise(config, config.experts.batch_size, False)

        def step() -> None:
            value = LOSSES["nce"](flat(theta, batch.inputs, batch.texts), batch.similarity)
            (gradient,) = torch.autograd.grad(value, theta)
            theta.data.sub_(gradient, alpha=0.1)

        return counted(step)


def used(config: Config) -> int:
    """The most synthetic pairs that an iteration uses."""
    options = config.matching
    assert isinstance(options, TrajectoryOptions)
    return min(config.distill.budget, options.steps * options.batch_size)


def frozen_pass(config: Config, recompute: bool = False) -> Counts:
    """The images of all inner steps through a frozen trunk and back, once in each iteration."""
    model = network(config)
    if recompute:
        model.recompute()
    with FakeTensorMode(allow_non_fake_inputs=True):
        images = noise(config, used(config), True).inputs
        return counted(lambda: model.freeze(images).sum().backward())


def line(what: str, how: str, found: Counts, times: int) -> str:
    cells = [what, how, f"{found.products / 1e12:.1f}", f"{found.moved / 1e12:.2f}"]
    cells.append(f"{modelled_memory(found) / 1e9:.1f}")
    for gpu in GPUS.values():
        seconds = modelled_seconds(found, gpu)
        fits = "" if modelled_memory(found) < gpu.memory else ", does not fit"
        whole = f", {seconds * times / 3600:.1f} h" if times > 1 else ""
        cells.append(f"{seconds:.2f} s{whole}{fits}")
    return f"| {' | '.join(cells)} |"


def presets() -> None:
    gpus = " | ".join(GPUS)
    print(f"| | second derivatives | products, TFLOP | moved, TB | memory, GB | {gpus} |")
    print("|---|---|---|---|---|---|---|")
    for what, preset in ITERATIONS.items():
        config = load_config(preset)
        gradient = getattr(config.matching, "gradient", "")
        ways = ("one-sided", "double") if gradient != "unrolled" else ("double",)
        for way in ways:
            how = "unrolled" if gradient == "unrolled" else way
            times = config.distill.iterations
            print(line(what, how, iteration(config, way), times), flush=True)
            if way == "one-sided":
                again = iteration(config, way, recompute=True)
                print(line(what, f"{how}, `recompute=true`", again, times), flush=True)
    config, heads = load_config("flickr30k-lors-100"), load_config("flickr30k-repblend-500")
    for how, recompute in (("", False), ("`recompute=true`", True)):
        step, whole = training_step(config, recompute), frozen_pass(heads, recompute)
        print(line("a step of an expert, 128 pairs", how, step, 1), flush=True)
        trunk = f"RepBlend, 500 pairs: the frozen trunk on {used(heads)} images"
        print(line(trunk, how, whole, heads.distill.iterations), flush=True)


def memory() -> None:
    """Counted bytes of an inner run, and by how much the process grew."""
    cpu = torch.device("cpu")
    print("| case | counted, MB | process, MB | counted / process |")
    print("|---|---|---|---|")
    for image, size, pairs in SMALL:
        for way in ("one-sided", "kept"):
            inner = problem(cpu, DERIVATIVES[way], encoder=(image, size), pairs=pairs, steps=4)
            work: Callable[[], object] = partial(META_GRADIENTS["tesla"], inner)
            work()  # what libraries keep from their first call
            with PeakBytes() as counting:
                work()
            forget_peak_memory(cpu)
            before = psutil.Process().memory_info().rss
            work()
            grown = peak_memory(cpu) - before
            ours = counting.peak
            case = f"{image} {size} px, {pairs} pairs, 4 steps, {way}"
            print(
                f"| {case} | {ours / 1e6:.0f} | {grown / 1e6:.0f} | {ours / grown:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    {"memory": memory}.get(sys.argv[-1], presets)()
