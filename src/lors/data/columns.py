"""Columns of Parquet and Arrow files: embeddings, owners and captions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lors.files.arrays import read_array, write_blocks
from lors.files.artifacts import home
from lors.files.cache import fingerprint, made_once, reading_cache
from lors.system.errors import InputError, out_of_memory
from lors.system.progress import Progress

__all__ = ["SUFFIXES", "column_array", "column_integers", "column_texts"]

SUFFIXES = (".parquet", ".arrow", ".feather")
ROWS = 4096
"""Rows unpacked at a time."""
RATIO = 1000
"""How often larger than its file a column may be: numbers cannot be packed as well as that."""

Batches = Callable[[str], Iterator[Any]]


def column_array(path: Path, side: str, digest: str, progress: Progress) -> np.ndarray:
    """A column of lists as an array that is memory-mapped from the cache, unpacked on first use.

    A missing row is one of NaN.

    Args:
        path: a file with an ending of ``SUFFIXES``.
        side: images or texts: the column is named so, ``embedding``, or the only one of lists.
        digest: of what the file holds.
        progress: reports a wait for another process.

    Returns:
        Shape: (M, d), or (M, captions, d) for lists of lists.

    Raises:
        InputError: it is damaged, has no such column, or its rows differ in length.
    """
    names = (side, side[:-1], f"{side[:-1]}_embedding", f"{side}_embeddings", "embedding")
    cached = home() / "embeddings" / f"{fingerprint(digest, side)}.npy"
    if not cached.exists():
        schema, count, batches = _opened(path)
        name = _chosen(path, schema, (*names, "embeddings"), _is_lists, "lists of numbers", side)
        shape, dtype = _shape(path, count, batches(name))
        rows = _arrays(path, shape, dtype, batches(name))
        made_once(cached, lambda: write_blocks(cached, shape, dtype, rows), progress)
    with reading_cache():
        return read_array(cached)


def column_integers(path: Path, name: str) -> np.ndarray:
    """A column of whole numbers. Shape: (C,)"""
    schema, _, batches = _opened(path)
    chosen = _chosen(path, schema, (name,), _is_integers, "whole numbers", name)
    parts = [batch.to_numpy(zero_copy_only=False) for batch in batches(chosen)]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def column_texts(path: Path) -> list[Any]:
    """A column of captions: a text of each row, or a list of texts."""
    schema, _, batches = _opened(path)
    names = ("captions", "caption", "text", "texts")
    chosen = _chosen(path, schema, names, _is_texts, "text", "captions")
    return [value for batch in batches(chosen) for value in batch.to_pylist()]


def _opened(path: Path) -> tuple[Any, int, Batches]:
    """The schema of a file, how many rows it has, and what gives the batches of a column."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError(
            f"reading {str(path)!r} needs the package pyarrow: pip install 'lors[huggingface]'"
        ) from None
    with _reading(path):
        return _parquet(path) if path.suffix == ".parquet" else _arrow(path)


def _parquet(path: Path) -> tuple[Any, int, Batches]:
    import pyarrow.parquet as parquet

    file = parquet.ParquetFile(path, memory_map=True)

    def batches(name: str) -> Iterator[Any]:
        with _reading(path):
            for batch in file.iter_batches(ROWS, columns=[name]):
                yield _valid(batch.column(0))

    return file.schema_arrow, file.metadata.num_rows, batches


def _arrow(path: Path) -> tuple[Any, int, Batches]:
    """An Arrow file (Feather), or a stream as the package datasets writes it."""
    import pyarrow

    def reader() -> Any:
        try:
            return pyarrow.ipc.open_file(pyarrow.memory_map(str(path)))
        except pyarrow.ArrowInvalid:
            return pyarrow.ipc.open_stream(pyarrow.memory_map(str(path)))

    def every() -> Iterator[Any]:
        found = reader()
        if hasattr(found, "num_record_batches"):
            yield from (found.get_batch(i) for i in range(found.num_record_batches))
        else:
            yield from found

    def batches(name: str) -> Iterator[Any]:
        with _reading(path):
            for batch in every():
                column = _valid(batch.column(batch.schema.get_field_index(name)))
                yield from (column[at : at + ROWS] for at in range(0, len(column), ROWS))

    return reader().schema, sum(batch.num_rows for batch in every()), batches


def _valid(column: Any) -> Any:
    column.validate(full=True)  # pyarrow itself believes offsets, and reads where they lead
    return column


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say of what the package raises, which may be anything, which file it is about."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if out_of_memory(error):
            raise
        reason = " ".join(str(error).split())
        raise InputError(f"cannot read the table {str(path)!r}: {reason}") from None


def _chosen(
    path: Path,
    schema: Any,
    names: Sequence[str],
    fits: Callable[[Any], bool],
    what: str,
    key: str,
) -> str:
    """The column of one of these names, or the only one of its kind."""
    of_kind = [field.name for field in schema if fits(field.type)]
    named = [name for name in names if of_kind.count(name) == 1]
    if not named and len(of_kind) != 1:
        columns = ", ".join(f"{field.name} ({field.type})" for field in list(schema)[:20])
        raise InputError(
            f"{str(path)!r} has {len(of_kind)} columns of {what}: name the right one {key!r}; its "
            f"columns are {columns or 'none'}"
        )
    return named[0] if named else of_kind[0]


def _is_list(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_lists(kind: Any) -> bool:
    import pyarrow.types as types

    if not _is_list(kind):
        return False
    inner = kind.value_type
    return bool(types.is_floating(inner.value_type if _is_list(inner) else inner))


def _is_integers(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(kind))


def _is_texts(kind: Any) -> bool:
    import pyarrow.types as types

    inner = kind.value_type if _is_list(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner))


def _shape(path: Path, count: int, batches: Iterator[Any]) -> tuple[tuple[int, ...], Any]:
    """The shape and type of a column, by its first row that is not missing."""
    for batch in batches:
        rows = batch.drop_null()
        if len(rows):
            inner, dtype = _one(rows[0].values, path)
            size = count * int(np.prod(inner)) * dtype.itemsize
            if size > RATIO * path.stat().st_size:
                raise InputError(f"{str(path)!r} would unpack to {size:,} bytes: save it plainly")
            return (count, *inner), dtype
    raise InputError(f"{str(path)!r} has no rows of numbers")


def _one(values: Any, path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type of one row."""
    if _is_list(values.type):
        lengths = {len(row.values) if row.is_valid else 0 for row in values}
        if len(lengths) != 1:
            raise InputError(f"the captions of a row of {str(path)!r} have different lengths")
        flat = values.flatten()
        return (len(values), *lengths), flat.to_numpy(zero_copy_only=False).dtype
    return (len(values),), values.to_numpy(zero_copy_only=False).dtype


def _arrays(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], batches: Iterator[Any]
) -> Iterator[np.ndarray]:
    """The rows, a batch at a time, those that are missing as NaN."""
    start = 0
    for batch in batches:
        rows = np.full((len(batch), *shape[1:]), np.nan, dtype)
        there = np.flatnonzero(batch.is_valid().to_numpy(zero_copy_only=False))
        values = batch.drop_null().flatten()
        if len(shape) == 3:
            values = values.flatten()
        numbers = values.to_numpy(zero_copy_only=False)
        if numbers.size != len(there) * int(np.prod(shape[1:])) or not _even(batch, shape):
            raise InputError(
                f"the rows of {str(path)!r} after {start:,} are not all of the shape "
                f"{shape[1:]} of the first: give as many numbers in each"
                + (", or the texts one per row, with owner" if len(shape) == 3 else "")
            )
        rows[there] = numbers.reshape(len(there), *shape[1:])
        yield rows
        start += len(batch)


def _even(batch: Any, shape: tuple[int, ...]) -> bool:
    """Whether all lists of a batch have the lengths that the shape says."""
    import pyarrow.compute as compute

    rows = batch.drop_null()
    for length in shape[1:]:
        lengths = compute.list_value_length(rows)
        if len(rows) and not compute.all(compute.equal(lengths, length)).as_py():
            return False
        rows = rows.flatten()
    return True
