"""The files in a .zip file: pictures, or a session with its spaces."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.files import confined
from relcore.files.formats import readable

# Unpack the files of a .zip file into a folder. The confined process reads the archive and writes
# nothing.
#
# Names and sizes are checked in both processes: names must stay below the folder, and reading stops at the
# size limits, even if the archive's directory states smaller sizes.

MOST_FILES = 20_000
MOST_BYTES = 2 << 30
_MOST_OF_ONE = 64 << 20
_LONGEST_PART = 150
_MOST_PARTS = 12
_LIBRARIES = ("zipfile", "zlib", "bz2", "lzma", "encodings.cp437")


def unpack(
    path: Path,
    folder: Path,
    suffixes: Sequence[str],
    what: str = "pictures",
    most_of_one: int = _MOST_OF_ONE,
) -> None:
    """Write the files with these suffixes into an empty folder. If one folder of the archive contains all of
    them, that folder is omitted from their paths. Errors name the files by `what`.

    Raises
    ------
    SpaceError
        The file is not a zip file, or is damaged or encrypted. It contains no file with these suffixes. It
        has more than `MOST_FILES` files, one larger than `most_of_one` bytes (by default 64 MB), or more than
        `MOST_BYTES` in all. A name leads out of the folder, occurs twice, or is also the name of a folder.
    """
    seen: set[str] = set()
    folders: set[str] = set()
    size = 0
    found = confined.stream(
        contents, path, _LIBRARIES, suffixes=list(suffixes), what=what, most_of_one=most_of_one
    )
    for name, content in found:
        place = _relative_path(name, path, suffixes)
        size = size + len(content)
        folded = place.as_posix().casefold()
        taken = folded in seen or folded in folders or not seen.isdisjoint(_above(folded))
        if taken or len(seen) >= MOST_FILES or size > MOST_BYTES:
            raise SpaceError(
                f"{path.name}: expected distinct names and sizes within limits, got {name!r:.60}; pack"
                " it again"
            )
        seen.add(folded)
        folders.update(_above(folded))
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.tobytes())
    if not seen:
        raise SpaceError(
            f"{path.name}: expected {what} ({', '.join(suffixes)}), got none; pack the folder with them"
        )


def contents(path: Path, suffixes: Sequence[str], what: str, most_of_one: int) -> Iterator[list[Any]]:
    """Yield the name and the bytes of each wanted file of an archive; runs in the confined process."""
    with zipfile.ZipFile(path) as archive:
        found = [
            (_relative_path(item.filename, path, ()), item)
            for item in archive.infolist()
            if not item.is_dir()
        ]
        found = [(place, item) for place, item in found if _is_wanted(place, suffixes)]
        if got := _refused(found):
            raise SpaceError(f"{path.name}: expected {what} in folders, got {got}; pack it again")
        heads = {place.parts[0] for place, _ in found}
        n_omitted = 0
        if len(heads) == 1 and all(len(place.parts) > 2 for place, _ in found):
            n_omitted = 1  # one folder contains all others
        for place, item in found:
            with archive.open(item) as stream:
                content = stream.read(most_of_one + 1)
            if len(content) > most_of_one:
                raise SpaceError(
                    f"{path.name}: expected {what} of at most {readable(most_of_one)}, got a larger one,"
                    f" {item.filename!r:.80}; leave it out"
                )
            yield ["/".join(place.parts[n_omitted:]), np.frombuffer(content, np.uint8)]


def _refused(found: Sequence[tuple[PurePosixPath, zipfile.ZipInfo]]) -> str:
    """Why an archive with these files is not unpacked; "" if it is."""
    names = {place.as_posix().casefold() for place, _ in found}
    size = sum(item.file_size for _, item in found)
    if len(found) > MOST_FILES:
        return f"{len(found):,}, and at most {MOST_FILES:,} are read"
    if len(names) < len(found):
        return "two of the same name"
    if any(not names.isdisjoint(_above(name)) for name in names):
        return "a file and folder of one name"
    if any(stat.S_ISLNK(item.external_attr >> 16) for _, item in found):
        return "links"
    if any(item.flag_bits & 1 for _, item in found):
        return "encrypted ones"
    if size > MOST_BYTES:
        return f"{readable(size)}, and at most {readable(MOST_BYTES)} are unpacked"
    return ""


def _above(name: str) -> Iterator[str]:
    return (str(folder) for folder in PurePosixPath(name).parents[:-1])


def _is_wanted(place: PurePosixPath, suffixes: Sequence[str]) -> bool:
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in place.parts)
    return not hidden and place.suffix.lower() in suffixes


def _relative_path(name: str, path: Path, suffixes: Sequence[str]) -> PurePosixPath:
    """The relative path of a member of the archive. Raises a SpaceError if the path could lead out of the
    folder, or if a part of it is not a plain name."""
    parts = name.replace("\\", "/").split("/")
    plain = all(
        part.strip(". ") and part.isprintable() and ":" not in part and len(part.encode()) <= _LONGEST_PART
        for part in parts
    )
    place = PurePosixPath(*parts) if plain else None
    if place is None or len(parts) > _MOST_PARTS or (suffixes and not _is_wanted(place, suffixes)):
        raise SpaceError(
            f"{path.name}: expected names of files below one folder, got {name!r:.80}; pack it again"
        )
    return place
