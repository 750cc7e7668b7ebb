"""mypy --strict and pyright on what a caller sees: `python tests/typing/check.py`, part of `make lint`.

They read the examples of README.md, docs and the gallery, and what `surface.py` says of each public name, where both
must find each line that is marked as a mistake and no other. pyright also says which parts of the public names have no
type. It needs Node, and is left out where there is none.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import relcore

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".venv" / "mypy"
SURFACE = Path(__file__).with_name("surface.py")
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.py"))
PAGES = sorted((ROOT / "docs").glob("**/*.md"))
TEXTS = [ROOT / "README.md", *(page for page in PAGES if page.parent.name != "extend")]  # those are excerpts
MYPY = re.compile(r"(?m)^(.+?):(\d+): error: (.*)$")
# Words of pyright about a name without a type. Its report of completeness also has no types for base classes
# in another folder, but says so in other words.
FAULTS = re.compile("missing|Type argument")
ABSENT = re.compile("dask_jobqueue|dask_kubernetes")  # libraries of examples that are not installed
# Of ipywidgets; and the base Task[MigrationResult], which pyright cannot resolve in this package's own imports.
FOREIGN = {"relcore.panes.widget.PanesWidget.keys", "relcore.migrate.migration.Migration"}


def examples(text: str) -> Iterable[tuple[int, str]]:
    """For each block of Python in a Markdown text, the number of lines before it, and its code after that
    many empty lines, so that a type checker reports the line numbers of the text."""
    for block in re.finditer(r"(?ms)^```(?:python|py)\n(.*?)^```", text):
        before = text.count("\n", 0, block.start(1))
        yield before, "\n" * before + block[1]


def write_examples(folder: Path) -> dict[str, str]:
    """Write each block into a file. Returns path of the file → name of the text."""
    texts = {}
    for text in TEXTS:
        for before, code in examples(text.read_text(encoding="utf-8")):
            path = folder / f"{text.stem.lower()}_{before}.py"
            path.write_text(code, encoding="utf-8")
            texts[str(path)] = str(text.relative_to(ROOT))
    return texts


def started(*command: str | Path, folder: Path = ROOT, **environment: str) -> subprocess.Popen[str]:
    settings = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"} | environment
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", *command], cwd=folder, env=settings, stdout=pipe, stderr=pipe, text=True
    )


def answer(process: subprocess.Popen[str]) -> str:
    told, failed = process.communicate()
    if process.returncode not in (0, 1):
        raise SystemExit(f"{process.args}: {told}{failed}")
    return told


Found = set[tuple[str, int, str]]  # a path, a line and what is wrong there


def of_mypy(process: subprocess.Popen[str]) -> Found:
    return {(path, int(line), said) for path, line, said in MYPY.findall(answer(process))}


def of_pyright(process: subprocess.Popen[str]) -> Found:
    told = [one for one in json.loads(answer(process))["generalDiagnostics"] if one["severity"] == "error"]
    return {(one["file"], one["range"]["start"]["line"] + 1, one["message"]) for one in told}


def public() -> set[str]:
    """The full names of relcore, of what `surface.py` imports from its modules, and of their base classes."""
    found = [getattr(relcore, name) for name in relcore.__all__]
    for one in ast.walk(ast.parse(SURFACE.read_text(encoding="utf-8"))):
        if isinstance(one, ast.ImportFrom) and "relcore" in str(one.module):
            found += [getattr(import_module(str(one.module)), alias.name) for alias in one.names]
    seen = {one for one in found if hasattr(one, "__qualname__")}  # a table and a module have none
    seen |= {base for each in seen if isinstance(each, type) for base in each.__mro__}
    named = {f"{one.__module__}.{one.__qualname__}" for one in seen}
    return {name for name in named if name.startswith("relcore.")}


def unnamed() -> list[str]:
    """Public names that `surface.py` does not have."""
    text = SURFACE.read_text(encoding="utf-8")
    return [
        f"{SURFACE.relative_to(ROOT)}: expected what {name} returns, by assert_type"
        for name in relcore.__all__
        if not re.search(rf"\brc\.{name}\b", text)
    ]


def untyped(process: subprocess.Popen[str]) -> list[str]:
    """Parts of the public names that have no type, with what pyright says of them."""
    names = public()
    symbols = json.loads(answer(process))["typeCompleteness"]["symbols"]
    of_names = [one for one in symbols if any(f"{one['name']}.".startswith(f"{name}.") for name in names)]
    assert {one["name"] for one in of_names} & names, "the report has no public name"
    return [
        f"{one['name']}: {said['message']}"
        for one in of_names
        for said in one["diagnostics"]
        if not one["isTypeKnown"] and FAULTS.search(said["message"]) and one["name"] not in FOREIGN
    ]


def faults(checker: str, found: Found, texts: dict[str, str]) -> list[str]:
    """Errors that were found besides the marked mistakes, and marked mistakes that were not found."""
    lines = SURFACE.read_text(encoding="utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, start=1) if "# mistake:" in line}
    present = {one for one in found if not ABSENT.search(one[2])}
    other = [one for one in present if not (Path(one[0]).name == SURFACE.name and one[1] in marked)]
    missed = marked - {line for path, line, _ in found if Path(path).name == SURFACE.name}
    told = [f"{texts.get(path, path)}:{line}: {checker}: {said}" for path, line, said in sorted(other)]
    return told + [
        f"{SURFACE.relative_to(ROOT)}:{line}: {checker} finds no mistake" for line in sorted(missed)
    ]


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        texts = write_examples(folder)
        files = *texts, *GALLERY, SURFACE
        mypy = started("mypy", "--no-error-summary", f"--cache-dir={CACHE}", *files)
        told = unnamed()
        if shutil.which("node"):
            pyright = started("pyright", "--outputjson", f"--pythonpath={sys.executable}", *files)
            told += faults("pyright", of_pyright(pyright), texts)
            arguments = "--outputjson", f"--pythonpath={sys.executable}", "--ignoreexternal"
            report = started(
                "pyright", "--verifytypes=relcore", *arguments, folder=folder, PYTHONPATH=str(ROOT)
            )
            told += untyped(report)
        else:
            print("no Node: pyright is left out", file=sys.stderr)
        told += faults("mypy", of_mypy(mypy), texts)
    print("\n".join(told), end="\n" if told else "")
    return bool(told)


if __name__ == "__main__":
    sys.exit(main())
