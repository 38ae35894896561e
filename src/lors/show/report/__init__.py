"""The report: a page for a person who would rather look than read."""

from lors.show.report.write import REPORT, end_with_report, write_report

__all__ = ["REPORT", "end_with_report", "write_report"]
