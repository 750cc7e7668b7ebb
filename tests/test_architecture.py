"""Who may import whom, how long a file may be, and what no file may hold: read from the files, nothing is
run.

One test per rule: it reads every file and lists all that break the rule.
"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from relcore.figures.style import DARK, LIGHT

ROOT = Path(__file__).parents[1]
PACKAGES = ("app", "pages", "relcore")

# The folders of relcore from the bottom up: each imports only from those before it and from itself.
FLOORS = (
    "base",
    "engine",
    "spaces",
    "runs",
    "nn",
    "represent",
    "scores",
    "files",
    "stores",
    "encoders",
    "figures",
    "maps",
    "panes",
    "catalog",
    "sharded",
    "commands",
    "linking",
    "stitch",
    "compare",
    "explain",
    "universe",
    "invert",
    "drift",
    "encode",
    "training",
    "passport",
    "check",
    "studies",
    "migrate",
    "choose",
    "axis",
    "audit",
    "available",
    "project",
    "export",
    "redraw",
    "launch",
    "agents",
)
# The folders and the single modules of the app, likewise: what pages share, then one room a feature, then
# what stands around each page.
APP_FLOORS = (
    "page_settings",
    "plain_text",
    "sharing",
    "workspace",
    "places",
    "glossary",
    "compute",
    "messages",
    "session",
    "selection",
    "server",
    "live",
    "exports",
    "items",
    "named_files",
    "session_archive",
    "sources",
    "tables",
    "jobs",
    "results",
    "asking",
    "widgets",
    "saving",
    "components",
    "panes",
    "anchors",
    "encode",
    "compare",
    "explain",
    "axis",
    "link",
    "spaces",
    "stitch",
    "invert",
    "universe",
    "drift",
    "migrate",
    "choose",
    "studies",
    "papers",
    "training",
    "start",
    "undo",
    "toolbar",
    "main",
    "serve",
)
# Libraries that only one part of the project knows.
OWNERS = {
    "streamlit": ("app", "pages"),
    "plotly": ("relcore.figures", "app.components"),
    "matplotlib": ("relcore.figures",),
    "transformers": ("relcore.encoders", "relcore.training.callbacks"),
    "gensim": ("relcore.encoders",),
    "datasets": ("relcore.encoders",),
    "lancedb": ("relcore.stores",),
    "onnx": ("relcore.migrate",),
    "mcp": ("relcore.agents",),
    "anywidget": ("relcore.panes.widget",),
    "traitlets": ("relcore.panes.widget",),
}
# What takes long to import, or may be missing, is imported by the function that needs it.
HEAVY = (
    "transformers",
    "gensim",
    "datasets",
    "torch",
    "umap",
    "openTSNE",
    "numba",
    "faiss",
    "dask",
    "distributed",
    "sklearn",
    "lancedb",
    "onnx",
)


# What defines PyTorch modules imports torch at once, and is imported on use.
TORCH = ("relcore.nn.modules",)


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources_with(*suffixes):
    found = (path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.suffix in suffixes)
    return sorted(found)


@cache
def trees():
    files = sources_with(".py")
    return {module_of(path): ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in files}


@cache
def walked(tree):
    return list(ast.walk(tree))


def name_of(node):
    """The dotted name of a called function, such as ``np.save``. Parts before it that are no names are left
    out."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([getattr(node, "id", ""), *reversed(parts)])


def within(module, packages):
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def imported(tree, module=""):
    """Dotted names that the statements of this tree import, those of submodules in full; relative imports
    resolved.
    """
    for node in walked(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            if node.level:
                origin = ".".join(filter(None, (*module.split(".")[: -node.level], node.module)))
            else:
                origin = node.module
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                yield full if full in trees() else origin


def imported_at_once(tree):
    """The imports that run when the file is imported: not those in functions, nor those for type checkers."""
    for node in tree.body:
        checked = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        if not checked and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from imported(node)


@cache
def imports():
    return {module: sorted(set(imported(tree, module))) for module, tree in trees().items()}


def imports_where(broken):
    """``"module imports name"`` of each import that breaks the rule ``broken(module, name)``."""
    return [
        f"{module} imports {name}"
        for module, names in imports().items()
        for name in names
        if broken(module, name)
    ]


def test_pages_stand_on_app_and_app_on_relcore_never_back():
    forbidden = {"relcore": ("app", "pages"), "app": ("pages",), "pages": ("pages",)}
    assert imports_where(lambda module, name: within(name, forbidden[module.split(".")[0]])) == []


def is_command(module):
    """Whether a module declares the command of a feature. A command may combine features, so it stands above
    all of them."""
    return module.endswith("command") and not within(module, ["relcore.commands"])


def floor_of(module):
    parts = module.split(".")
    if len(parts) <= 2 or is_command(module):
        return len(FLOORS)
    return FLOORS.index(parts[1])


def test_each_folder_of_the_core_imports_only_from_those_below():
    assert {path.name for path in (ROOT / "relcore").iterdir() if any(path.glob("*.py"))} == set(FLOORS)
    core = [module for module in trees() if within(module, ["relcore"])]
    upward = imports_where(
        lambda module, name: (
            module in core
            and name.count(".") > 1
            and within(name, ["relcore"])
            and floor_of(name) > floor_of(module)
        )
    )
    assert upward == []


def app_floor(module):
    return APP_FLOORS.index(module.split(".")[1])


def test_each_part_of_the_app_imports_only_from_those_below():
    parts = {path.stem for path in (ROOT / "app").iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    assert parts - {"__init__"} == set(APP_FLOORS)
    assert app_floor("app.migrate.panel") > app_floor("app.exports")
    upward = imports_where(
        lambda module, name: (
            within(module, ["app"])
            and module != "app"
            and within(name, ["app"])
            and name != "app"
            and app_floor(name) > app_floor(module)
        )
    )
    assert upward == []


def circles(edges):
    """Groups of names that all reach one another, by Tarjan's algorithm."""
    numbers = {}
    lowest = {}
    path = []
    found = []

    def visit(name):
        numbers[name] = lowest[name] = len(numbers)
        path.append(name)
        for other in edges[name]:
            if other not in numbers:
                visit(other)
            if other in path:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == numbers[name]:
            group = {path.pop()}
            while name not in group:
                group.add(path.pop())
            found.append(group)

    for name in edges:
        if name not in numbers:
            visit(name)
    return [group for group in found if len(group) > 1]


def ours():
    """Module → the modules of ours that it imports, also within functions and for type checkers."""
    return {
        module: [name for name in names if name in trees() and name != module]
        for module, names in imports().items()
    }


def test_modules_import_in_no_circle():
    assert circles({"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": []}) == [{"a", "b", "c"}]
    assert circles(ours()) == []


MOST_FLOORS = 9  # may only shrink


def test_few_floors_lie_between_the_lowest_folder_and_the_pages():
    """A floor is a folder of relcore, app or pages; each stands on what it imports."""
    folders = {}
    below = {}
    for module in ours():
        parts = module.split(".")
        if parts[0] != "relcore":
            folders[module] = parts[0]
        elif is_command(module):
            folders[module] = f"{parts[1]}.command"
        elif len(parts) > 2:
            folders[module] = ".".join(parts[:2])
        else:
            folders[module] = ""
    for module, names in ours().items():
        below.setdefault(folders[module], set()).update(folders[name] for name in names)

    @cache
    def height(folder):
        return 1 + max((height(one) for one in below[folder] - {folder, ""}), default=0)

    assert height("pages") <= MOST_FLOORS


def test_a_public_class_has_a_name_of_its_own():
    where = {}
    for module, tree in trees().items():
        for node in walked(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, set()).add(module)
    assert {name: modules for name, modules in where.items() if len(modules) > 1} == {}


LONGEST = 80  # lines of a function


def test_the_wheel_names_the_styles_and_pictures_of_the_app():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    targets = project["tool"]["hatch"]["build"]["targets"].values()
    named = [path for target in targets for path in target.get("force-include", {})]
    used = [path.relative_to(ROOT).as_posix() for path in (ROOT / "assets").glob("*.*")]
    assert sorted(named) == sorted(["app", "pages", *used])


def test_functions_are_short():
    long = {
        f"{module}.{node.name}"
        for module, tree in trees().items()
        for node in walked(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno >= LONGEST
    }
    # The docstring of `relcore.encode` explains 14 arguments in 59 lines.
    assert long <= {"relcore.encode.network.encode"}


def test_each_library_is_known_to_its_part_alone():
    def stranger(module, name):
        library = name.split(".")[0]
        return library in OWNERS and not within(module, OWNERS[library])

    assert imports_where(stranger) == []


def test_what_takes_long_to_import_waits_for_the_function_that_needs_it():
    heavy = {
        module: [name for name in imported_at_once(tree) if within(name, HEAVY)]
        for module, tree in trees().items()
        if module not in TORCH
    }
    assert {module: names for module, names in heavy.items() if names} == {}


def test_importing_the_core_loads_nothing_heavy():
    modules = sorted(name for name in trees() if within(name, ["relcore"]) and not name.endswith("__main__"))
    modules = [
        name for name in modules if not within(name, ["relcore.figures", "relcore.panes.widget", *TORCH])
    ]
    names = [*HEAVY, "streamlit", "plotly", "matplotlib", "anywidget"]
    script = (
        f"import sys, {', '.join(modules)}; import json; print(json.dumps([n for n in {names} if n in"
        " sys.modules]))"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == []


def test_paths_of_users_go_through_access():
    """`access.expand_home` or `access.readable_path`: an unknown ~user is no traceback, and a shared app stays
    confined.
    """
    found = {
        module
        for module, tree in trees().items()
        for node in walked(tree)
        if getattr(node, "attr", "") == "expanduser"
    }
    assert found == {"relcore.base.access"}


PICKLE_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def unpickled(tree):
    for node in walked(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                names = [alias.name for alias in node.names]
            yield from (node.lineno for name in names if name.split(".")[0] in PICKLE_MODULES)
        if isinstance(node, ast.Attribute) and node.attr in ("Unpickler", "read_pickle"):
            yield node.lineno
        if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
            unsafe = (node.arg, node.value.value) in (("allow_pickle", True), ("weights_only", False))
            yield from [node.value.lineno] * unsafe
        if isinstance(node, ast.Call) and name_of(node.func) == "torch.load":
            told = {keyword.arg for keyword in node.keywords}
            yield from [node.lineno] * ("weights_only" not in told)


def test_nothing_is_ever_unpickled():
    assert not {module for module, tree in trees().items() if any(unpickled(tree))}


# `relcore.base.writing` makes files and folders that appear under their name once they are whole. Others write:
WRITERS = {
    "relcore.base.writing": "it is the one place",
    "relcore.runs.entries": "into a folder of unfinished entries",
    "relcore.runs.cluster": "locks a file that holds nothing to read",
    "relcore.runs.store": "moves entries from that folder, and locks files that hold nothing to read",
    "relcore.encode.row_files": "into a folder that gets its name once it is whole, or a temporary one",
    "relcore.sharded.places": "to addresses, which show an object once it is closed",
    "app.saving": "renames files that are whole",
    "relcore.files.zip_files": "into a folder that gets its name once it is whole",
    "relcore.nn.modules": "into a folder that gets its name once it is whole",
    "relcore.training.watching": "into a folder that gets its name once it is whole",
    "relcore.migrate.cascade": "is a script that runs without Relscope",
}
_OF_A_NAME = {"write_text", "write_bytes", "os.rename", "os.replace", "shutil.move", "shutil.copytree"}
_OF_A_NAME |= {"shutil.copyfile", "shutil.copy", "tempfile.mkstemp", "tempfile.NamedTemporaryFile", "tofile"}
_TO_A_TARGET = {"np.save", "np.savez", "np.savez_compressed", "save_file", "to_csv", "to_parquet"}
_TO_A_TARGET |= {"parquet.write_table", "parquet.ParquetWriter"}


def written(tree):
    """The lines that write a file by its name; a stream that `replacing` gives is none."""
    streams = {
        item.optional_vars.id
        for node in walked(tree)
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.optional_vars, ast.Name) and "replacing(" in ast.unparse(item.context_expr)
    }
    for call in (node for node in walked(tree) if isinstance(node, ast.Call)):
        name = name_of(call.func)
        last = name.rpartition(".")[2]
        found = False
        if {name, last} & _OF_A_NAME:
            found = True
        elif last in ("rename", "replace"):
            found = isinstance(call.func, ast.Attribute) and len(call.args) == 1 and not call.keywords
        elif last == "open":
            modes = [one.value for one in ast.walk(call) if isinstance(one, ast.Constant)]
            found = any(re.fullmatch("[rbt]*[wax+][wbt+]*", str(mode)) for mode in modes)
        elif {name, last} & _TO_A_TARGET:
            targets = {ast.unparse(one).removesuffix(".name") for one in call.args}
            found = bool(targets) and not targets & streams
        if found:
            yield call.lineno


def test_delimited_text_has_one_writer_and_one_reader():
    found = {"to_csv": set(), "reader": set()}
    for module, tree in trees().items():
        for call in (node for node in walked(tree) if isinstance(node, ast.Call)):
            name = name_of(call.func)
            if name.endswith((".to_csv", "csv.writer", "write_csv")):
                found["to_csv"].add(module)
            if name.endswith(("csv.reader", "read_csv", "open_csv", "DictReader")):
                found["reader"].add(module)
    assert found["to_csv"] == {"relcore.base.report"}
    # Numbers after a word, between single spaces, are Arrow's fastest way to read word vectors.
    assert found["reader"] == {"relcore.files.text_tables", "relcore.files.word_vectors"}


def test_files_are_written_in_one_place():
    assert {module for module, tree in trees().items() if any(written(tree))} == set(WRITERS)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_streamlits_theme_has_the_palettes_colours(theme):
    config = tomllib.loads((ROOT / "app" / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
    assert config[theme.name] == {
        "primaryColor": theme.accent,
        "backgroundColor": theme.surface,
        "secondaryBackgroundColor": theme.page,
        "textColor": theme.text,
        "borderColor": theme.border,
    }
    assert config["font"].replace("'", '"') == theme.font


def test_no_file_knows_the_machine_it_was_written_on():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    machine = re.compile(rb"(?<![\w.])/(?:work|root|home/\w+)/(?!</)")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    text = {
        path: path.read_bytes()
        for path in paths
        if path.is_file() and path.suffix not in (".safetensors", ".png", ".pdf")
    }
    assert len(text) > 50
    assert [str(path.relative_to(ROOT)) for path, content in text.items() if machine.search(content)] == []
