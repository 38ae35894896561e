"""A small deterministic mutation engine: whole files in, damaged or hostile ones out.

Bytes are damaged blindly; JSON, safetensors and tar files are also taken apart, changed where it
hurts, and put together again, so that the change gets past the outermost check.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Mutation = Callable[[bytes, random.Random], bytes]

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 2**31, 2**63, -(2**63), 2**64, 10**30, 0.5, 1e308, -1e-308,
    float("nan"), float("inf"), float("-inf"), "", " ", "0", "nan", "\0", "\ud800", "é", "😀",
    "a" * 300_000, "../secret.png", "/etc/passwd", "link.png", "~nobody/x", "none", "train",
    "train-{0..9999999}.tar", "[", "!!python/object:os.system", [], {}, [[]], [None], {"": None},
)  # fmt: skip
"""What a field is swapped for."""

TOKENS = (
    b"\0", b"\xff" * 8, b"\x80", b"\r\n", b"\n", b'"', b"'", b",", b":", b"[", b"]", b"{", b"}",
    b"&a [*a, *a]", b"*a", b"!!binary x", b"!!timestamp x", b"!!bool x", b"<<: {}", b"2001-99-99",
    b"NaN", b"Infinity", b"1e999", b"-1", b"9" * 5000, b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\ud800",
    b"../secret.png", b"image", b"caption", b"split", b"base: x.yaml\n", b"\t", b"? ", b"- ", b"# ",
    b"\x00\x00\xc0\x7f", b"\x00\x00\x80\xff", struct.pack("<Q", 2**63), struct.pack("<q", -1),
)  # fmt: skip
"""What is put between bytes."""


def flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def duplicate(data: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[start:end] * rng.choice((1, 2, 50)) + data[end:]


def delete(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.choice((1, 2, 16, 512)) :]


def insert(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(TOKENS) + data[place:]


def overwrite(data: bytes, rng: random.Random) -> bytes:
    place, token = rng.randrange(len(data) + 1), rng.choice(TOKENS)
    return data[:place] + token + data[place + len(token) :]


def splice(data: bytes, rng: random.Random) -> bytes:
    """The beginning of the file, then the file again from elsewhere."""
    return data[: rng.randrange(len(data) + 1)] + data[rng.randrange(len(data) + 1) :]


BYTES: tuple[Mutation, ...] = (flip, truncate, duplicate, delete, insert, overwrite, splice)


def swap_in_json(data: bytes, rng: random.Random) -> bytes:
    """A value deep inside a JSON text becomes another, is lost, or moves."""
    try:
        return json.dumps(swapped(json.loads(data), rng)).encode()
    except (ValueError, RecursionError):  # damaged, or nested deeply, by an earlier mutation
        return flip(data, rng)


def swap_in_json_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    lines[place] = swap_in_json(lines[place], rng) if lines[place].strip() else b"[" * 200_000
    return b"\n".join(lines)


def swapped(value: Any, rng: random.Random) -> Any:
    """Nested lists and objects, changed in one place."""
    places = list(_places(value))
    if not places:
        return rng.choice(VALUES)
    holder, key = rng.choice(places)
    action = rng.randrange(6)
    if action == 0:
        del holder[key]
    elif action == 1 and isinstance(holder, dict):
        holder[rng.choice(("", "image", "caption", "split", "x" * 1000))] = holder.pop(key)
    elif action == 2:
        holder[key] = _nested(rng.choice((3, 500)))
    elif action == 3:
        other, there = rng.choice(places)
        taken = json.dumps(other[there]) if there in _keys(other) else "null"
        holder[key] = json.loads(taken)
    else:
        holder[key] = rng.choice(VALUES)
    return value


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def _keys(holder: Any) -> Sequence[Any]:
    return list(holder) if isinstance(holder, dict) else range(len(holder))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (holder, key) in nested lists and objects."""
    if isinstance(value, (list, dict)):
        for key in _keys(value):
            yield value, key
            yield from _places(value[key])


def change_safetensors(data: bytes, rng: random.Random) -> bytes:
    """The table of tensors is changed, or numbers are, or the header of lors, checksums made good.

    What safetensors and the checksums catch is left behind: the reader sees well-formed nonsense.
    """
    header, numbers = _open_safetensors(data)
    try:
        action = rng.randrange(5)
        if action == 0:
            header = swapped(header, rng)
        elif action == 1:
            _swap_two_tensors(header, rng)
        elif action == 2:
            numbers = overwrite(numbers, rng)[: len(numbers)].ljust(len(numbers), b"\xff")
        else:
            about = json.loads(header["__metadata__"]["lors"])
            header["__metadata__"]["lors"] = json.dumps(swapped(about, rng))
        if rng.random() < 0.8:
            _sign(header, numbers, rng)
        return _close_safetensors(header, numbers)
    except (KeyError, TypeError, ValueError, RecursionError):  # damaged by an earlier mutation
        return flip(data, rng)


def change_tensors(data: bytes, rng: random.Random) -> bytes:
    """As ``change_safetensors``, for files that others write: without a header of lors."""
    header, numbers = _open_safetensors(data)
    try:
        action = rng.randrange(3)
        if action == 0:
            header = swapped(header, rng)
        elif action == 1:
            _swap_two_tensors(header, rng)
        else:
            numbers = overwrite(numbers, rng)[: len(numbers)].ljust(len(numbers), b"\xff")
        return _close_safetensors(header, numbers)
    except (KeyError, TypeError, ValueError, RecursionError):  # damaged by an earlier mutation
        return flip(data, rng)


def change_array(data: bytes, rng: random.Random) -> bytes:
    """The header of an .npy file is changed, and its length made good."""
    start = 10
    length = int.from_bytes(data[8:start], "little")
    header, numbers = data[start : start + length].decode("latin-1"), data[start + length :]
    dtypes = ("<f4", "<f8", "<f2", ">f8", "<i4", "<u8", "|b1", "|O", "<c8", "|V4", "<M8[ns]", "|S3")
    shapes: tuple[str, ...] = (
        "()",
        "(0,)",
        "(0, 3)",
        "(3, 0)",
        "(20,)",
        "(4, 5, 3)",
        "(20, 1, 3)",
        "(60, 1)",
    )
    shapes += ("(-1, 3)", "(1000000000000, 3)", "(2,) * 9", "(True, 3)", "(20.0, 3)", "[20, 3]")
    action = rng.randrange(4)
    if action == 0:
        header = re.sub(r"'descr': '[^']*'", f"'descr': '{rng.choice(dtypes)}'", header)
    elif action == 1:
        header = re.sub(r"'shape': \([^)]*\)", f"'shape': {rng.choice(shapes)}", header)
    elif action == 2:
        header = header.replace("False", "True")
    else:
        numbers = overwrite(numbers, rng)[: len(numbers)].ljust(len(numbers), b"\xff")
    text = header.encode("latin-1")[: 2**16 - 1]
    return data[:8] + struct.pack("<H", len(text)) + text + numbers


def change_cells(data: bytes, rng: random.Random) -> bytes:
    """A cell of a CSV file is changed, or moves, or a line is doubled or lost."""
    lines = [line.split(b",") for line in data.split(b"\n")]
    line = rng.choice(lines)
    place = rng.randrange(len(line))
    other = rng.choice(lines)
    action = rng.randrange(5)
    if action == 0:
        line[place] = rng.choice(TOKENS)
    elif action == 1:
        line[place] = rng.choice(other)
    elif action == 2:
        line.insert(place, rng.choice(TOKENS))
    elif action == 3:
        del line[place]
    else:
        lines.insert(rng.randrange(len(lines) + 1), list(other))
    return b"\n".join(b",".join(line) for line in lines)


def unsigned(data: bytes) -> bytes:
    """A safetensors file without the checksums of lors, as earlier versions wrote it."""
    header, numbers = _open_safetensors(data)
    assert header is not None
    about = json.loads(header["__metadata__"]["lors"])
    del about["checksum"], about["check"]
    header["__metadata__"] = {"lors": json.dumps(about)}
    return _close_safetensors(header, numbers)


def _open_safetensors(data: bytes) -> tuple[Any, bytes]:
    length = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError):
        return None, b""
    return (header if isinstance(header, dict) else None), data[8 + length :]


def _close_safetensors(header: Any, numbers: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + numbers


def _swap_two_tensors(header: dict[str, Any], rng: random.Random) -> None:
    """Two tensors change names, or one its type or shape, as far as the size stays right."""
    names = [name for name in header if name != "__metadata__"]
    if not names:
        return
    one, other = rng.choice(names), rng.choice(names)
    header[one], header[other] = header[other], header[one]
    entry = header[one]
    if isinstance(entry, dict) and rng.random() < 0.5:
        same = {"F32": "I32", "F64": "I64", "BOOL": "U8", "I64": "F64", "I32": "F32"}
        entry["dtype"] = same.get(str(entry.get("dtype")), "F32")
    elif isinstance(entry, dict) and isinstance(entry.get("shape"), list):
        entry["shape"] = [1, *entry["shape"][::-1]][rng.randrange(2) :]


def _sign(header: Any, numbers: bytes, rng: random.Random) -> None:
    """Make the checksums good again, or take them away, so that what lies behind them is seen."""
    try:
        metadata, about = header["__metadata__"], json.loads(header["__metadata__"]["lors"])
        about["checksum"] = None if rng.random() < 0.5 else checksum(header, numbers)
        about.pop("check", None)
        check = hashlib.blake2b(json.dumps(about).encode(), digest_size=16).hexdigest()
        metadata["lors"] = json.dumps({**about, "check": check})
    except (KeyError, TypeError, ValueError, AttributeError):
        return


def checksum(header: dict[str, Any], numbers: bytes) -> str:
    """What ``lors.files.artifacts`` writes, computed from the file alone."""
    torch_names = {"F32": "float32", "F64": "float64", "BF16": "bfloat16", "F16": "float16"}
    torch_names |= {"I64": "int64", "I32": "int32", "BOOL": "bool", "U8": "uint8"}
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(set(header) - {"__metadata__"}):
        entry = header[name]
        start, end = entry["data_offsets"]
        dtype, shape = torch_names[entry["dtype"]], tuple(entry["shape"])
        digest.update(f"{name}|torch.{dtype}|{shape}|".encode() + numbers[start:end])
    return digest.hexdigest()


def change_tar(data: bytes, rng: random.Random) -> bytes:
    """A field of a member's header is changed and the header's own checksum made good."""
    starts = [s for s in range(0, len(data) - 511, 512) if data[s + 257 : s + 262] == b"ustar"]
    if not starts:
        return flip(data, rng)
    start = rng.choice(starts)
    block = bytearray(data[start : start + 512])
    field, size = rng.choice(((0, 100), (124, 12), (124, 12), (124, 12), (156, 1), (345, 155)))
    negative = b"\xff" * 10 + struct.pack(">H", 2**16 - rng.randrange(1, 4096))
    huge = b"\x80" + (2**60).to_bytes(11, "big")
    sizes = (huge, negative, b"\xff" * 12, b"00000000001\0", b"-0000000777\0")
    names = (b"../secret.png", b"/etc/x.txt", b"a.json", b"\xff\xfe.png", b"a.png\0b.txt")
    kinds = tuple(bytes([kind]) for kind in b"0123456LKxgSX\0")
    content = rng.choice({12: sizes, 1: kinds}.get(size, names))
    block[field : field + size] = content[:size].ljust(size, b"\0")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return data[:start] + bytes(block) + data[start + 512 :]


def mutants(
    originals: Sequence[bytes], aware: Sequence[Mutation], count: int, seed: str
) -> Iterator[bytes]:
    """``count`` damaged versions of the originals; the same for the same seed.

    Args:
        originals: whole files.
        aware: mutations that know the format; half of all are theirs.
        count: how many.
        seed: draws everything.
    """
    rng = random.Random(seed)
    for _ in range(count):
        yield mutated(rng.choice(originals), aware, rng)


def mutated(data: bytes, aware: Sequence[Mutation], rng: random.Random) -> bytes:
    """A file damaged in one or a few ways, half of them with knowledge of its format."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        kinds = aware if aware and rng.random() < 0.5 else BYTES
        data = rng.choice(kinds)(data, rng)
    return data


def next_input(
    originals: Sequence[bytes],
    kept: Sequence[bytes],
    aware: Sequence[Mutation],
    rng: random.Random,
) -> bytes:
    """A damaged version of an original or of what earlier reached something new.

    Args:
        originals: whole files.
        kept: earlier inputs that took a new step in the code, oldest first.
        aware: mutations that know the format.
        rng: draws everything.
    """
    if not kept or rng.random() < 0.3:
        return mutated(rng.choice(originals), aware, rng)
    data = kept[int(len(kept) * rng.random() ** 0.5)]  # rather a new one
    if rng.random() < 0.1:
        other = rng.choice((*originals, *kept))
        data = data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]
    return mutated(data, aware, rng)
