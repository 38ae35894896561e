from __future__ import annotations

from lors.comparison.render import Entry, Line, latex, markdown

LINES = [
    Line("100 pairs", [Entry(8.31, 0.2, 8.3), Entry(24.06, 1.0, best=True), Entry(published=1.5)]),
    Line("200_pairs|x", [Entry(30.0, best=True), Entry(2.0, 0.5), Entry(0.0512, 0.001, digits=3)]),
]


def test_markdown_has_the_best_in_bold_and_the_papers_number_beside() -> None:
    page = markdown("A title", ["Random", "LoRS", "DC"], [("Mean recall", LINES)], ["A note."])
    assert "| 100 pairs | 8.3 ± 0.2 (paper 8.3) | **24.1 ± 1.0** | – (paper 1.5) |" in page
    assert r"| 200_pairs\|x | **30.0** | 2.0 ± 0.5 | 0.051 ± 0.001 |" in page
    assert page.startswith("# A title\n")
    assert "A note." in page


def test_latex_escapes_what_latex_would_read() -> None:
    text = latex("50 % & ω", ["Random", "LoRS", "DC"], LINES, ["43.2 ± 0.5."])
    assert r"\caption{50 \% \& $\omega$. 43.2 $\pm$ 0.5.}" in text
    assert r"200\_pairs|x & \textbf{30.0} & 2.0 $\pm$ 0.5" in text
    assert text.count("\\begin{") == text.count("\\end{")
