"""The app as a server sends it: with headers that guard it, and the first page loading meanwhile."""

import importlib
import os
import sys
import threading
from pathlib import Path

from starlette.middleware import Middleware
from streamlit import App

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # Streamlit puts only this file's folder there
    sys.path.insert(0, str(ROOT))

from app import first_imports  # noqa: E402
from app.sharing import Guarded  # noqa: E402
from relcore.base import access  # noqa: E402
from relcore.base.errors import SpaceError  # noqa: E402

os.environ.setdefault("RELSCOPE_CONFINED", "1")
try:
    access.check_environment()
except SpaceError as error:
    sys.exit(f"relscope: {error}")
first_imports.begin()
threading.Thread(
    target=lambda: importlib.import_module("relcore.files.confined").start(), daemon=True
).start()
app = App("main.py", middleware=[Middleware(Guarded)])
