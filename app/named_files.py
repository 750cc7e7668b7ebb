"""Find the files that a session file or a study file names without their folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app import compute, session
from relcore.base import access, records
from relcore.base.errors import SpaceError
from relcore.base.records import candidates, is_absolute, last_part, with_paths
from relcore.catalog.catalog import SpaceSpec


def with_file_paths(described: Any) -> Any:
    """The JSON with the paths of its files restored. Each file is found by its name and digest among the
    files of this session.

    Raises a SpaceError if a file is not found.
    """
    return with_paths(described, _find)


def _find(spec: Mapping[str, Any]) -> str:
    name = spec["name"]
    digest = spec.get("digest")
    if is_absolute(name) and access.readable_path(name).exists():
        return name
    # Skip files that the session may not read: an error would reveal that they exist.
    paths = [str(path) for path in _candidate_paths(spec) if access.may_read(path)]
    if paths:
        return next((path for path in paths if not digest or _digest(path, spec) == digest), paths[0])
    if spec["source"] != "file":
        return name
    content = ""
    if isinstance(digest, str) and digest:
        content = f" (content {digest[:8]}…)"
    raise SpaceError(
        f"expected the file {last_part(name)!r}{content} in this session, got none of this name; load it in"
        " Data, then open this file again"
    )


def _candidate_paths(spec: Mapping[str, Any]) -> Iterator[Path]:
    specs = session.workspace().spaces
    loaded = (Path(loaded.name).parent for loaded in specs if loaded.source in ("file", "sample"))
    uploads = sorted(session.member().uploads_folder().glob("*/"))
    data = access.data_folder()
    return candidates(spec, dict.fromkeys((*loaded, *uploads)), [data] if data else [])


def _digest(path: str, spec: Mapping[str, Any]) -> str:
    described = {name: value for name, value in spec.items() if name != "digest"}
    try:
        return compute.load_space(records.from_json(SpaceSpec, described | {"name": path})).digest
    except SpaceError:
        return ""
