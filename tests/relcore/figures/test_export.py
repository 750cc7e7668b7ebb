"""Export: any figure as any kind of file, and its recipe back from it."""

from dataclasses import replace
from io import BytesIO

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.figures.export import KINDS, read_recipe, scores_exportable
from relcore.figures.style import Style
from relcore.panes.page import scene_exportable

RECIPE = {
    "figure": "panes",
    "spaces": ["word2vec", 'fast"text" (b)'],
    "anchors": ["über", "<unk>", "</script>", "a\\b", "]]>", "(", "&amp;", "--"],
    "n": 300,
    "center": True,
    "ridge": 0.1,
    "seed": None,
}
SMALL = Style(dpi=80, width=3.25)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("csv", "tex", "py")])
def test_recipe_comes_back_from_every_kind_of_file(make_scene, tmp_path, kind):
    data = scene_exportable(make_scene(n_panes=2), RECIPE).bytes(kind, SMALL)
    assert read_recipe(data) == RECIPE
    path = tmp_path / f"figure.{kind}"
    path.write_bytes(data)
    assert read_recipe(path) == RECIPE


@pytest.mark.parametrize("kind", ["pdf", "svg", "png", "html"])
def test_a_figure_without_recipe_says_so(make_scene, kind):
    with pytest.raises(SpaceError, match="with a recipe inside, got none"):
        read_recipe(scene_exportable(make_scene(n_panes=1)).bytes(kind, SMALL))


def test_csv_holds_the_plotted_numbers_exactly(make_scene):
    scene = make_scene(dimension=3)
    back = pd.read_csv(
        BytesIO(scene_exportable(scene).bytes("csv")), float_precision="round_trip", keep_default_na=False
    )
    pd.testing.assert_frame_equal(back, scene.table(), check_dtype=False)
    assert np.array_equal(back["Absolute, B z"], scene.panes[1].coordinates[:, 2])


def test_latex_has_a_column_for_the_interval_and_one_for_the_chance_level():
    """A chance band beside a score would be read as its interval; no number is a negative zero, and a chance
    level of .0001 is not 0.
    """
    columns = ["metric", "form", "n", "score", "low", "high", "null_low", "null_high", "chance"]
    sampled = ["MRR", "relative", 250, 0.926, 0.9, 1.01, 2e-5, 0.002, 1e-4]
    whole = ["RSA", "relative", 90, -0.0002, *[None] * 5]
    table = pd.DataFrame([sampled, whole], columns=columns)
    drawn = scores_exportable(lambda: table, RECIPE)
    lines = drawn.bytes("tex").decode().splitlines()
    assert lines[0] == r"\begin{tabular}{llrrrr}"
    assert lines[2] == r"representation & metric & score & 95 \% interval & chance level (95 \% band) & n \\"
    assert lines[4] == r"relative & MRR & 0.926 & [0.900, 1.000] & 0.00010 [0.00002, 0.00200] & 250 \\"
    assert lines[5] == r"relative & RSA & 0.000 & – & – & 90 \\"
    assert r"\label" not in drawn.bytes("tex").decode()  # it would name the section
    captioned = replace(drawn, name="relscope scores", caption="Scores of 90 %").bytes("tex").decode()
    assert r"\caption{Scores of 90 \%}" in captioned
    assert r"\label{tab:relscope-scores}" in captioned
    numbers = replace(drawn, latex=lambda: pd.DataFrame({"score": [-0.0002]}))
    assert "-0.000" not in numbers.bytes("tex").decode()


def test_scores_are_drawn_once_and_only_for_a_file():
    tables = []

    def make_table():
        tables.append(pd.DataFrame({"metric": ["MRR"], "form": ["relative"], "n": [90], "score": [0.5]}))
        return tables[-1].assign(null_low=0.01, null_high=0.05, chance=0.02)

    figure = scores_exportable(make_table, RECIPE, "relscope scores")
    assert figure.filename("tex") == "relscope-scores.tex"
    assert figure.bytes("json")
    assert not tables
    assert all(figure.bytes(kind, SMALL) for kind in ("tex", "csv", "svg", "html"))
    assert len(tables) == 1


def test_the_script_draws_the_recipe_and_prints_its_numbers(make_scene, monkeypatch, tmp_path, capsys):
    recipe = {"many": [f"row {row}" for row in range(300)]} | RECIPE | {"name": "it's '''odd\\\n"}
    figure = scene_exportable(make_scene(n_panes=1), recipe, name="my panes")
    text = figure.bytes("py").decode()
    assert text.index("'''odd") < text.index("'many'"), "long lists stand last"
    script = compile(text, "script", "exec")
    called = []
    monkeypatch.setattr("relcore.figure_of", lambda *given: called.append(given) or figure, raising=False)
    monkeypatch.setattr("sys.argv", ["my-panes.py", "data"])
    monkeypatch.chdir(tmp_path)
    exec(script, {})
    assert called == [(recipe, ["data"])]
    assert read_recipe(tmp_path / "my-panes-script.pdf") == recipe
    told = capsys.readouterr().out
    assert "Wrote my-panes-script.pdf" in told
    assert "id" in told.partition("\n")[2]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    gone = {"figure": "comparison", "source": {"source": "file", "name": "gone.npz"}}
    script = compile(replace(figure, recipe=gone).bytes("py").decode(), "script", "exec")
    with pytest.raises(SystemExit, match=r"expected a file, got 'gone.npz', which exists"):
        exec(script, {})
