from __future__ import annotations

from itertools import islice

from lors.runs.opened import Run
from lors.share.search.finder import DISTILLED, Finder
from lors.share.search.scenes import SLOTS, _all_words, prepared_answers, scene_query


def test_a_prepared_answer_is_that_of_the_finder(run: Run) -> None:
    finder = Finder.of_run(run)
    prepared = prepared_answers(finder, seed=0, count=3)
    (answers,) = prepared["answers"]
    queries = 1
    for slot in SLOTS:
        queries *= len(slot) + 1
    assert len(answers) == 6 * queries
    for number in (1, 17, 4321, queries - 1):
        words = next(islice(_all_words(), number, None))
        found = finder.find(scene_query(words), 3)[DISTILLED]
        row = answers[6 * number : 6 * number + 6]
        assert [int(row[i : i + 2], 36) for i in (0, 2, 4)] == [match.place for match in found]


def test_the_scenes_are_those_of_the_pictures(run: Run) -> None:
    finder = Finder.of_run(run)
    prepared = prepared_answers(finder, run.config.data.seed, count=1)
    for scene, photo in zip(prepared["scenes"], finder.photos, strict=True):
        words = " ".join(photo.captions)
        backgrounds = {word for word, _ in SLOTS[-1] if word in words.split()}
        assert backgrounds <= {scene["background"]}
