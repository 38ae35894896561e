"""Uses of a set: what one does with it, measured beside random pairs, selections and full data."""
