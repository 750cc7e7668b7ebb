"""A session with the spaces that it names, in one .zip that another person can open."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from app import compute
from app.session import with_spaces
from app.workspace import Workspace, session_json, with_selection
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.base.names import FORMATS
from relcore.base.records import with_paths, without_paths
from relcore.base.writing import disk_errors, new_folder
from relcore.catalog import catalog
from relcore.catalog.catalog import KEPT, UNSCORED, SpaceSpec, listed
from relcore.files import zip_files
from relcore.files.beside import files_beside
from relcore.files.saving import save_space
from relcore.files.table_formats import TABLES
from relcore.spaces.space import LatentSpace

SESSION = "session.json"
_FOLDER = "files"  # the spaces: one folder for each, with its number as name
_EVERYWHERE = ("bundled", "gensim-data")  # sources that need no file


def has_own_data(workspace: Workspace) -> bool:
    """Whether some space of the session is neither bundled nor downloaded by name."""
    return any(spec.source not in _EVERYWHERE for spec in workspace.spaces)


@dataclass(frozen=True)
class SessionArchive:
    """What an archive will hold. It is collected while the page runs, because only then it is known which
    files the session may read; the browser asks for the bytes later.

    Attributes
    ----------
    session : str
        The text of session.json.
    files : tuple of (path, name in the archive)
    vectors : tuple of (space, name in the archive)
    """

    session: str
    files: tuple[tuple[Path, str], ...]
    vectors: tuple[tuple[LatentSpace, str], ...]

    @classmethod
    def of(
        cls, workspace: Workspace, digests: Mapping[SpaceSpec, str], chosen: Sequence[str]
    ) -> SessionArchive:
        """The archive of a session, with these rows selected.

        A file is packed with those that are read beside it. Of a space from elsewhere, such as an encoding or
        an index, the vectors, ids, labels and counts are packed. Raises a SpaceError if one cannot be read.
        """
        instead: dict[SpaceSpec, SpaceSpec] = {}
        known: dict[SpaceSpec, str] = {}
        files: list[tuple[Path, str]] = []
        vectors: list[tuple[LatentSpace, str]] = []
        for number, spec in enumerate(workspace.spaces):
            if spec.source in _EVERYWHERE:
                known[spec] = digests.get(spec, "")
                continue
            place = PurePosixPath(_FOLDER, str(number))
            if spec.source == "file" and Path(spec.name).is_file():
                packed, found = _packed_file(spec, place)
                files += found
                known[packed] = digests.get(spec, "")
            else:
                packed, space = _packed_vectors(spec, place)
                vectors.append((space, packed.name))
            instead[spec] = packed
        content = without_paths(session_json(with_spaces(workspace, instead), known))
        return cls(with_selection(content, chosen), tuple(files), tuple(vectors))

    def to_bytes(self) -> bytes:
        """The .zip. Nothing is compressed, because vectors hardly shrink."""
        stream = BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(SESSION, self.session)
            for path, name in self.files:
                archive.write(path, name)
            for space, name in self.vectors:
                with TemporaryDirectory() as folder:
                    path = Path(folder, "space.npz")
                    save_space(space, path)
                    archive.write(path, name)
        return stream.getvalue()


def _packed_file(spec: SpaceSpec, place: PurePosixPath) -> tuple[SpaceSpec, list[tuple[Path, str]]]:
    """The spec of a packed file, and the file with its metadata and the files beside it."""
    vectors = access.readable_path(spec.name)
    found = [(path, str(place / path.name)) for path in (vectors, *files_beside(vectors))]
    options = dict(spec.options)
    if metadata := options.get("metadata"):
        table = access.readable_path(metadata)
        options["metadata"] = str(place / "metadata" / table.name)
        found.append((table, options["metadata"]))
    return replace(spec, name=str(place / vectors.name), options=tuple(options.items())), found


def _packed_vectors(spec: SpaceSpec, place: PurePosixPath) -> tuple[SpaceSpec, LatentSpace]:
    """The spec of a packed space that is no file, with the same rows chosen, and all rows of the space."""
    whole = catalog.with_kept(catalog.with_unscored(spec, ()), ())
    space = compute.load_space(whole)
    name = re.sub(r"[^\w-]+", "-", space.name)[:80].strip("-") or "space"
    packed = SpaceSpec("file", str(place / f"{name}.npz"))
    packed = catalog.with_unscored(packed, listed(spec, UNSCORED))
    return catalog.with_kept(packed, listed(spec, KEPT)), space


def unpack(path: Path, folder: Path) -> bytes:
    """Write the files of a session's archive into a new folder, unless it is there; the content of its
    session.json.

    Raises a SpaceError if the archive is damaged, encrypted or too large, or has no session.
    """
    if not folder.is_dir():
        with disk_errors(folder), new_folder(folder) as made:
            zip_files.unpack(path, made, _suffixes(), "the files of a session", zip_files.MOST_BYTES)
            if not (made / SESSION).is_file():
                raise SpaceError(
                    f"{path.name}: expected {SESSION}, which 'Save with data' writes, got none; open another"
                    " file"
                )
    return (folder / SESSION).read_bytes()


def _suffixes() -> list[str]:
    """The last suffix of each file that may belong to a space."""
    names = (*FORMATS, *TABLES, ".json", ".txt")
    return sorted({PurePosixPath(f"x{name}").suffix for name in names})


def paths_in(folder: Path) -> Callable[[Any], Any]:
    """A function that replaces the names of files in a session's spaces by their paths in this folder. It
    raises a SpaceError for a name that leads out of the folder, or to no file."""

    def find(spec: Mapping[str, Any]) -> str:
        if spec["source"] != "file":
            return spec["name"]
        path = (folder / spec["name"]).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            raise SpaceError(
                f"{spec['name']!r:.200}: expected a file of the session's archive, got none; save it again"
            )
        return str(path)

    return partial(with_paths, find=find)
