"""Selection: choosing real pairs instead of learning synthetic ones."""

from collections.abc import Callable

from lors.selection.candidates import Candidates
from lors.selection.forgetting import forgetting
from lors.selection.herding import herding
from lors.selection.k_center import k_center
from lors.selection.pool import Choice, Pool
from lors.selection.random import at_random
from lors.selection.score import best_fitting

__all__ = ["SELECTIONS", "Candidates", "Choice", "Pool"]

SELECTIONS: dict[str, Callable[[Pool, int], Choice]] = {
    "random": lambda pool, count: at_random(pool.size, count, pool.rng),
    "herding": lambda pool, count: herding(pool.candidates(), count),
    "k-center": lambda pool, count: k_center(pool.candidates(), count),
    "forgetting": lambda pool, count: forgetting(pool.learned(), count, pool.rng),
    "clip-score": lambda pool, count: best_fitting(*pool.embeddings(), count),
}
