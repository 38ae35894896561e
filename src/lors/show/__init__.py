"""Looking at results: report, figures, analyses."""
