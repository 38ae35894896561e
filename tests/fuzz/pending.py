"""Bugs that are known and being fixed elsewhere; this file goes when all are."""

from __future__ import annotations

PENDING: dict[str, dict[str, str]] = {}
CASES_PENDING: dict[str, str] = {}
