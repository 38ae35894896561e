"""The processes that ``torchrun`` started: which of them this is, and what they tell each other.

Without torchrun there is one process, rank 0 of 1, and everything here does what it would do alone.
All ranks run the same program and must come to the same calls in the same order. Messages are
tensors and JSON: nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import reduce
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from lors.system.cores import side_by_side
from lors.system.errors import InputError, LorsError
from lors.system.heartbeat import CONTINUES, RankWatch, timeout
from lors.system.progress import Progress, Silent
from lors.system.rendezvous import start_name

__all__ = [
    "all_reduce",
    "alone",
    "any_of",
    "broadcast",
    "check_equal",
    "divide",
    "from_rank_zero",
    "gather",
    "gather_tensors",
    "joined",
    "local",
    "my_share",
    "neighbours",
    "rank",
    "size",
    "tensors_from_rank",
]

T = TypeVar("T")

_WATCH = RankWatch()
_PATIENT: dict[Any, Any] = {}
_ALONE = ContextVar("alone", default=False)


@contextmanager
def joined() -> Iterator[None]:
    """Join the other processes for the length of the block, if torchrun started several.

    Should one of them show no sign of life for ``LORS_TIMEOUT`` seconds while this one waits for
    it, this process ends with a sentence and exit code 1.

    Raises:
        InputError: ``LORS_TIMEOUT`` is not a number of seconds.
        LorsError: the others cannot be reached.
    """
    several = "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1
    if not several or dist.is_initialized():
        yield
        return
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    limit = timedelta(seconds=timeout())
    with _WATCH.on(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])):
        with _contact("torchrun or the other ranks"):
            store, own, count = next(rendezvous("env://", timeout=limit))
            start = start_name(store, own, count, limit, _WATCH)
            _WATCH.beat(start)
            store = PrefixStore(start, store)
            dist.init_process_group(backend, timeout=limit, store=store, rank=own, world_size=count)
            _patient()
            any_of(False)  # none may be done and gone before all have come
        yield
        with _contact():
            dist.destroy_process_group()  # after an error, the end of the process tells the others


@contextmanager
def alone() -> Iterator[None]:
    """Work as if there were no other ranks, for what each does by itself or only one of them."""
    before = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(before)


def rank() -> int:
    """Which process this is; rank 0 writes files and talks to the user."""
    return dist.get_rank() if size() > 1 else 0


def size() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_initialized() and not _ALONE.get() else 1


def local() -> int:
    """Which process of its machine this is, and so which of the machine's GPUs it takes."""
    return int(os.environ.get("LOCAL_RANK", "0")) if dist.is_initialized() else 0


def my_share(items: Sequence[T]) -> Sequence[T]:
    """The items that fall to this rank: every ``size``-th."""
    return items[rank() :: size()]


def neighbours() -> int:
    """How many processes this machine's cores and memory are divided between."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if dist.is_initialized() else 1


def any_of(asked: bool) -> bool:
    """Whether any rank was asked to do something."""
    flag = torch.tensor([float(asked)])
    all_reduce([flag])
    return bool(flag)


def gather(value: Any) -> list[Any]:
    """What each rank gives, in their order, on all of them. Values must be JSON.

    Ranks that have done their work wait here for the others, as long as those are alive.
    """
    if size() == 1:
        return [value]
    content = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
    with _contact():
        lengths = [torch.zeros(1, dtype=torch.long) for _ in range(size())]
        dist.all_gather(lengths, torch.tensor([len(content)]), _patient())
        longest = max(int(length) for length in lengths)
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: len(content)] = content
        found = [torch.empty_like(padded) for _ in range(size())]
        dist.all_gather(found, padded, _patient())
    texts = (t[: int(n)].numpy().tobytes() for t, n in zip(found, lengths, strict=True))
    return [json.loads(text) for text in texts]


def gather_tensors(tensor: Tensor) -> list[Tensor]:
    """The tensor of each rank, all of one shape, on all of them."""
    if size() == 1:
        return [tensor]
    found = [torch.empty_like(tensor) for _ in range(size())]
    with _contact():
        dist.all_gather(found, tensor.contiguous())
    return found


def from_rank_zero(make: Callable[[], T]) -> T:
    """What rank 0 makes, on all ranks; it must be JSON.

    Raises:
        LorsError: or InputError, on all ranks, with the sentence of the one that rank 0 met.
    """
    if size() == 1:
        return make()
    answer: list[Any] = [None, None]
    if rank() == 0:
        try:
            answer[0] = make()
        except LorsError as error:
            answer[1] = [isinstance(error, InputError), str(error)]
    made, raised = gather(answer)[0]
    if raised is not None:
        bad_input, sentence = raised
        raise (InputError if bad_input else LorsError)(sentence)
    return made


def divide(
    items: Sequence[T],
    work: Callable[[T], Any],
    progress: Progress | None = None,
    what: str = "",
) -> list[Any]:
    """Work on all items, each on one rank; the results, which must be JSON, in order on all ranks.

    A rank works on several at a time where cores are left over: see ``side_by_side``.

    Args:
        items: the same on all ranks.
        work: done on those of this rank.
        progress: reports long-running work.
        what: the work in words.
    """
    mine = my_share(range(len(items)))
    results = side_by_side(lambda place: [place, work(items[place])], mine)
    done = list((progress or Silent()).track(results, what, len(mine)))
    found = {place: result for part in gather(done) for place, result in part}
    return [found[place] for place in range(len(items))]


def all_reduce(tensors: Sequence[Tensor]) -> None:
    """Replace tensors of one device by their sums over all ranks, in one message."""
    if size() == 1 or not tensors:
        return
    dtype = reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)
    message = torch.cat([tensor.detach().reshape(-1).to(dtype) for tensor in tensors])
    with _contact():
        dist.all_reduce(message)
    parts = message.split([tensor.numel() for tensor in tensors])
    for tensor, part in zip(tensors, parts, strict=True):
        tensor.detach().copy_(part.view(tensor.shape))


def broadcast(tensors: Iterable[Tensor]) -> None:
    """Replace tensors by those of rank 0."""
    if size() > 1:
        with _contact():
            for tensor in tensors:
                dist.broadcast(tensor.detach(), 0)


def tensors_from_rank(owner: int, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The named tensors that one rank holds, on all ranks."""
    if size() == 1:
        return tensors
    shapes = {name: [str(t.dtype)[6:], list(t.shape)] for name, t in tensors.items()}
    found = {}
    for name, (dtype, shape) in gather(shapes)[owner].items():
        tensor = tensors[name].cpu() if rank() == owner else torch.empty(shape)
        found[name] = tensor.to(getattr(torch, dtype)).contiguous()
        with _contact():
            dist.broadcast(found[name], owner)
    return found


def check_equal(tensors: Iterable[Tensor], what: str) -> None:
    """Make sure that all ranks hold the same bits.

    Raises:
        LorsError: they do not.
    """
    if size() == 1:
        return
    digest = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        numbers = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(numbers.view(torch.uint8).numpy().data)
    found = gather(digest.hexdigest())
    others = [place for place, other in enumerate(found) if other != found[0]]
    if others:
        raise LorsError(
            f"{what} differs on rank {others[0]} from rank 0: all must run the same version of "
            "lors and torch on the same files; the same command goes on from the last checkpoint"
        )


def _patient() -> Any:
    """All ranks again, but with time, as the watch ends waits that are in vain.

    Messages are in the memory of the CPU.
    """
    world = dist.group.WORLD
    if world not in _PATIENT:
        _PATIENT.clear()
        _PATIENT[world] = dist.new_group(backend="gloo", timeout=timedelta(days=30))
    return _PATIENT[world]


@contextmanager
def _contact(whom: str = "another process") -> Iterator[None]:
    """A wait for others; what torch raises when a message cannot be passed becomes a sentence."""
    with _WATCH.waiting(whom):
        try:
            yield
        except RuntimeError as error:
            reason = str(error).splitlines()[0][:200]
            raise LorsError(
                _WATCH.complaint()
                or f"rank {os.environ.get('RANK', '?')} could not reach {_WATCH.whom()} "
                f"({reason}): see that one's error; {CONTINUES}"
            ) from None
