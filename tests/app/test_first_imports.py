"""What a server imports and loads before its first page, and what that page imports and sends before its first canvas."""

import json
import subprocess
import sys
from pathlib import Path

from relcore.panes.page import part, script

ROOT = Path(__file__).parents[2]
MOST_MODULES = 1780  # 1,729 now
MOST_BYTES = 55_000  # of the data of the panes; 48,000 now
MOST_SOURCE = 184_000  # bytes of the component's script and style, which each visitor loads once; 182,700 now
SLOW = ("faiss", "matplotlib", "numba", "plotly.express", "scipy.stats", "sklearn", "torch", "umap")
# The numbers are counted where the panes are handed to Streamlit: whatever comes later delays no canvas.
FIRST_PAGE = """
import ast, json, sys
from app.server import first_imports
thread = first_imports.start()
first_imports.wait()
before = set(sys.modules)
from relcore.encoders.words import read_bundled
told = [set(first_imports.MODULES) <= before, read_bundled.cache_info().misses]
for script in ("app/main.py", "pages/start.py", "pages/explore.py"):
    tree = ast.parse(open(script).read())
    tree.body = [line for line in tree.body if isinstance(line, ast.Import | ast.ImportFrom)]
    exec(compile(tree, script, "exec"), {})
told.append(len(set(sys.modules) - before))
thread.join()
from streamlit.testing.v1 import AppTest
import app.components.linked_scatter as component
def mount(**settings):
    if len(told) == 3:
        told.extend((len(sys.modules), len(settings["data"]), [name for name in SLOW if name in sys.modules]))
component._mount = mount
AppTest.from_file("app/main.py", default_timeout=300).switch_page("../pages/explore.py").run()
print(json.dumps(told))
"""


def test_what_is_imported_and_sent_before_the_first_canvas(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path))
    monkeypatch.delenv("RELSCOPE_DEVICE", raising=False)  # "torch" would be imported at once
    command = [sys.executable, "-c", f"SLOW = {SLOW!r}\n{FIRST_PAGE}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    *begun, modules, sent, slow = json.loads(done.stdout.splitlines()[-1])
    assert begun == [True, 2, 0], "the first page imports nothing, and both bundled spaces are read"
    assert slow == []
    assert 900 < modules <= MOST_MODULES
    assert 20_000 < sent <= MOST_BYTES
    assert 20_000 < len((script("") + part("panes.css")).encode()) <= MOST_SOURCE
