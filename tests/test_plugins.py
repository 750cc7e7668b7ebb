"""Plugins: the package of plugins/measures, built and installed by pip, and broken packages. Relscope finds them by
their entry points, names them in errors, and never lets them replace what it has itself.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from app.places import RESEARCH
from app.workspace import Workspace
from relcore import load_space
from relcore.base import families, names, plugins
from relcore.base.errors import SpaceError
from relcore.catalog import naming
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.encodings import encode_job, encoding_job_key, load_encoding, put_space, stored_encodings
from relcore.catalog.task import task_job
from relcore.cli import main
from relcore.compare.all_pairs import AllPairs
from relcore.encode import command as encode_command
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import encoder_class, encoder_from_json
from relcore.files import confined
from relcore.files.formats import Description, Format, Regions
from relcore.files.on_disk import OnDisk
from relcore.files.reading import shape_of
from relcore.represent.projection import RelativeProjection
from relcore.represent.representations import ProjectionSpec
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from relcore.runs.work import Context
from relcore.stores.index import parse_place
from relcore.studies.study import study_of
from tests.app.conftest import Session
from tests.plugins.test_measures_of_form import by_rtd_lite

TEMPLATE = Path(__file__).parents[1] / "plugins" / "measures"
METRIC = "rtd lite"
TEXTS = DatasetSpec("parallel", "en", limit=40)
LENGTHS = Path(__file__).parents[1] / "docs" / "plugin" / "lengths"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that pip installed the template's wheel into."""
    return installed_package(TEMPLATE, tmp_path_factory.mktemp("plugin"))


@pytest.fixture(scope="module")
def installed_lengths(tmp_path_factory):
    """The folder that pip installed the example of docs/plugin into."""
    return installed_package(LENGTHS, tmp_path_factory.mktemp("lengths"))


def installed_package(source, folder):
    shutil.copytree(source, folder / "source")
    quiet = ["-q", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *quiet, "--target", folder / "site", folder / "source"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "site"


@pytest.fixture
def look(monkeypatch, tmp_path):
    """``look(folder)``: look for plugins as a program does that starts with this folder on its path."""
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.delitem(sys.modules, "relscope_measures", raising=False)  # that of plugins/, until the end
    before = set(sys.modules)

    def forget() -> None:
        plugins._entry_points.cache_clear()
        for family in names.FAMILIES:
            family.__dict__.pop("_found", None)
        for name in {*sys.modules} - before:
            if name.startswith(("relscope_measures", "relscope_lengths", "toy_")):
                del sys.modules[name]

    def begin(folder: Path) -> None:
        monkeypatch.syspath_prepend(folder)
        path = [str(folder), os.getcwd(), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
        forget()

    yield begin
    forget()
    monkeypatch.undo()


def package(folder: Path, points: dict[str, str], code: str, version: str = "1.0") -> Path:
    """A package as pip leaves it: the module ``toy_toy``, its metadata, and entry points ("group:name" → value)."""
    about = folder / f"toy_toy-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: toy-toy\nVersion: {version}\n")
    lines = (f"[relscope.{key.replace(':', ']' + chr(10))} = {value}\n" for key, value in points.items())
    (about / "entry_points.txt").write_text("".join(lines))
    (folder / "toy_toy.py").write_text(code)
    return folder


@pytest.fixture
def run_relscope(monkeypatch, tmp_path, capsys):
    """``run_relscope(*arguments) -> stdout``, in the folder of the test."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        if "--help" in arguments:
            with pytest.raises(SystemExit):
                main([*arguments])
        else:
            assert main([*arguments]) == 0
        return " ".join(capsys.readouterr().out.split())

    return run


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(90, 6)).astype("<f4")
    for name, noise in (("first", 0), ("near", 0.3), ("far", 3)):
        rows = (vectors + noise * rng.normal(size=vectors.shape)).astype("<f4")
        (tmp_path / f"{name}.floats").write_bytes(np.array([6], "<u4").tobytes() + rows.tobytes())
    return [SpaceSpec("file", str(tmp_path / f"{name}.floats")) for name in ("first", "near", "far")]


# The template


def test_names_are_listed_without_an_import_and_those_of_relscope_without_a_look(installed, look):
    look(installed)
    assert names.METRICS["cka"].title == "linear CKA"
    assert "_found" not in names.METRICS.__dict__
    assert METRIC in list(names.METRICS)
    assert {"letters", ".floats"} <= {*names.ENCODERS, *names.FORMATS}
    assert names.ENCODERS["letters"].help.endswith("a file format for Relscope (relscope-measures 1.0)")
    assert "relscope_measures" not in sys.modules
    assert encoder_class("letters").__module__ == "relscope_measures"


def test_importing_relcore_reads_no_metadata():
    code = "import sys, relcore, relcore.base.names; print('importlib.metadata' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_the_command_compares_its_files_by_its_metric_and_the_recipe_again(
    installed, look, files, tmp_path, monkeypatch
):
    look(installed)
    monkeypatch.delenv("RELSCOPE_CONFINED", raising=False)
    paths = [spec.name for spec in files[:2]]
    command = [sys.executable, "-m", "relcore", "compare", *paths, "--metrics", METRIC, "--json"]
    ran = subprocess.run([*command, "--recipe", tmp_path / "r.json"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    rows = {row["form"]: row for row in json.loads(ran.stdout)["rows"]}
    expected = by_rtd_lite(*(load_space(path).vectors for path in paths))
    assert rows["absolute"]["metric"] == METRIC
    assert rows["absolute"]["score"] == pytest.approx(expected, abs=1e-6)
    assert main(["figure", str(tmp_path / "r.json"), "-o", str(tmp_path / "again.csv")]) == 0
    assert set(pd.read_csv(tmp_path / "again.csv").metric) == {METRIC}
    assert 0 < rows["absolute"]["null_low"] < rows["absolute"]["null_high"] < 1


def test_the_command_encodes_and_the_app_makes_a_form(installed, look, tmp_path, monkeypatch, capsys):
    look(installed)
    letters = encoder_class("letters")(5)
    assert letters.to_record() == {"encoder": "letters", "n_letters": 5}
    assert encoder_from_json(letters.to_record()) == letters
    store = Store()
    dataset = load_dataset(TEXTS)
    key = encoding_job_key(dataset.digest, letters)
    encode_job(Context(key, store), dataset=TEXTS, encoder=letters)
    command = ["encode", "parallel:en", "--limit", "40", "--encoder", "letters", "--n-letters", "5", "--json"]
    assert main(command) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["key"], row["d"]) == (key, 5)
    counts = [text.lower().count("b") for text in dataset.items(0, 40)]
    np.testing.assert_array_equal(load_encoding(store, key).vectors[:, 1], counts)


def test_the_app_lists_them(installed, look, files, monkeypatch):
    look(installed)
    from app.workspace import Workspace
    from relcore.maps.pane_maps import ViewSpec

    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    view = ViewSpec(("1", "2"), n_nearest=20)
    workspace = Workspace(tuple(files), files[0], files[1], ("3", "4", "5", "6"), view=view)
    # Too few rows for a common space: scores without one.
    session = Session(None, workspace, ("connect", "Universe"))
    session.click("universe.by-order")
    assert METRIC in session.selectbox(key="all-pairs.metric").options
    session.change("selectbox", "all-pairs.metric", METRIC)
    assert not session.errors
    session.at.session_state["data.kind"] = "Bundled"
    session.at.session_state["bundled.kind"] = "Texts and pictures"
    session.open("data")
    entries = session.selectbox(key="encode.entry").options
    texts = next(entry for entry in entries if "English" in entry)
    session.change("selectbox", "encode.entry", texts)
    session.change("button_group", "encode.forms-texts", ["letters"])
    session.change("number_input", "encode.letters.n_letters", 5)
    assert not session.errors
    assert not session.button(key="encode.start").disabled


@pytest.mark.slow
def test_a_worker_of_the_cluster_computes_with_them(installed, look, files, tmp_path):
    look(installed)
    store = Store(tmp_path / "jobs")
    letters = encoder_class("letters")(7)
    dataset = load_dataset(TEXTS)
    queue = JobQueue(n_workers=1, store=store)
    try:
        key = encoding_job_key(dataset.digest, letters)
        queue.submit(key, encode_job, title="letters", dataset=TEXTS, encoder=letters).result(120)
        assert stored_encodings(store, dataset.digest, letters) == {"": key}
        spaces, task = [load(spec) for spec in files], AllPairs(METRIC)
        keys = [put_space(store, space) for space in spaces]
        entry = queue.submit(task.key(spaces), task_job, title="pairs", task=task, inputs=keys).result(120)
    finally:
        queue.close()
    assert task.read(entry).scores[0][1] == task.run(spaces).scores[0][1]


# Versions


METRIC_CODE = """
from relcore.scores.metrics import Metric
from relcore.scores.score import Score
class Half(Metric):
    def score(self, pair):
        return Score(0.5, metric="half", n=len(pair.source))
"""
ENCODER_CODE = """
from dataclasses import dataclass
from relcore.encoders.encoder import Encoder
@dataclass(frozen=True)
class Zeros(Encoder):
    width: int = 3
    title, kind = "zeros", "texts"
    def prepare(self, dataset, report):
        raise NotImplementedError
"""


def test_a_new_version_has_other_keys_and_no_key_of_relscope_changes(look, tmp_path):
    def keys(version: str | None) -> dict[str, str]:
        folder = tmp_path / str(version)
        points = {"metrics:half": "toy_toy:Half", "encoders:zeros": "toy_toy:Zeros"}
        if version:
            look(package(folder, points, METRIC_CODE + ENCODER_CODE, version=version))
        found = {"ours": AllPairs("cka").key(), "text": encoding_job_key("d", encoder_class("tfidf-svd")())}
        if version:
            found["metric"] = AllPairs("half").key()
            found["encoder"] = encoding_job_key("d", encoder_class("zeros")())
        return found

    ours = keys(None)
    first = keys("1.0")
    second = keys("1.1")
    assert {name for name in first if first[name] != second[name]} == {"metric", "encoder"}
    assert ours.items() <= first.items()


class Mapped(Format):
    """Rows of two floats that stay on disk."""

    has_regions = True

    def describe(self, path):
        return Description({"": (path.stat().st_size // 8, 2)}, "")

    def blocks(self, path, request):
        raise NotImplementedError

    def regions(self, path, request):
        return Regions([(0, "float32", self.describe(path).shape)])


def test_what_is_kept_of_a_mapped_file_is_that_of_the_version(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    np.arange(8, dtype="<f4").tofile(tmp_path / "x.two")
    keys = []
    whole = OnDisk._rows
    monkeypatch.setattr(
        OnDisk, "_rows", lambda *parts: keys.append((rows := whole(*parts)).origin.key) or rows
    )
    for version in ("1.0", "1.1"):
        entry = families.FormatName("Two", f"{__name__}:Mapped", plugin=f"toy {version}", family="formats")
        monkeypatch.setitem(names.FORMATS, ".two", entry)
        space = load_space(tmp_path / "x.two", map_from=1)
        np.testing.assert_array_equal(np.asarray(space.vectors), np.arange(8).reshape(4, 2))
    assert len(set(keys)) == len(keys) == 2


# Broken ones


@pytest.mark.parametrize(
    ("group", "code", "told"),
    [
        ("metrics", "import nowhere", r"toy_toy:Bad to be imported, got ModuleNotFound"),
        (
            "metrics",
            "raise SystemExit(3)",
            r"toy_toy:Bad to be imported, got SystemExit: 3; update it, or run",
        ),
        ("metrics", "Bad = dict", r"expected a subclass of Metric as toy_toy:Bad"),
        (
            "metrics",
            "from relcore.scores.metrics import Metric\nclass Bad(Metric): pass",
            r"expected toy_toy:Bad to have score",
        ),
        ("methods", "Bad = 3", r"expected a function as toy_toy:Bad, got int"),
    ],
)
def test_one_that_cannot_be_used_costs_one_warning(look, tmp_path, group, code, told):
    look(package(tmp_path / "site", {f"{group}:bad": "toy_toy:Bad"}, code))
    family = next(one for one in names.FAMILIES if one._family == group)
    with pytest.raises(SpaceError, match=told):
        family["bad"].load()
    with pytest.warns(UserWarning, match=rf"{told}.*pip uninstall toy-toy; Relscope continues") as warned:
        assert "bad" not in family.working()
    assert len(warned) == 1
    assert [name for name, _ in family.loaded()] == [*family]


@pytest.mark.parametrize(
    ("group", "name", "told"),
    [
        ("metrics", "cka", "another name than those of Relscope in relscope entry points, got 'cka'"),
        ("formats", ".mine.npy", "another name than those of Relscope"),
        ("formats", ".pkl", "another name than those of Relscope"),
        ("formats", "npy2", "a suffix such as .ext as a name"),
        ("stores", "http", "words in small letters as a name"),
        ("encoders", "a,b", "words in small letters as a name"),
        ("studies", "training", "another name than those of Relscope"),
    ],
)
def test_a_name_of_relscope_stays_and_a_wrong_one_is_refused(look, tmp_path, group, name, told):
    family = next(one for one in names.FAMILIES if one._family == group)
    before = dict(family)
    look(package(tmp_path / "site", {f"{group}:{name}": "toy_toy:Mine"}, "raise SystemExit"))
    with pytest.warns(UserWarning, match=f"plugin toy-toy 1.0: expected {told}") as warned:
        assert dict(family) == before
    assert len(warned) == 1
    assert "toy_toy" not in sys.modules


SIMILARITY_CODE = """
from relcore.represent.similarity import Similarity
class Power(Similarity):
    def __init__(self, power=3):
        self.power = power
    def between(self, X, anchors):
        return (X @ anchors.T) ** self.power
"""


def test_a_similarity_makes_relative_rows_and_owns_its_settings(look, tmp_path):
    look(package(tmp_path / "site", {"similarities:power": "toy_toy:Power"}, SIMILARITY_CODE))
    X = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    rows = RelativeProjection("power", center=False).fit(X, anchors=[0, 1]).transform(X)
    np.testing.assert_allclose(rows, (X @ X[:2].T) ** 3, atol=1e-4)
    own = names.SIMILARITIES["power"].load()(power=2)
    rows = RelativeProjection(own, center=False).fit(X, anchors=[0]).transform(X)
    np.testing.assert_allclose(rows, (X @ X[:1].T) ** 2, atol=1e-4)
    assert not hasattr(own, "anchors_")  # a projection fits a copy
    assert ProjectionSpec(similarity="power").projection().similarity == "power"


def test_an_error_in_a_score_names_the_plugin(look, tmp_path, files, installed):
    look(installed)
    code = METRIC_CODE.replace("return Score", "raise KeyError('x')\n        return Score")
    look(package(tmp_path / "site", {"metrics:half": "toy_toy:Half"}, code))
    reasons = AllPairs("half").run([load(spec) for spec in files[:2]]).reasons
    assert reasons[0][1].startswith("plugin toy-toy 1.0: expected a result, got KeyError: 'x'")


def test_names_of_the_command_line_stay_those_of_relscope(look, tmp_path, capsys):
    """A plugin has a setting and a short name that Relscope has, too. Only .json files can give the setting, and the
    short name stands for the encoder of Relscope."""
    code = ENCODER_CODE.replace("width: int = 3", "width: int = 3\n    limit: int = 1\n    short = 'tfidf'")
    points = {"encoders:zeros": "toy_toy:Zeros", "encoders:cnn": "toy_toy:Zeros"}
    look(package(tmp_path / "site", points, code))
    assert naming._encoder_of_name("tfidf", "texts")[0] == "tfidf-svd"
    assert naming._encoder_of_name("cnn", "images") == ("small-vision", {"architecture": "cnn"})
    assert naming._encoder_of_name("zeros", "texts") == ("zeros", {})
    assert "limit" not in encode_command.encoder_settings()
    with pytest.raises(SystemExit) as end:
        main(["encode", "--help"])
    assert end.value.code == 0
    assert "--width" in capsys.readouterr().out


# Shared and confined

SPY = '''
import os, socket
import numpy as np
from relcore.files.formats import Description, Format
class Spy(Format):
    """Tries to write, to connect and to read elsewhere; tells its process."""
    def describe(self, path):
        return Description({"": (1, 5)}, "")
    def blocks(self, path, request):
        done = [os.getpid() % 100_000]
        for forbidden in (
            lambda: print("x", file=open(str(path) + ".stolen", "w"), flush=True),
            lambda: socket.socket(),
            lambda: open(path.parent / "secret").read(),
        ):
            try:
                forbidden()
                done.append(1)
            except OSError:
                done.append(0)
        yield np.array([done], np.float32)
        return {}
'''


@pytest.mark.parametrize("shared", [False, True])
def test_its_formats_are_read_by_the_confined_process(look, tmp_path, monkeypatch, shared):
    look(package(tmp_path / "site", {"formats:.spy": "toy_toy:Spy"}, SPY))
    monkeypatch.setenv("RELSCOPE_CONFINED", "1")
    if shared:
        monkeypatch.setenv("RELSCOPE_SHARE", "1")
        monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    confined._forget()
    (tmp_path / "secret").write_text("s")
    (tmp_path / "x.spy").write_bytes(b"x")
    try:
        assert shape_of(tmp_path / "x.spy") == (1, 5)
        process, *could = load_space(tmp_path / "x.spy").vectors[0].tolist()
    finally:
        confined._forget()
    assert process != os.getpid() % 100_000
    assert could[0] == 0
    if "seccomp" in confined.offers().partition("without")[0]:
        assert could[1] == 0
    if "Landlock" in confined.offers().partition("without")[0]:
        assert could[2] == 0


def test_a_shared_app_has_no_encoders_studies_and_stores_of_plugins(look, tmp_path, monkeypatch):
    code = ENCODER_CODE + METRIC_CODE
    points = {"encoders:zeros": "toy_toy:Zeros", "metrics:half": "toy_toy:Half"}
    points |= {"studies:mine": "toy_toy:Mine", "stores:cupboard": "toy_toy:Cupboard"}
    look(package(tmp_path / "site", points, code))
    assert parse_place("cupboard:kept#rows").kind == "cupboard"
    assert parse_place("cupboard:db://host/x#rows").address == "db://host/x"
    assert parse_place("cupboard://host/x#rows") is None
    monkeypatch.setenv("RELSCOPE_SHARE", "1")
    assert "half" in names.METRICS
    assert {"zeros", "mine", "cupboard"}.isdisjoint({*names.ENCODERS, *names.STUDIES, *names.INDEXES})
    assert parse_place("cupboard:kept#rows") is None
    with pytest.raises(SpaceError, match="encoder: expected one of"):
        encoder_from_json({"encoder": "zeros"})
    with pytest.raises(SpaceError, match="study: expected one of"):
        study_of("mine")


# The example of docs/plugin: a command, its figure, its tab and its tool


@pytest.fixture
def spaces(tmp_path):
    rng = np.random.default_rng(4)
    for name in ("first", "near"):
        vectors = rng.normal(size=(90, 6)).astype(np.float32)
        np.savez(tmp_path / f"{name}.npz", vectors=vectors, ids=[f"r{row}" for row in range(90)])
    return tuple(SpaceSpec("file", str(tmp_path / f"{name}.npz")) for name in ("first", "near"))


def test_a_command_of_a_plugin_runs_and_its_figure_is_drawn_again(
    installed_lengths, look, spaces, run_relscope
):
    look(installed_lengths)
    assert "lengths tell how long the rows of two spaces are" in run_relscope("--help")
    paths = [spec.name for spec in spaces]
    found = json.loads(run_relscope("lengths", *paths, "--bins", "3", "--json", "--recipe", "r.json"))
    lengths = np.linalg.norm(load(spaces[0]).vectors, axis=1)
    expected = [row["share"] for row in found["rows"] if row["space"] == "first"]
    edges = [row["up to"] for row in found["rows"] if row["space"] == "first"]
    assert len(expected) == 3
    counted = np.histogram(lengths, [0, *edges[:-1], np.inf])[0] / len(lengths)
    np.testing.assert_allclose(expected, counted, atol=1 / len(lengths))  # the printed edges are rounded
    run_relscope("figure", "r.json", "-o", "again.csv")
    again = pd.read_csv("again.csv")
    assert again[again.name == "first"].y.tolist() == pytest.approx(expected)


def test_a_tool_of_a_plugin_is_served(installed_lengths, look):
    from relcore.agents import command as mcp

    look(installed_lengths)
    assert mcp._names() == [*names.TOOLS.own, "lengths"]
    assert set(mcp.schema_of("lengths")["properties"]) == {"source", "target", "bins"}
    assert mcp.command_of("lengths", {"source": "a", "target": "b", "bins": 4}) == [
        *("lengths", "--json", "--bins=4", "a", "b")
    ]


def test_a_tab_of_a_plugin_is_drawn_but_not_in_a_shared_app(installed_lengths, look, spaces, monkeypatch):
    look(installed_lengths)
    session = Session(None, Workspace(spaces, *spaces), ("research", "Row lengths"))
    assert not session.errors
    assert [one.value for one in session.at.number_input(key="lengths.bins")] == [20]
    monkeypatch.setenv("RELSCOPE_SHARE", "1")
    assert "Row lengths" not in RESEARCH.tabs
    assert "row lengths" not in names.FIGURES
    monkeypatch.setenv("RELSCOPE_PLUGIN_TABS", "1")
    assert "Row lengths" in RESEARCH.tabs


@pytest.mark.parametrize(
    ("point", "value", "told"),
    [
        ("commands:broken", "toy_toy:BROKEN", "expected a Command as toy_toy:BROKEN, got dict"),
        ("commands:compare", "toy_toy:BROKEN", "expected another name than those of Relscope"),
        ("commands:two words", "toy_toy:BROKEN", "expected a word in small letters as a name"),
        ("tabs:nowhere lengths", "toy_toy:BROKEN", "and a title in small letters as a name"),
        ("figures:broken", "toy_toy:BROKEN", "expected a subclass of Recipe as toy_toy:BROKEN"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, look, capsys, point, value, told):
    look(package(tmp_path / "site", {point: value}, "BROKEN = {}\n"))
    family = getattr(names, point.partition(":")[0].upper())
    with pytest.warns(UserWarning, match=re.escape(told)):
        assert family.working() == [*family.own]


def test_a_fault_of_a_plugins_command_is_one_line(tmp_path, look, capsys):
    code = """
from relcore.commands.command import command
from relcore.commands.options import Printed


@command((Printed,))
def fails(options):
    return 1 / 0
"""
    look(package(tmp_path / "site", {"commands:fails": "toy_toy:fails"}, code))
    assert main(["fails"]) == 2
    assert "plugin toy-toy 1.0: expected a result, got ZeroDivisionError" in capsys.readouterr().err
