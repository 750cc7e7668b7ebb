"""Files that a session file or a study file names without their folders: found again among what this session has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app import compute, session
from app.workspace import Workspace, to_session_file
from relcore import record
from relcore.access import allowed, data_folder, may_read
from relcore.plain_json import MOST_BYTES
from relcore.portable import candidates, is_absolute, last_part, with_paths, without_paths
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import SpaceError

_PANES = ',\n "panes": {\n  "selection": %s\n }\n}'  # on one line: a million ids with an indent each are 20 MB


def session_file(workspace: Workspace, digests: Mapping[SpaceSpec, str], selection: Sequence[str] = ()) -> str:
    """The session file that users download: it names files without their folders, and holds the selection.

    A selection with which the file would be too large to be opened is left out, and the file says so.
    """
    text = json.dumps(without_paths(json.loads(to_session_file(workspace, digests))), indent=1, ensure_ascii=False)
    ids = json.dumps(selection, ensure_ascii=False)
    if len((text + ids).encode()) > MOST_BYTES - len(_PANES):
        ids = "null"
    return text.removesuffix("\n}") + _PANES % ids


def rejoined(described: Any) -> Any:
    """The JSON with the path of each file in it: of a loaded space, an upload or a file of RELSCOPE_DATA with this name.

    Of several files the one whose digest the JSON tells is taken.

    Raises
    ------
    SpaceError
        There is none.
    """
    return with_paths(described, _find)


def _find(spec: Mapping[str, Any]) -> str:
    if is_absolute(spec["name"]) and allowed(spec["name"]).exists():
        return spec["name"]
    found = [str(path) for path in _known(spec) if may_read(path)]  # a refusal would tell that a file is there
    if found:
        return next((path for path in found if _has_digest(path, spec)), found[0])
    if spec["source"] != "file":
        return spec["name"]
    content = f" (content {spec['digest'][:8]}…)" if isinstance(spec.get("digest"), str) and spec["digest"] else ""
    raise SpaceError(
        f"expected the file {last_part(spec['name'])!r}{content} in this session, got none of this name; load it on the "
        "Spaces page, then open this file again"
    )


def _known(spec: Mapping[str, Any]) -> Iterator[Path]:
    loaded = (Path(one.name).parent for one in session.workspace().spaces if one.source in ("file", "sample"))
    uploads = sorted(session.uploads_folder().glob("*/"))
    data = data_folder()
    return candidates(spec, dict.fromkeys((*loaded, *uploads)), [data] if data else [])


def _has_digest(path: str, spec: Mapping[str, Any]) -> bool:
    """Whether the file holds the space with the digest in the JSON; True where it tells none."""
    if not spec.get("digest"):
        return True
    described = {name: value for name, value in spec.items() if name != "digest"}
    try:
        return compute.load_space(record.from_json(SpaceSpec, described | {"name": path})).digest == spec["digest"]
    except SpaceError:
        return False
