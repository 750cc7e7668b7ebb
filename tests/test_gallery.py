"""Each example of the gallery runs, writes its figure, and is short."""

import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "docs" / "gallery").glob("*.py"))


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "docs" / "site" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_what_it_is(script):
    code = script.read_text(encoding="utf-8")
    title, about = ast.get_docstring(ast.parse(code)).split("\n\n")
    assert len(code.splitlines()) <= 30
    assert not title.endswith(".")
    assert about.count(".") <= 3


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_draws_its_figure(script, build, tmp_path):
    figure, _ = build.run_example(script, tmp_path)
    assert (tmp_path / f"{script.stem}.html").stat().st_size > 10_000
    assert figure.table().size


def test_a_link_that_leads_nowhere_is_found(build, tmp_path):
    page = '<h1 id="here"></h1><a href="#here"></a><a href="two.html#there"></a><a href="https://far"></a>'
    (tmp_path / "one.html").write_text(page + '<img src="none.png"><script src="https://far/a.js"></script>')
    (tmp_path / "two.html").write_text("<p></p>")
    told = build.broken_links(tmp_path)
    assert [line.partition(": ")[2].split(" ")[0] for line in told] == ["loads", "none.png", "two.html#there"]
