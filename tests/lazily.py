"""Libraries whose import takes seconds, imported when a test first uses one of their names: a collection of all tests
waits for none of them.
"""

from importlib import import_module
from typing import Any


class Lazily:
    """``torch = Lazily("torch")`` at the top of a file of tests, in place of ``import torch``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith(("_", "pytest")):  # what pytest looks for in everything that a file defines
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
