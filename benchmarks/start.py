"""How long it takes to list a dataset of many photos: at the first start, and at every later one.

    python benchmarks/start.py 7000 100000 1000000

The photos are small files with one caption each, in folders of 1,000. At the first start each is
hashed; later ones only look whether they have changed. Prints a table of CPU seconds.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from lors.config import DataConfig
from lors.data import Pairs
from lors.files import digests
from lors.system.progress import Silent


def main() -> None:
    digests.SETTLED = -(10**9)  # these files have just been written
    print("| photos | first start | later starts |")
    print("|---|---|---|")
    for count in map(int, sys.argv[1:] or ("7000",)):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["LORS_HOME"] = f"{folder}/home"
            config = write(Path(folder, "photos"), count)
            first, *later = (seconds(config) for _ in range(4))
            print(f"| {count:,} | {first:.2f} s | {min(later):.2f} s |", flush=True)


def write(root: Path, count: int) -> DataConfig:
    with_captions = ["image,caption"]
    for number in range(count):
        name = f"{number // 1000:04d}/{number:07d}.jpg"
        if number % 1000 == 0:
            (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(b"%d" % number)
        with_captions.append(f"{name},a photo of {number}")
    (root / "captions.csv").write_text("\n".join(with_captions))
    return DataConfig(source="table", root=root)


def seconds(config: DataConfig) -> float:
    begun = time.process_time()
    Pairs({}).find(config, Silent())
    return time.process_time() - begun


if __name__ == "__main__":
    main()
