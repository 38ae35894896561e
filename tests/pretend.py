"""A second device on any machine: ``pretend`` computes on the CPU, and is as strict as a GPU.

Tensors there hold their numbers in a CPU tensor and know no other memory. What a GPU refuses is
refused: tensors of two devices in one operation, a generator of the CPU, ``numpy()``. What a GPU
waits for is counted: every number that the host reads, and every size that depends on numbers. The
backward pass runs in a thread of the device, as on a GPU.

It needs what PyTorch has for backends in Python since 2.10: ``available`` tells.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

__all__ = ["NAME", "available", "register", "waits"]

NAME = "pretend"

waits: Counter[str] = Counter()
"""How often the host had to wait for the device, by operation. Clear it to count anew."""

uploads: Counter[str] = Counter()
"""How often the host sent numbers to the device."""

READS = {"_local_scalar_dense", "equal", "is_nonzero"}
SIZES = {
    *("nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount"),
    *("repeat_interleave", "_unique"),
}
ACROSS = {"copy_", "_to_copy", "_copy_from", "_copy_from_and_resize"}
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_"}
FACTORIES: tuple[Any, ...] = ()


def available() -> bool:
    """Whether this PyTorch can have such a device."""
    return hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend")


class Pretended(Tensor):
    """A tensor of the device."""

    raw: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, raw: Tensor) -> Pretended:
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            raw.shape,
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=f"{NAME}:0",
        )
        made.raw = raw
        return made

    def __repr__(self, **_: Any) -> str:
        return f"Pretended({self.raw})"

    def tolist(self) -> Any:
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    name = func._schema.name.removeprefix("aten::")
    flat, form = pytree.tree_flatten((args, kwargs))
    own = {id(each.raw): each for each in flat if isinstance(each, Pretended)}
    hosts = [each for each in flat if isinstance(each, Tensor) and not isinstance(each, Pretended)]
    if name == "to":
        return func.decompose(*args, **kwargs)
    if name == "_to_copy":
        return _moved(args[0], **kwargs)
    if name == "copy_":
        return _copied(*args, **kwargs)
    if name in INDEXED:
        uploads[name] += sum(each.dim() > 0 for each in hosts)
        if any(
            t.dtype in (torch.bool, torch.uint8)
            for t in pytree.tree_leaves(args[1])
            if t is not None
        ):
            waits[name] += 1
    elif any(each.dim() for each in hosts):
        raise RuntimeError(
            f"{name}: expected all tensors to be on the same device, but found {NAME} and cpu"
        )
    if any(isinstance(each, torch.Generator) for each in flat):
        raise RuntimeError(f"{name}: expected a generator of {NAME}, but found one of the cpu")
    if name in READS | SIZES:
        waits[name] += 1
    raw = [each.raw if isinstance(each, Pretended) else _host(each) for each in flat]
    given, named = pytree.tree_unflatten(raw, form)
    found = func(*given, **named)
    if any(each.shape != each.raw.shape for each in own.values()):
        raise NotImplementedError(f"{name} changes the shape of a tensor of {NAME}")
    return pytree.tree_map_only(Tensor, lambda t: own[id(t)] if id(t) in own else Pretended(t), found)


def _host(given: Any) -> Any:
    return torch.device("cpu") if isinstance(given, torch.device) else given


def _moved(tensor: Tensor, device: torch.device | None = None, **kwargs: Any) -> Tensor:
    here = tensor.raw if isinstance(tensor, Pretended) else tensor
    kwargs.pop("pin_memory", None)
    to = device or tensor.device
    if to.type == "meta":
        return torch.ops.aten._to_copy(here, device=to, **kwargs)
    found = torch.ops.aten._to_copy(here, **kwargs)
    if to.type == NAME:
        uploads["to"] += not isinstance(tensor, Pretended)
        return Pretended(found)
    waits["to"] += isinstance(tensor, Pretended)
    return found


def _copied(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    raw = [t.raw if isinstance(t, Pretended) else t for t in (target, source)]
    if isinstance(target, Pretended):
        uploads["copy_"] += not isinstance(source, Pretended) and source.dim() > 0
    elif isinstance(source, Pretended):
        waits["copy_"] += 1
    raw[0].copy_(raw[1])
    return target


def _made(factory: Any) -> Any:
    """A function that makes tensors of the device, from one that makes them of the CPU."""

    def make(*given: Any, dtype: Any = None, **_: Any) -> Tensor:
        return Pretended(factory(*given, dtype=dtype))

    return make


def register() -> None:
    """Make the device known; before the first backward pass of the process."""
    module = torch.utils.backend_registration._DummyBackendModule()
    module.get_rng_state = lambda device=0: torch.get_rng_state()
    module.set_rng_state = lambda state, device=0: torch.set_rng_state(state)
    torch.utils.backend_registration._setup_privateuseone_for_python_backend(NAME, module)
    library = torch.library.Library("aten", "IMPL")
    register.library = library  # type: ignore[attr-defined]

    def empty(size: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
        return Pretended(torch.empty(size, dtype=dtype, device="cpu"))

    def empty_strided(
        size: Any, stride: Any, *, dtype: Any = None, device: Any = None, **_: Any
    ) -> Tensor:
        return Pretended(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))

    library.impl("empty.memory_format", empty, "PrivateUse1")
    library.impl("empty_strided", empty_strided, "PrivateUse1")
    for name in ("arange", "arange.start", "arange.start_step", "eye", "eye.m", "linspace", "randperm"):
        library.impl(name, _made(getattr(torch, name.split(".")[0])), "PrivateUse1")
    library.impl(
        "_copy_from", lambda source, target, _=False: _copied(target, source), "PrivateUse1"
    )
