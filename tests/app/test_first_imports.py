"""What a server imports and loads before its first page, and that no page waits without it."""

import json
import subprocess
import sys
from pathlib import Path

from app.server import first_imports
from relcore.panes.page import part, script

ROOT = Path(__file__).parents[2]


def printed(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.strip()


IMPORTS = """
import ast, sys
from app.server import first_imports
thread = first_imports.begin()
first_imports.wait()
before = set(sys.modules)
from relcore.encoders.words import read_bundled
print(set(first_imports.MODULES) <= before, read_bundled.cache_info().misses)
for script in ("app/main.py", "pages/start.py", "pages/explore.py"):
    tree = ast.parse(open(script).read())
    tree.body = [line for line in tree.body if isinstance(line, ast.Import | ast.ImportFrom)]
    exec(compile(tree, script, "exec"), {})
print(len(set(sys.modules) - before))
thread.join()
"""


def test_a_run_waits_until_all_that_the_first_page_needs_is_imported_and_loaded():
    assert printed(IMPORTS).split() == ["True", "2", "0"]


def test_an_import_that_fails_keeps_no_page_waiting(monkeypatch):
    monkeypatch.setattr(first_imports, "MODULES", ("relcore", "no_such_module_at_all"))
    monkeypatch.setattr(first_imports.threading, "excepthook", lambda error: None)
    first_imports.begin().join()
    first_imports.wait()


MOST_MODULES = (
    1600  # 1,540 are loaded now: Streamlit's and its test's 810, then pandas', ours, NumPy's and Plotly's
)
MOST_BYTES = 55_000  # of the panes; 48,000 now
MOST_SOURCE = 166_000  # bytes of the component's script and style, once for each visitor; 165,000 now
SLOW = ("faiss", "matplotlib", "numba", "plotly.express", "scipy.stats", "sklearn", "torch", "umap")
FIRST_PAGE = """
import json, sys
from streamlit.testing.v1 import AppTest
import app.components.linked_scatter as component
sent = []
def mount(**settings):
    if not sent:
        sent.append((len(sys.modules), len(settings["data"]), [name for name in SLOW if name in sys.modules]))
component._mount = mount
AppTest.from_file(MAIN, default_timeout=300).switch_page("../pages/explore.py").run()
print(json.dumps(sent[0]))
"""


def test_what_is_imported_and_sent_before_the_first_canvas(tmp_path, monkeypatch):
    """The numbers are counted where the panes are handed to Streamlit: whatever comes later delays no
    canvas.
    """
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path))
    code = f"SLOW, MAIN = {SLOW!r}, {str(ROOT / 'app' / 'main.py')!r}\n{FIRST_PAGE}"
    modules, sent, slow = json.loads(printed(code).splitlines()[-1])
    assert slow == []
    assert 900 < modules <= MOST_MODULES
    assert 20_000 < sent <= MOST_BYTES
    assert 20_000 < len((script("") + part("panes.css")).encode()) <= MOST_SOURCE
