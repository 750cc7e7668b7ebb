"""What `import relcore` offers to a script, and what it costs."""

import ast
import doctest
import inspect
import json
import pickle
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

import relcore

ROOT = Path(__file__).parents[2]
# What Python loads to run `import relcore`, and nothing else.
LIGHT = {"relcore", "relcore.base", "relcore.base.version"}


def loaded_by(statement):
    """Modules that a fresh interpreter has after a statement, and had not before; those of the standard
    library left out.
    """
    script = (
        f"import sys; before = set(sys.modules); {statement}; import json; print(json.dumps([n for n in"
        " set(sys.modules) - before if n.split('.')[0] not in sys.stdlib_module_names]))"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(ran.stdout))


def test_importing_relcore_imports_nothing_else():
    assert loaded_by("import relcore") == LIGHT
    assert loaded_by("import relcore; dir(relcore)") == LIGHT


def test_every_name_is_there_and_none_needs_extra():
    loaded = loaded_by("from relcore import *")
    assert "numpy" in loaded
    heavy = {"torch", "streamlit", "dask", "distributed", "plotly", "sklearn", "anywidget"}
    assert not {name.split(".")[0] for name in loaded} & heavy
    assert set(relcore.__all__) <= set(dir(relcore))


@pytest.mark.parametrize("name", relcore.__all__)
def test_keywords_and_choices_are_in_the_signature(name):
    """So that an editor lists them, and a wrong one is refused where it is written."""
    public = getattr(relcore, name)
    if not callable(public) or (issubclass(type(public), type) and issubclass(public, Exception)):
        return
    kinds = {one.kind for one in inspect.signature(public).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_folders_with_the_name_of_a_function_are_both():
    folders = {path.name for path in (ROOT / "relcore").iterdir() if path.is_dir()}
    assert set(relcore._FOLDERS) == folders & set(relcore.__all__) - {"nn"}
    import relcore.drift.check as module

    assert relcore.drift.check is module
    assert pickle.loads(pickle.dumps(relcore.drift)) is relcore.drift
    assert pickle.loads(pickle.dumps(module.drift)) is module.drift
    with mock.patch("relcore.drift.check.drift", return_value="patched"):
        assert relcore.drift(1, 2) == "patched"
    assert inspect.signature(relcore.drift) == inspect.signature(module.drift)
    shown = pydoc.plain(pydoc.render_doc(relcore.drift))
    assert "relcore.drift(old, new, " in shown
    assert inspect.getdoc(module.drift).partition("\n\n")[0] in shown


def snippets():
    """Each page of the documentation and each script of the gallery, with its Python."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    for page in pages:
        if "extend" not in page.parts:  # these pages show what writers of plugins import
            text = page.read_text(encoding="utf-8")
            yield page, "\n".join(re.findall(r"(?ms)^ *```(?:python|py)\n(.*?)^ *```", text))
    for script in sorted((ROOT / "docs" / "gallery").glob("*.py")):
        yield script, script.read_text(encoding="utf-8")
    for name in relcore.__all__:
        public = getattr(relcore, name)
        yield (
            name,
            "\n".join(one.source for one in doctest.DocTestParser().get_examples(public.__doc__ or "")),
        )


def test_no_snippet_imports_anything_deeper():
    found = dict(snippets())
    assert sum("from relcore import" in code for code in found.values()) > 12
    deeper = {
        str(path): re.findall(r"(?:from|import) +relcore\.[\w.]+", code) for path, code in found.items()
    }
    assert {path: names for path, names in deeper.items() if names} == {}


# Types that public functions return and that need no report, because they are data, a picture or a widget.
DATA = {
    "Any",
    "LatentSpace",
    "Match",
    "Run",
    "Watch",
    "Selection",
    "BundledResults",
    "Exportable",
    "PanesWidget",
    "None",
}


def test_what_functions_return_is_public_and_has_a_report():
    returned = {}
    for name in relcore.__all__:
        public = getattr(relcore, name)
        if callable(public) and not isinstance(public, type):
            returned[name] = str(inspect.signature(public).return_annotation)
    returned |= {
        f"Passport.{name}": str(inspect.signature(getattr(relcore.Passport, name)).return_annotation)
        for name in ("check",)
    }
    results = {name: kind for name, kind in returned.items() if kind.isidentifier() and kind not in DATA}
    assert {"drift", "link", "check", "migrate", "stitch_matrix", "invert", "bootstrap_anchors"} <= set(
        results
    )
    for kind in set(results.values()):
        assert callable(getattr(relcore, kind).report), kind


def test_names_are_listed_in_groups():
    (_, *parts) = re.split(r"(?m)^(\w+)\n    ", relcore.__doc__.rpartition("\nThe names")[0])
    told = {
        group: re.split(r",\s+", names.strip()) for group, names in zip(parts[::2], parts[1::2], strict=True)
    }
    assert told == {group: list(names) for group, names in relcore.GROUPS.items()}


@pytest.mark.parametrize("module", [relcore, relcore.adapters])
def test_names_that_an_editor_completes_are_public(module):
    assert set(module.__all__) == {name for name in dir(module) if not name.startswith("_")}


def test_until_command_listens_for_ctrl_c_nothing_is_imported_that_is_not_built_in():
    script = "import sys; before = set(sys.modules); import relcore.base.stopping; print(*set(sys.modules) - before)"
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    own = {*LIGHT, "relcore.base.stopping"}
    assert own <= set(ran.stdout.split()) <= own | set(sys.builtin_module_names)


def test_type_checkers_read_names_that_are_imported():
    tree = ast.parse(Path(relcore.__file__).read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    told = {
        alias.asname: f"relcore.{alias.name}" if node.module == "relcore" else node.module
        for node in checked.body[1:]
        for alias in node.names
        if alias.asname == alias.name  # `import x as x` is public, `import x` is not
    }
    assert told == {name: f"relcore.{module}" for name, module in relcore._MODULES.items()}
    assert (Path(relcore.__file__).parent / "py.typed").is_file()
