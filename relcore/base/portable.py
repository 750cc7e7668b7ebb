"""Make recipes and session files work on other machines: they name files without folders, and a digest checks
each file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from relcore.base.access import data_folder, expand_home
from relcore.base.errors import SpaceError
from relcore.base.records import parse, read_file

_OF_FILES = ("file", "index", "folder", "huggingface", "sample")  # sources of specs whose name may be a path
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
Find = Callable[[Mapping[str, Any]], str]


def without_paths(described: Any) -> Any:
    """The JSON with each absolute path cut to its last part. If two paths end alike, more parts are kept.

    Examples
    --------
    >>> without_paths({"source": "file", "name": "/data/ada/words.npz"})
    {'source': 'file', 'name': 'words.npz'}
    """
    paths: dict[str, None] = {}
    _rewritten(described, lambda spec, key: paths.setdefault(spec[key], None) or spec[key])
    short = _distinct_ends([path for path in paths if is_absolute(path)])
    return _rewritten(described, lambda spec, key: short.get(spec[key], spec[key]))


def with_paths(described: Any, find: Find) -> Any:
    """Undo `without_paths`: in each spec of a file or folder, replace the name by ``find(spec)``."""

    def located(spec: Mapping[str, Any], key: str) -> str:
        if key == "metadata":
            return find({"source": "file", "name": spec[key]})
        return find(spec) if key == "name" and "encoder" not in spec else spec[key]

    return _rewritten(described, located)


def _distinct_ends(paths: list[str]) -> dict[str, str]:
    parts = {path: re.findall(r"[^\\/]+" if _WINDOWS.match(path) else "[^/]+", path) for path in paths}
    ends = {}
    for path, steps in parts.items():
        others = [other for name, other in parts.items() if name != path]
        lengths = (n for n in range(1, len(steps)) if all(other[-n:] != steps[-n:] for other in others))
        ends[path] = "/".join(steps[-next(lengths, len(steps)) :]) or path
    return ends


def is_absolute(text: str) -> bool:
    """Whether a text is an absolute path on this system or on another one."""
    return text.startswith(("/", "~")) or bool(_WINDOWS.match(text))


def last_part(path: str) -> str:
    """The last part of an absolute path; a relative path is returned unchanged."""
    return _distinct_ends([path])[path] if is_absolute(path) else path


def candidates(spec: Mapping[str, Any], folders: Iterable[Path], deep: Iterable[Path] = ()) -> Iterator[Path]:
    """The files and folders that a spec may mean: in `folders`, and up to two levels below the `deep`
    folders."""
    inner = ((folder, *sorted(folder.glob("*/")), *sorted(folder.glob("*/*/"))) for folder in deep)
    for folder in dict.fromkeys(chain(folders, *inner)):
        path = folder / last_part(spec["name"])
        if _is_there(path, spec):
            yield path


def finder(
    folders: Iterable[Path],
    deep: Iterable[Path] = (),
    given: Mapping[str, Path] | None = None,
    remedy: str = "",
) -> Find:
    """A function for `with_paths` that finds a file by its name: in `given`, as a path, or in these folders.

    If no such file exists, it raises a SpaceError with the remedy.
    """
    folders, deep, given = list(folders), list(deep), given or {}

    def find(spec: Mapping[str, Any]) -> str:
        name, short = spec["name"], last_part(spec["name"])
        if short in given:
            return str(given[short].resolve())
        if _is_there(expand_home(name), spec):
            return name
        path = next(candidates(spec, folders, deep), None)
        if path is None and spec["source"] == "file":
            places = ", ".join(dict.fromkeys(str(folder) for folder in (*folders, *deep)))
            raise SpaceError(
                f"expected a file, got {short!r}, where there is none, nor in the folders {places};"
                f" {remedy or 'copy it there'}"
            )
        return name if path is None else str(path.resolve())

    return find


def _is_there(path: Path, spec: Mapping[str, Any]) -> bool:
    try:
        # a space may be a folder of parts
        return path.is_dir() or (spec["source"] == "file" and path.is_file())
    except (OSError, ValueError):  # a name that no file can have
        return False


def _rewritten(value: Any, change: Callable[[Mapping[str, Any], str], str]) -> Any:
    """The JSON with every path replaced by `change`, also inside the JSON texts that specs of encodings
    contain."""
    if isinstance(value, Mapping):
        places = _places(value)
        return {
            key: change(value, key) if key in places else _rewritten(inner, change)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_rewritten(inner, change) for inner in value]
    if isinstance(value, str) and value.startswith("{"):
        with suppress(SpaceError):
            inner = parse(value, "spec")
            changed = _rewritten(inner, change)
            return value if changed == inner else json.dumps(changed, sort_keys=True)
    return value


def _places(spec: Mapping[str, Any]) -> set[str]:
    """The keys, of a spec or of its options, whose values may be paths. For an encoder these are the keys of
    all its texts."""
    texts = {key for key, value in spec.items() if isinstance(value, str) and not value.startswith("{")}
    if "encoder" in texts:
        return texts - {"encoder"}
    return texts & ({"name"} if spec.get("source") in _OF_FILES else {"folder", "metadata"})


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The object in a .json file. The files that it names are replaced by their paths. They are searched for
    beside the .json file, in the current folder and under RELSCOPE_DATA.

    Raises
    ------
    SpaceError
        The file does not exist or is no JSON object, or a file that it names is not found.
    """
    record = read_file(path, what)
    if not isinstance(record, dict):
        raise SpaceError(f"{path}: expected {what} as a JSON object, got {type(record).__name__}")
    return with_paths(record, finder([path.parent, Path()], data_folders()))


def data_folders() -> list[Path]:
    """The folder in RELSCOPE_DATA, as a list; an empty list if it is not set."""
    return list(filter(None, [data_folder()]))
