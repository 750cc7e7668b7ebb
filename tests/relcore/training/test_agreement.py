import re
from dataclasses import replace
from io import BytesIO

import numpy as np
import pandas as pd
import pytest

import relcore
from relcore.base.errors import SpaceError
from relcore.cli import main
from relcore.compare.pictures import exportable
from relcore.figures import paper_panels
from relcore.figures.export import read_recipe
from relcore.training.agreement import OWN, RELATIVE, TO_LAST
from relcore.training.chart import TrainingChart

STEPS = (0, 1, 10, 100)
N = 120
D = 8


def rotation(seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(D, D)))[0]


def saved(folder, frames, labels=None):
    folder.mkdir(parents=True)
    for step, rows in zip(STEPS, frames, strict=True):
        space = relcore.LatentSpace(rows, [f"row {i}" for i in range(len(rows))], labels=labels)
        relcore.save_space(space, folder / f"step-{step}.npz")
    return relcore.open_run(folder)


def noise(seed):
    return np.random.default_rng(seed).normal(size=(N, D))


@pytest.fixture(scope="module")
def agreeing(tmp_path_factory):
    """Two runs that begin with unrelated rows and end with the same rows on other axes."""
    folder = tmp_path_factory.mktemp("runs")
    end = noise(0)
    shares = (0, 0.3, 0.9, 1)
    first = [share * end + (1 - share) * noise(1) for share in shares]
    second = [(share * end + (1 - share) * noise(2)) @ rotation(3) for share in shares]
    labels = [str(i % 3) for i in range(N)]
    return [saved(folder / "first", first, labels), saved(folder / "second", second, labels)]


def test_runs_that_differ_by_their_axes_alone_agree_relative_to_anchors_alone(agreeing):
    result = relcore.compare_runs(agreeing)
    assert result.agree == {"second": True}
    relative = result.agreement(RELATIVE).score.tolist()
    assert relative == sorted(relative)
    assert relative[-1] == 1
    for quantity, place in ((RELATIVE, 0), (OWN, -1)):  # unrelated rows and other axes: chance
        line = result.agreement(quantity).iloc[place]
        assert line.score <= line.chance_high * 1.5
        assert line.n == len(result.scored) == N - len(result.anchors)
    assert "come to agree" in result.sentence()
    assert not set(result.anchors) & set(result.scored)


@pytest.mark.parametrize(
    ("noises", "verb"), [((9.0, 9.0, 9.0, 0.6), "begin"), ((9.0, 9.0, 1.0, 0.1), "come")]
)
def test_half_of_the_possible_rise_parts_the_verdicts(tmp_path, noises, verb):
    rows = noise(1)
    runs = []
    for seed, name in enumerate(("first", "second")):
        frames = [rows + size * noise(10 * seed + place + 2) for place, size in enumerate(noises)]
        runs.append(saved(tmp_path / name, frames))
    result = relcore.compare_runs(runs)
    score = result.agreement(RELATIVE).score
    assert result.agree == {"second": True}
    assert (score.iloc[-1] > (1 + score.iloc[0]) / 2) == (verb == "come")
    assert f"first and second {verb} to agree" in result.sentence()


def test_a_quantity_has_one_colour_with_and_without_metrics(agreeing):
    result = relcore.compare_runs(agreeing)
    accuracy = pd.DataFrame(
        {"quantity": ["accuracy"], "run": ["first"], "other": "", "step": 0, "score": 0.5}
    )
    more = replace(result, table=pd.concat([accuracy, result.table]))
    drawn, with_metric = ({line.name: line.color for line in one.lines().lines} for one in (result, more))
    assert len(set(drawn.values())) == 3
    assert drawn.items() < with_metric.items()
    assert with_metric["accuracy: first"] not in drawn.values()


def test_unrelated_runs_and_runs_that_part_do_not_agree(tmp_path, agreeing):
    alone = saved(tmp_path / "alone", [noise(seed) for seed in (5, 6, 7, 8)])
    parting = [agreeing[1].rows(place) for place in (3, 2, 1, 0)]
    parted = saved(tmp_path / "parted", parting)
    result = relcore.compare_runs([agreeing[0], alone])
    assert result.agree == {"alone": False}
    assert "do not come to agree" in result.sentence()
    assert re.search(r"no better than by chance \(\S+; chance level \.\d+\)", result.sentence())
    assert "for the same row, not for the same group" in result.report().notes[0]
    back = saved(tmp_path / "back", [agreeing[0].rows(place) for place in (3, 2, 1, 0)])
    assert relcore.compare_runs([back, parted]).agree == {"parted": False}


def test_ten_pairs_of_unrelated_runs_are_never_said_to_agree(tmp_path):
    """A negative control: rises of unrelated rows scatter around 0, and their 95 % intervals hold 0."""
    rises = []
    for seed in range(10):
        pair = [
            saved(tmp_path / f"{seed}-{side}", [noise(100 * seed + 10 * side + i) for i in range(len(STEPS))])
            for side in (0, 1)
        ]
        result = relcore.compare_runs(pair)
        assert not any(result.agree.values())
        rises += result.rises.values()
    assert sum(rise.is_clear for rise in rises) <= 3  # binomial, p = .05: 99.9 % of draws


def test_each_run_ends_at_its_last_frame(agreeing):
    last = relcore.compare_runs(agreeing).agreement(TO_LAST)
    assert last[last.step == STEPS[-1]].score.tolist() == [1, 1]


@pytest.mark.parametrize("width", [D, 40])
def test_a_frame_is_rotated_to_the_one_before_it(tmp_path, width):
    rows = np.random.default_rng(0).normal(size=(N, width)) * np.linspace(3, 1, width)
    turned = [rows @ np.linalg.qr(np.random.default_rng(i).normal(size=(width, width)))[0] for i in range(4)]
    if width > D:  # only within the axes that are kept can all of a rotation be undone
        turned = [rows * sign for sign in (1, -1, 1, -1)]
    places = relcore.compare_runs([saved(tmp_path / "run", turned)]).places[OWN][0]
    np.testing.assert_allclose(places, np.broadcast_to(places[-1], places.shape), atol=1e-4)


def test_relative_places_of_runs_that_agree_are_equal(agreeing):
    result = relcore.compare_runs(agreeing)
    first, second = result.places[RELATIVE]
    np.testing.assert_allclose(first[-1], second[-1], atol=1e-5)


@pytest.mark.parametrize("measure", ["mrr", "jaccard", "cosine"])
def test_each_measure_has_its_chance_level(agreeing, measure):
    result = relcore.compare_runs(agreeing, relcore.TrainingSpec(measure=measure, k=5, n_anchors=20))
    last = result.agreement(RELATIVE).iloc[-1]
    assert last.score == pytest.approx(1, abs=1e-6)
    assert last.chance < last.chance_high < last.score
    assert result.agree == {"second": True}


def test_runs_with_other_steps_widths_and_rows_are_compared_where_they_meet(tmp_path, agreeing):
    rows = np.random.default_rng(4).normal(size=(N, D + 1))
    folder = tmp_path / "wide"
    folder.mkdir()
    for step in (0, 2, 40):
        ids = [f"row {i}" for i in range(20, 20 + N)]
        relcore.save_space(relcore.LatentSpace(rows, ids), folder / f"step-{step}.npz")
    result = relcore.compare_runs([agreeing[0], relcore.open_run(folder)])
    assert result.steps.tolist() == [0, 1, 10]
    assert [frames.tolist() for frames in result.frames] == [[0, 1, 2], [0, 1, 1]]
    assert len(result.ids) == N - 20
    assert not len(result.agreement(OWN))
    assert "different lengths" in result.sentence()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"layer": "conv"}, "layer: expected one that all runs have"),
        ({"n_anchors": 119}, "n_anchors: expected at most 118"),
        ({"measure": "cka"}, "measure"),
        ({"k": 0}, "k"),
    ],
)
def test_wrong_settings_are_refused(agreeing, given, message):
    with pytest.raises(SpaceError, match=message):
        relcore.compare_runs(agreeing, relcore.TrainingSpec(**given))


def test_no_run_and_no_common_row_are_refused(tmp_path, agreeing):
    with pytest.raises(SpaceError, match="expected one or more"):
        relcore.compare_runs([])
    (tmp_path / "other").mkdir()
    space = relcore.LatentSpace(noise(0), [f"other {i}" for i in range(N)])
    relcore.save_space(space, tmp_path / "other" / "step-0.npz")
    with pytest.raises(SpaceError, match="expected 20 rows or more"):
        relcore.compare_runs([agreeing[0], relcore.open_run(tmp_path / "other")])


@pytest.fixture
def few_pictures(monkeypatch):
    monkeypatch.setattr(paper_panels, "_FILM_FRAMES", 8)


@pytest.mark.usefixtures("few_pictures")
def test_the_command_writes_films_pages_strips_and_recipes(agreeing, tmp_path, capsys):
    from PIL import Image

    folder = str(agreeing[0].folder.parent)
    outputs = [tmp_path / f"film.{kind}" for kind in ("gif", "html", "csv", "json")]
    for output in outputs:
        assert main(["training", folder, "--relative", "-o", str(output)]) == 0
    assert "come to agree" in capsys.readouterr().out
    with Image.open(outputs[0]) as picture:
        assert picture.n_frames == 3 * 2 + 1
    page = outputs[1].read_text(encoding="utf-8")
    assert "http-equiv" in page
    recipe = read_recipe(outputs[1])
    assert recipe["runs"][0]["name"] == "first"
    assert recipe == read_recipe(outputs[3])


def test_the_recipe_draws_the_same_numbers(agreeing, tmp_path):
    spec = relcore.TrainingSpec(k=5, random_state=1)
    chart = TrainingChart.of(agreeing, spec, RELATIVE)
    drawn = chart.draw()
    again = exportable(chart.to_json())
    assert again.bytes("csv") == drawn.bytes("csv")
    assert drawn.bytes("png").startswith(b"\x89PNG")
    described = chart.to_json()
    described["runs"][0]["digest"] = "0" * 32
    with pytest.raises(SpaceError, match="has changed"):
        exportable(described)


@pytest.mark.usefixtures("few_pictures")
def test_a_film_ends_with_the_last_frame(agreeing):
    from PIL import Image

    panels = relcore.compare_runs(agreeing).panels()
    with Image.open(BytesIO(paper_panels.film(panels, "webp"))) as picture:
        sizes = picture.size
        n_frames = picture.n_frames
    assert n_frames == 3 * 2 + 1
    assert sizes[0] > sizes[1] / 2


def test_a_comparison_keeps_few_frames_of_large_probes(agreeing, monkeypatch):
    usual = relcore.compare_runs(agreeing)
    read = []
    rows = type(agreeing[0]).rows
    monkeypatch.setattr(
        type(agreeing[0]), "rows", lambda run, *asked: read.append(asked) or rows(run, *asked)
    )
    monkeypatch.setattr("relcore.training.comparison._MOST_KEPT", 1)
    pd.testing.assert_frame_equal(relcore.compare_runs(agreeing).table, usual.table)
    assert len(read) > 2 * len(STEPS)  # frames are read again, but the last ones
    assert [frame for frame, _ in read].count(len(STEPS) - 1) == 2
