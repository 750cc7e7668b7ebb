"""What a server imports before its first page: what the thread promises, nothing of the app, and no page waits without it."""

import subprocess
import sys
from pathlib import Path

from app import first_imports

ROOT = Path(__file__).parents[2]


def printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout.strip()


def test_a_run_waits_until_all_that_every_page_needs_is_imported():
    code = (
        "import sys\nfrom app import first_imports\nfirst_imports.page_drawn()\nthread = first_imports.begin()\n"
        "first_imports.wait()\nprint(all(name in sys.modules for name in first_imports.NEEDED_BY_ALL))\nthread.join()\n"
        "print('numba' in sys.modules, 'streamlit' in sys.modules)"
    )
    assert printed(code).split() == ["True", "True", "False"]


def test_an_import_that_fails_keeps_no_page_waiting(monkeypatch):
    monkeypatch.setattr(first_imports, "NEEDED_BY_ALL", ("relcore", "no_such_module_at_all"))
    monkeypatch.setattr(first_imports.threading, "excepthook", lambda error: None)
    first_imports.begin().join()
    first_imports.wait()


def test_without_the_thread_nothing_waits():
    assert printed("from app import first_imports\nfirst_imports.wait()\nprint('at once')") == "at once"


def test_the_intervals_of_studies_and_papers_do_without_the_slow_import():
    code = (
        "import sys\nfrom relcore.papers.intervals import quantile\nfrom relcore.studies.statistics import correlation, mean\n"
        "mean([1.0, 2.0, 4.0]), correlation([1, 2, 2, 5], [2, 1, 3, 4], 'spearman'), quantile(4.5), quantile(float('inf'))\n"
        "print('scipy.stats' in sys.modules)"
    )
    assert printed(code) == "False"
