"""The IPython shell that this process runs in, if any; it is never imported for its own sake."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["below_kernel", "ipython", "kernel"]


def ipython() -> Any | None:
    """The IPython shell of this process, in a notebook or in a terminal."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None


def kernel() -> Any | None:
    """The IPython shell of this process, if it is the kernel of a notebook."""
    shell = ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


def below_kernel() -> bool:
    """Whether a kernel started this process, as by ``!lors`` in a cell.

    Its output is a terminal, but what a cell shows of it knows no cursor.
    """
    return "JPY_PARENT_PID" in os.environ and kernel() is None
