"""Every name that a script uses has an example in its docstring, and every example in relcore comes out as
it is printed; so does the code in CONTRIBUTING.md.
"""

import ast
import doctest
import importlib
import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

import relcore
from relcore.base.names import FIGURES, Named
from relcore.represent.translation import Affine, LeastSquares
from relcore.runs.progress import silent
from relcore.runs.store import Store
from relcore.studies.study import StudySpec

ROOT = Path(__file__).parents[2]
PUBLIC = [*(getattr(relcore, name) for name in relcore.__all__), Affine, LeastSquares]
WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "relcore").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_come_out_as_printed(module, capsys):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted
    assert not result.failed, capsys.readouterr().out


@pytest.mark.parametrize("public", PUBLIC, ids=lambda public: public.__name__)
def test_every_public_name_has_an_example(public):
    assert doctest.DocTestParser().get_examples(public.__doc__)


def guide_examples():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = map(textwrap.dedent, re.findall(r"(?ms)^   ```python\n(.*?)^   ```$", text))
    return {next(iter(re.findall(r"class (\w+)", block)), "page"): block for block in blocks}


def run_example(name, monkeypatch, module="example"):
    example = ModuleType(module)
    monkeypatch.setitem(sys.modules, module, example)
    exec(guide_examples()[name], vars(example))  # what the guide says
    return example


def test_the_page_and_its_task_in_the_guide_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "relcore.lengths", ModuleType("relcore.lengths"))
    monkeypatch.setitem(FIGURES, "lengths", Named("", ".lengths.lengths:LengthChart"))
    example = run_example("Shares", monkeypatch, "relcore.lengths.lengths")
    space = relcore.LatentSpace(np.diag([0.5, 2.5, 4.0]), list("abc"), name="three")
    shares = example.RowLengths(bins=4).run((space, space)).shares
    assert shares["three"].tolist() == [1 / 3, 0, 1 / 3, 1 / 3]
    page = ast.parse(guide_examples()["page"])
    for line in page.body:
        if isinstance(line, ast.ImportFrom):
            exec(ast.unparse(line), {})


def test_the_study_in_the_guide_runs(monkeypatch, tmp_path):
    study = run_example("DroppedRows", monkeypatch).DroppedRows("dropped-rows")
    (whole, *_), store = study.runs(StudySpec.of(study).settings), Store(tmp_path)
    values = study.measure(whole, store, silent).values
    assert whole["dropped"] == 0
    assert values["cka"] > 0.5 > values["chance"]


def test_the_encoder_in_the_guide_encodes(monkeypatch):
    encoder = run_example("MeanColour", monkeypatch).MeanColour()
    red = Image.new("RGB", (2, 2), "red")
    assert encoder.prepare(None, silent)([red])[""].tolist() == [[1, 0, 0]]
