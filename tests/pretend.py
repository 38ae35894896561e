"""A second device on any machine: ``pretend`` computes on the CPU, and is as strict as a GPU.

Tensors there hold their numbers in a CPU tensor. What a GPU refuses is refused: tensors of two
devices in one operation, a generator of the CPU, ``numpy()``. What a GPU waits for is counted:
every number that the host reads, and every size that depends on numbers. The backward pass runs in
a thread of the device, as on a GPU.

It needs what recent versions of PyTorch have for backends in Python: ``available`` tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils import backend_registration as backends

__all__ = ["NAME", "available", "register", "uploads", "waits"]

NAME = "pretend"

waits: Counter[str] = Counter()
"""How often the host had to wait for the device, by operation. Clear it to count anew."""

uploads: Counter[str] = Counter()
"""How often the host sent numbers to the device, by operation."""

READS = {"_local_scalar_dense", "equal", "is_nonzero"}
SIZES = {
    *("nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive"),
    *("bincount", "repeat_interleave"),
}
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_"}
"""To these a GPU takes indices of the CPU, too."""

_libraries: list[Any] = []


def available() -> bool:
    """Whether this PyTorch can have such a device."""
    return hasattr(backends, "_setup_privateuseone_for_python_backend")


def register() -> None:
    """Make the device known, once, before the first backward pass of the process."""
    if _libraries:
        return
    module = backends._DummyBackendModule()
    vars(module)["get_rng_state"] = lambda device=0: torch.get_rng_state()
    vars(module)["get_amp_supported_dtype"] = lambda: [torch.bfloat16, torch.float16]
    vars(module)["set_rng_state"] = lambda state, device=0: torch.set_rng_state(state)
    backends._setup_privateuseone_for_python_backend(NAME, module)
    factories: dict[str, Callable[..., Tensor]] = {
        "empty.memory_format": torch.empty,
        "empty_strided": torch.empty_strided,
        "_efficientzerotensor": torch.zeros,
        **dict.fromkeys(("arange", "arange.start", "arange.start_step"), torch.arange),
        **dict.fromkeys(("eye", "eye.m"), torch.eye),
        "linspace": torch.linspace,
        "randperm": torch.randperm,
    }
    everything = torch.library.Library("_", "IMPL")
    everything.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    _libraries.append(everything)
    library = torch.library.Library("aten", "IMPL")
    for name, factory in factories.items():
        library.impl(name, _made(factory), "PrivateUse1")
    library.impl("_copy_from", lambda a, b, _=False: _copied(b, a), "PrivateUse1")
    _libraries.append(library)


def _made(factory: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function that makes tensors of the device, from one that makes them of the CPU."""

    def make(*given: Any, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
        return Pretended(factory(*given, dtype=dtype, device="cpu"))

    return make


class Pretended(Tensor):
    """A tensor of the device."""

    raw: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, raw: Tensor) -> Pretended:
        made = Tensor._make_wrapper_subclass(
            cls,
            raw.shape,
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=torch.device(NAME, 0),
        )
        made.raw = raw
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"Pretended({self.raw})"

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, other: Tensor) -> None:
        if not isinstance(other, Pretended):
            raise RuntimeError(f"the data of a tensor of {NAME} cannot be on {other.device}")
        Tensor.data.__set__(self, other)  # type: ignore[attr-defined]
        self.raw = other.raw

    def tolist(self) -> Any:
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name, kwargs = func._schema.name.removeprefix("aten::"), kwargs or {}
        if name == "to":
            return func.decompose(*args, **kwargs)
        if name == "_to_copy":
            return _moved(*args, **kwargs)
        if name == "copy_":
            return _copied(*args, **kwargs)
        return _run(func, name, args, kwargs)


def _run(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """An operation on the tensors of the CPU that those of the device hold."""
    flat, form = pytree.tree_flatten((args, kwargs))
    own = {id(each.raw): each for each in flat if isinstance(each, Pretended)}
    hosts = [each for each in flat if isinstance(each, Tensor) and not isinstance(each, Pretended)]
    if name in INDEXED:
        uploads[name] += sum(each.dim() > 0 for each in hosts)
        kinds = {t.dtype for t in pytree.tree_leaves(args[1]) if t is not None}
        waits[name] += bool(kinds & {torch.bool, torch.uint8})
    elif any(each.dim() for each in hosts):
        raise RuntimeError(f"{name}: all tensors must be on one device, not on {NAME} and cpu")
    if any(isinstance(each, torch.Generator) for each in flat):
        raise RuntimeError(f"{name}: a generator must be on {NAME}, not on cpu")
    waits[name] += name in READS | SIZES
    given, named = pytree.tree_unflatten([_raw(each) for each in flat], form)
    found = func(*given, **named)
    if any(each.shape != each.raw.shape for each in own.values()):
        raise NotImplementedError(f"{name} changes the shape of a tensor of {NAME}")
    return pytree.tree_map_only(
        Tensor, lambda t: own[id(t)] if id(t) in own else Pretended(t), found
    )


def _raw(given: Any) -> Any:
    if isinstance(given, torch.device):
        return torch.device("cpu")
    return given.raw if isinstance(given, Pretended) else given


def _moved(tensor: Tensor, *, device: torch.device | None = None, **kwargs: Any) -> Tensor:
    """To another type or device."""
    to = device or tensor.device
    kwargs.pop("pin_memory", None)
    where = to if to.type == "meta" else torch.device("cpu")
    found: Tensor = torch.ops.aten._to_copy(_raw(tensor), device=where, **kwargs)
    uploads["to"] += to.type == NAME and not isinstance(tensor, Pretended)
    waits["to"] += to.type == "cpu"
    return Pretended(found) if to.type == NAME else found


def _copied(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    uploads["copy_"] += isinstance(target, Pretended) and not isinstance(source, Pretended)
    waits["copy_"] += target.device.type == "cpu"
    _raw(target).copy_(_raw(source))
    return target
