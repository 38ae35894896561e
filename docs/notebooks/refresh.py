"""Run the notebooks in fresh kernels and keep their outputs, without what changes from run to run.

python docs/notebooks/refresh.py            # all of them
python docs/notebooks/refresh.py 01 04      # those whose names begin so
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
SECONDS = 900
"""After which a cell is given up: far more than any needs on an idle core."""


def executed(notebook: Any, checks: str = "") -> Any:
    """The notebook after a run of all its cells, in an empty folder of its own.

    Args:
        notebook: as nbformat reads it.
        checks: code to run after the last cell.
    """
    if checks:
        notebook.cells.append(nbformat.v4.new_code_cell(checks))
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=place).execute()
    return notebook


def tidied(notebook: Any) -> Any:
    """Without times, counters of the kernel, and the progress of long-running calls."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell.id = {}, f"cell-{number:02}"
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_progress(output)]
            cell.execution_count = None
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = None
                if "metadata" in output:
                    output.metadata = {}
    return notebook


def _is_progress(output: Any) -> bool:
    return output.output_type == "display_data" and "image/png" not in output.data


def main(names: list[str]) -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.name.startswith(tuple(names)):
            notebook = nbformat.read(path, as_version=4)
            nbformat.write(tidied(executed(notebook)), path)
            print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
