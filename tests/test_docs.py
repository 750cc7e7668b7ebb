"""The documentation does what it says: every command parses, every snippet and script runs, every path is there."""

import ast
import importlib.util
import json
import re
import shlex
import subprocess
import sys
import textwrap
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

import relcore
from relcore.base.families import Named
from relcore.base.names import FIGURES
from relcore.cli import main, parser_of
from relcore.files.formats import Request
from relcore.migrate.result import TITLES
from relcore.passport.change import CHANGES
from relcore.passport.passport import Passport, PassportCard
from relcore.runs.store import Store
from relcore.runs.work import silent
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.study import StudySpec

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "plugins").rglob("*.md")])
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))
ABSENT = re.compile("dask_jobqueue|dask_kubernetes|lancedb")  # libraries of examples that need a cluster


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def read(path):
    return path.read_text(encoding="utf-8")


def blocks(path, *languages):
    found = re.findall(rf"(?ms)^ *```(?:{'|'.join(languages)})\n(.*?)^ *```$", read(path))
    return [textwrap.dedent(block) for block in found]


def commands(path):
    """The arguments of each command in a block of shell, up to a comment, a pipe or a redirection."""
    lines = [line for block in blocks(path, "sh") for line in block.replace("\\\n", " ").splitlines()]
    words = (shlex.split(re.sub(r"\s#.*", "", line))[1:] for line in lines if line.startswith("relscope "))
    return [list(takewhile(lambda word: word not in ("|", ">", ">>"), some)) for some in words]


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_command_parses_and_every_path_is_there(path):
    for arguments in commands(path):
        with suppress(SystemExit):  # of --help and --print-thresholds; what is wrong is a SpaceError
            assert parser_of(arguments).parse_args(arguments).command == arguments[0]
    for named in re.findall(r"(?m)^\.\. autoclass:: (relcore\.\S+)", read(path)):
        module, _, name = named.rpartition(".")
        assert hasattr(importlib.import_module(module), name), named
    linked = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", re.sub(r"(?s)```.*?```", "", read(path)))
    named = re.findall(r"`((?:app|assets|benchmarks|docs|plugins|relcore|tests)/[\w./-]+)`", read(path))
    targets = [path.parent / link for link in linked if "://" not in link] + [ROOT / name for name in named]
    made = {"index.md", "number_of_anchors.md"}  # by docs/site/build.py
    assert [str(target) for target in targets if not target.exists() and target.name not in made] == []


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the files that the documentation names: four spaces of the same 400 rows, rotated, and
    a passport."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("RELSCOPE_SCHEDULER", raising=False)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 16)).astype(np.float32)
    ids = [f"w{row}" for row in range(400)]
    labels = np.array(["red", "green", "blue"])[np.argmax(rows[:, :3], axis=1)]
    for name in ("first", "second", "old", "new", "a", "b", "c", "d", "other"):
        turned = (rows @ np.linalg.qr(rng.normal(size=(16, 16)))[0]).astype(np.float32)
        np.save(f"{name}.npy", turned)
        own = ids
        if name == "other":
            own = [one.replace("w", "v") for one in ids]
        np.savez(f"{name}.npz", vectors=turned, ids=own, labels=labels)
        if name == "old":
            np.savez("rounded.npz", vectors=turned.astype(np.float16), ids=own, labels=labels)
    Path("known.tsv").write_text("".join(f"w{row}\tv{row}\n" for row in range(30)))
    Passport(tuple(ids), rows, PassportCard("model")).save("model.safetensors")
    return tmp_path


@pytest.mark.parametrize("path", [path for path in PAGES if blocks(path, "python", "py")], ids=name_of)
def test_every_snippet_runs(path, folder):
    """In the order of the page; those of docs/extend are run below, each as what it adds."""
    if path.parent.name == "extend":
        pytest.skip("run as an extension")
    if path.name == "migrate.md":
        assert main(["migrate", "old.npy", "new.npy", "--no-curve", "--export", "bridge", "--quiet"]) == 0
    names = {"__name__": "page"}
    for block in blocks(path, "python", "py"):
        if not ABSENT.search(block):
            exec(compile(block, name_of(path), "exec"), names)  # what the documentation says


# Extensions: the code of docs/extend does what its page says.


def extension(page, monkeypatch, module="example", block=0):
    example = ModuleType(module)
    monkeypatch.setitem(sys.modules, module, example)
    exec(blocks(DOCS / "extend" / f"{page}.md", "python")[block], vars(example))
    return example


def test_the_page_and_its_task_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "relcore.lengths", ModuleType("relcore.lengths"))
    monkeypatch.setitem(FIGURES, "lengths", Named("", ".lengths.lengths:LengthChart"))
    example = extension("page", monkeypatch, "relcore.lengths.lengths")
    space = relcore.LatentSpace(np.diag([0.5, 2.5, 4.0]), list("abc"), name="three")
    shares = example.RowLengths(bins=4).run((space, space)).shares
    assert shares["three"].tolist() == [1 / 3, 0, 1 / 3, 1 / 3]
    page = ast.parse(blocks(DOCS / "extend" / "page.md", "python")[1])
    for line in page.body:
        if isinstance(line, ast.ImportFrom):
            exec(ast.unparse(line), {})


def test_the_study_runs(monkeypatch, tmp_path):
    study = extension("study", monkeypatch).DroppedRows("dropped-rows")
    (whole, *_) = study.runs(StudySpec.of(study).settings)
    store = Store(tmp_path)
    values = study.measure(whole, store, silent).values
    assert whole["dropped"] == 0
    assert values["cka"] > 0.5 > values["chance"]


def test_the_encoder_encodes_and_the_format_is_read(monkeypatch, tmp_path):
    encoder = extension("encoder", monkeypatch).MeanColour()
    assert encoder.prepare(None, silent)([Image.new("RGB", (2, 2), "red")])[""].tolist() == [[1, 0, 0]]
    path = tmp_path / "x.floats"
    rows = np.arange(12, dtype="<f4").reshape(4, 3)
    path.write_bytes(rows.tobytes())
    floats = extension("format", monkeypatch).Floats()
    assert floats.describe(path).matrices == {"": (4, 3)}
    assert np.concatenate(list(floats.blocks(path, Request(limit=2)))).tolist() == rows[:2].tolist()


# The skill for agents.

SKILL = DOCS / "relscope" / "SKILL.md"


def test_the_commands_of_the_skill_run_and_print_json(folder, capsys):
    ran = commands(SKILL)
    assert len(ran) > 7
    for arguments in ran:
        assert main([*arguments, "--quiet"]) == 0, (arguments, capsys.readouterr().err)
        out = capsys.readouterr().out
        assert "--json" not in arguments or json.loads(out)


def test_the_skill_names_every_verdict_and_is_short():
    text = read(SKILL)
    assert len(text.splitlines()) <= 80
    for one in (*TITLES, *CHANGES, "linked", "not found", "cannot tell"):
        assert re.search(rf"\b{one}\b", re.sub(r"\s+", " ", text), re.IGNORECASE), one
    assert re.match(r"---\nname: relscope\ndescription: .{20,1024}\n---\n", text)  # what clients read first


# Scripts.


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("build_site", DOCS / "site" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_draws_its_figure(script, build, tmp_path):
    title, about = ast.get_docstring(ast.parse(read(script))).split("\n\n")
    assert len(read(script).splitlines()) <= 30
    assert not title.endswith(".")
    assert about.count(".") <= 3
    figure, _ = build.run_example(script, tmp_path)
    assert (tmp_path / f"{script.stem}.html").stat().st_size > 10_000
    assert figure.table().size


def test_a_network_trained_twice_takes_eight_lines_or_fewer():
    script = read(DOCS / "gallery" / "network_trained_twice.py")
    theirs = ast.parse(script).body
    first = next(one.lineno for one in theirs if "rs.encode" in ast.unparse(one))
    assert "rs." not in "".join(script.splitlines(keepends=True)[: first - 1])
    assert theirs[-1].end_lineno - first + 1 <= 8


def test_an_example_whose_library_is_missing_is_shown_but_not_run(build, tmp_path):
    script = tmp_path / "absent.py"
    script.write_text('"""A title\n\nAbout it.\n"""\n\nimport no_such_library\n', encoding="utf-8")
    (tmp_path / "docs" / "gallery").mkdir(parents=True)
    assert "A title" in build.example(script, tmp_path)
    assert "needs no_such_library" in (tmp_path / "docs" / "gallery" / "absent.md").read_text(
        encoding="utf-8"
    )
    assert not build.missing_library(DOCS / "gallery" / "two_word_models.py")


def test_a_page_that_links_to_a_file_of_the_gallery_leaves_room_for_the_gallery(build, monkeypatch, tmp_path):
    monkeypatch.setattr(build, "GALLERY", tmp_path)  # its scripts take minutes
    build.copy_pages(tmp_path / "source")
    assert (tmp_path / "source" / "docs" / "gallery" / "dragged_anchor.py").is_file()
    build.write_gallery(tmp_path / "source")
    assert "toctree" in (tmp_path / "source" / "docs" / "gallery" / "index.md").read_text(encoding="utf-8")


def test_a_link_that_leads_nowhere_is_found(build, tmp_path):
    page = '<h1 id="here"></h1><a href="#here"></a><a href="two.html#there"></a><a href="https://far"></a>'
    (tmp_path / "one.html").write_text(page + '<img src="none.png"><script src="https://far/a.js"></script>')
    (tmp_path / "two.html").write_text("<p></p>")
    told = build.broken_links(tmp_path)
    assert [line.partition(": ")[2].split(" ")[0] for line in told] == ["loads", "none.png", "two.html#there"]


def test_the_worked_script_stitches_two_files_as_the_core_does(folder):
    script = ROOT / "assets" / "examples" / "two_files_to_a_stitched_model.py"
    ran = subprocess.run([sys.executable, script, "old.npz", "new.npz"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    told = re.search(r"not stitched (\S+); stitched: absolute (\S+), relative (\S+), 128 anchors", ran.stdout)
    spec = StitchSpec(("absolute", "relative"), n_anchors=128)
    result = stitch_matrix([relcore.load_space(name) for name in ("old.npz", "new.npz")], spec)
    absolute, relative = (result.matrix(method)[0] for method in spec.methods)
    scores = absolute[0, 0], absolute[1, 0], relative[1, 0]
    assert told.groups() == tuple(f"{score:.3f}" for score in scores)
    assert relative[1, 0] > absolute[1, 0] + 0.2


@pytest.mark.slow
def test_a_classifier_of_similarities_reads_another_networks_encoder(tmp_path):
    script = ROOT / "assets" / "examples" / "relative_network.py"
    ran = subprocess.run([sys.executable, script, "2"], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    means = dict(re.findall(r"(?m)^(.*?) +(\S+) ±", ran.stdout))
    assert min(float(means[f"{kind}, as trained"]) for kind in ("absolute", "relative")) > 0.9
    assert float(means["relative, another encoder"]) > 0.75
    assert float(means["absolute, another encoder"]) < 0.4
    assert float(means["relative, another encoder, anchors in random order"]) < 0.3
    assert ran.stdout.endswith("the same classes: True\n")


def test_examples_and_pages_import_public_names_only():
    """Deeper paths may move freely. Pages for contributors and authors of plugins show modules of Relscope."""
    modules = [name for name in relcore.__all__ if isinstance(getattr(relcore, name), ModuleType)]
    public = {"relcore", *(f"relcore.{name}" for name in modules)}
    scripts = {path: read(path) for path in [*SCRIPTS, *(ROOT / "assets" / "examples").glob("*.py")]}
    pages = [path for path in PAGES if not {"extend", "plugins", "CONTRIBUTING.md"} & set(path.parts)]
    scripts |= {path: "\n".join(blocks(path, "python", "py")) for path in pages}
    notebook = json.loads(read(ROOT / "assets" / "notebook" / "compare_two_spaces.ipynb"))
    scripts[Path("notebook")] = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
    deeper = {}
    for path, code in scripts.items():
        imported = re.findall(r"(?m)^\s*(?:from|import) (relcore[\w.]*)", code)
        if wrong := set(imported) - public:
            deeper[path.name] = wrong
    assert len(scripts) > 15
    assert deeper == {}
