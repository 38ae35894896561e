"""Searching photos by words, with models trained on a distilled set."""

from lors.share.search.finder import Finder, Match, search

__all__ = ["Finder", "Match", "search"]
