"""The ASGI app: Streamlit behind the guard. The data of the first pages load while the server starts."""

import importlib
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.middleware import Middleware
from streamlit import App

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # Streamlit adds only this file's folder to the path
    sys.path.insert(0, str(ROOT))

from app import live, sharing  # noqa: E402
from app.server import first_imports  # noqa: E402
from app.server.guard import Gate, Guard  # noqa: E402
from relcore.base import access  # noqa: E402
from relcore.base.errors import SpaceError  # noqa: E402

os.environ.setdefault("RELSCOPE_CONFINED", "1")
try:
    access.check_environment()
except SpaceError as error:
    sys.exit(f"relscope: {error}")
entry = Gate.of_environment()
first_imports.start()
threading.Thread(
    target=lambda: importlib.import_module("relcore.files.confined").start(), daemon=True
).start()


@asynccontextmanager
async def announced(_: App) -> AsyncIterator[None]:
    """A lifespan that prints the address of the app. At this point the port is known, and no request has been
    answered."""
    sharing.confine_if_reachable()
    entry.announce()
    yield


app = App("main.py", lifespan=announced, routes=[live.ROUTE], middleware=[Middleware(Guard, entry=entry)])
