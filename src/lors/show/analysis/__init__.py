"""Looking into runs, sets and datasets: one file per analysis."""
