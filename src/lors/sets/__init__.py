"""Sets: synthetic pairs, which are learned, and the distilled set, which is kept."""
