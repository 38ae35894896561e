"""What a matcher says of itself: its options, what it needs and what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lors.config.types import Section

if TYPE_CHECKING:
    from lors.config.config import Config

__all__ = ["MatchingOptions"]

DEFAULT_SNAPSHOTS = frozenset({0, 1, 2})
"""Those that trajectory matching reads as it is by default."""


class MatchingOptions(Section):
    """The options of one matcher; those of others are refused.

    >>> class Options(MatchingOptions):
    ...     strength: float = 1.0
    >>> Options(kind="mine", strength=2)
    Options(kind='mine', strength=2.0)

    Args:
        kind: the matcher's name.
        learns_rates: whether a set learns its inner rates; if not, they are tuned on val.
        divisible: whether ranks can divide its batches (``--data-parallel``).
        scopes: the scopes it works in.
        spaces: the spaces it works in.
        reads_experts: whether it reads experts at all.
        step_option: the option that says how many steps of training an iteration goes through;
            None if it goes through none.
        batch_options: the options that say how many pairs an iteration looks at; one that is not
            set stands for ``experts.batch_size``.
        of_methods: the options that tell methods apart which have this matcher; one that a method
            does not name has its default, whatever a configuration says.
    """

    learns_rates: ClassVar[bool] = False
    divisible: ClassVar[bool] = False
    scopes: ClassVar[tuple[str, ...]] = ("heads", "image", "all")
    spaces: ClassVar[tuple[str, ...]] = ("pixels", "features")
    reads_experts: ClassVar[bool] = True
    step_option: ClassVar[str | None] = None
    batch_options: ClassVar[tuple[str, ...]] = ()
    of_methods: ClassVar[tuple[str, ...]] = ()

    kind: str

    def __reduce__(self) -> tuple[Any, ...]:
        """For worker processes, which find the class by the matcher's name."""
        from lors.config.options import matching_options  # which needs what is here

        return matching_options, (self.model_dump(),)

    def snapshots(self, epochs: int) -> set[int]:
        """The epochs of experts that it reads, of 0 to ``epochs``.

        One that reads none leaves open which are kept: those of the default, so that methods can
        share experts.
        """
        return set(DEFAULT_SNAPSHOTS)

    def last_start(self) -> int:
        """The last epoch of experts that it starts from, or at which to look at them."""
        return 1

    def parts(self, budget: int) -> int:
        """How many parts of a set of this budget are learned apart from each other."""
        return 1

    def idle_loss(self) -> float | None:
        """The matching loss of a set that teaches nothing, where it is known."""
        return None

    def check(self, config: Config) -> None:
        """Refuse options that do not fit the rest of the configuration.

        Raises:
            ValueError: says which and what to do.
        """
        for part, able in (("scope", self.scopes), ("space", self.spaces)):
            if getattr(config.encoder, part) not in able:
                raise ValueError(
                    f"{self.kind} matching needs encoder.{part}={' or '.join(able)}, not "
                    f"{getattr(config.encoder, part)}"
                )
