"""The files and names that a user gives, and what they contain: vectors, texts or pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from app import compute, messages, session, sharing
from app.plain_text import plain, plain_name
from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.names import FORMATS
from relcore.base.writing import disk_errors, new_folder, write
from relcore.encoders import datasets
from relcore.encoders.dataset import HUB_NAME
from relcore.encoders.pictures import SUFFIXES as IMAGES
from relcore.files import item_rows, parts, reading, zip_files
from relcore.files.text_tables import ENCODINGS, UTF8
from relcore.runs.entries import digest_of

Kind = Literal["Vectors", "Texts", "Pictures"]
HOLDS = {
    "Vectors": (
        "One file of vectors, or two or more to compare: .npy, .npz, .csv, .parquet … If you have their texts"
        " or labels, drop that table, too: a .csv with one row per vector.",
        f"{', '.join(sorted(FORMATS))}; and a .csv, .tsv or .parquet file with one row per vector, which"
        " gives ids, labels, texts, pictures and counts. Rows of two spaces are paired by their ids.",
        "~/vectors.npy, or a folder that is one space",
    ),
    "Texts": (
        "A table with a column of texts, or a .txt file with a text in each line. It is encoded here.",
        f"{', '.join(item_rows.OF_TEXTS)}. Columns of labels and ids are kept.",
        "~/sentences.csv, or a Hugging Face dataset: owner/name",
    ),
    "Pictures": (
        "Picture files, or a .zip of a folder; sub-folders are the classes. They are encoded here.",
        f".zip, {', '.join(IMAGES)}, or a .parquet file with a column of pictures.",
        "~/photographs, or a Hugging Face dataset: owner/name",
    ),
}
_VERBS = {"Vectors": "Load as vectors", "Texts": "Encode as texts", "Pictures": "Encode as pictures"}
_UPLOAD = "spaces.upload"
# State keys: uploaded files that are not loaded yet, of this visit to Data and of earlier ones.
_DROPPED = "relscope.dropped"
_EARLIER = "relscope.dropped-earlier"


def forget() -> None:
    """Forget the uploaded files after they were loaded as spaces. They are shown until the user leaves the
    page."""
    st.session_state[_DROPPED] = ()
    st.session_state[_EARLIER] = ()


def _dropped_earlier() -> tuple[Path, ...]:
    """Files that were uploaded before the user left the page. Each has a button that removes it."""
    state = st.session_state
    earlier = state.get(_EARLIER, ())
    if _UPLOAD not in state:  # the user has come back to the page
        dropped = state.get(_DROPPED) or ()
        earlier = tuple(dict.fromkeys((*earlier, *dropped)))
        state[_EARLIER] = earlier
        state[_DROPPED] = ()
    earlier = tuple(path for path in earlier if path.exists())
    with st.container(horizontal=True, gap="small"):
        for path in earlier:
            others = tuple(one for one in earlier if one != path)
            st.button(
                f"Remove {plain_name(path.name)}",
                key=f"data.drop-{digest_of(str(path))[:12]}",
                icon=":material/close:",
                on_click=_keep_earlier,
                args=(others,),
            )
    return earlier


def _forget_dropped() -> None:
    """The files are set again when they are saved."""
    st.session_state[_DROPPED] = None


def _choose_kind(kind: Kind) -> None:
    st.session_state["data.kind"] = kind


def _keep_earlier(paths: tuple[Path, ...]) -> None:
    st.session_state[_EARLIER] = paths


def chosen(kind: Kind) -> tuple[tuple[Path, ...], str]:
    """The files that the user uploaded or named, and the name of a dataset on the Hugging Face hub. All kinds
    share the same widgets, so uploaded files stay when the user chooses another kind or visits another page.
    """
    told, formats, example = HOLDS[kind]
    st.caption(told)
    earlier = _dropped_earlier()
    dropped = st.file_uploader(
        "Drop files here",
        accept_multiple_files=True,
        key=_UPLOAD,
        on_change=_forget_dropped,
        help=formats,
        label_visibility="collapsed",
    )
    placeholder = example
    if access.is_shared():
        placeholder = example.replace("~/", "")
    typed = st.text_input(
        "Or a path on the machine that runs Relscope",
        key="data.path",
        placeholder=placeholder,
        help=sharing.help_with_paths("Nothing is copied or changed.") or None,
        persist_state="session",
    ).strip()
    if kind == "Pictures" and not (earlier or dropped or typed):
        st.button(
            "Try the handwritten digits under Bundled",
            on_click=_show_digits,
            icon=":material/draw:",
            key="data.digits",
        )
    if access.is_shared():
        st.caption(sharing.paths())
    now = _kept(dropped, earlier)
    if st.session_state.get(_DROPPED) is None:
        st.session_state[_DROPPED] = tuple(now)
    paths = [*earlier, *now]
    if typed:
        try:
            place = access.readable_path(typed)
            if place.exists():
                paths.append(place)
            elif kind != "Vectors" and HUB_NAME.fullmatch(typed):
                return tuple(paths), typed
            else:
                raise SpaceError(f"expected a file or a folder, got {typed!r:.200}, where there is none")
        except SpaceError as error:
            messages.error(error)
    return tuple(dict.fromkeys(paths)), ""


def _kept(dropped: Sequence[Any], earlier: Sequence[Path]) -> list[Path]:
    """Keep the dropped files, and say which of them got a number because another file has its name."""
    kept: list[Path] = []
    for file in dropped:
        path = session.keep_upload(file, [*earlier, *kept])
        kept.append(path)
        name = sharing.upload_name(file)
        if path.name != name:
            st.caption(
                f"Another file is called {plain(name)}, so this one is {plain(path.name)} here and in"
                " exported recipes."
            )
    return kept


@compute.cached(128, key=lambda path: (path, compute.file_stamps([path])))
def kind_of(path: Path) -> Kind:
    """The most likely content of a file or folder. Returns "Vectors" if it is unknown."""
    path, suffix = access.readable_path(path), path.suffix.lower()
    if path.is_dir():
        if parts.is_one_space(path):
            return "Vectors"
        if datasets.holds_images(path):
            return "Pictures"
        return "Texts"
    if suffix == ".zip" or suffix in IMAGES:
        return "Pictures"
    if suffix in (".jsonl", ".ndjson", ".txt") and reading.description_of(path).shape is None:
        return "Texts"
    if suffix not in item_rows.SUFFIXES or not item_rows.is_metadata(path):
        return "Vectors"
    roles = item_rows.metadata_columns(path)
    if roles.places("pictures"):
        return "Pictures"
    numbers = "number" in item_rows.first_kinds(path).values()
    if roles.places("text") or not numbers:
        return "Texts"
    return "Vectors"


def known_kind(path: Path) -> Kind:
    """The content by `kind_of`. Returns "Vectors" for a file that cannot be read; loading it will show the
    error."""
    try:
        return kind_of(path)
    except SpaceError:
        return "Vectors"


def offer(kind: Kind, paths: Sequence[Path]) -> None:
    """Say that these files contain something other than was chosen, and offer to open them as what
    they are."""
    names = quote([path.name for path in paths[:3]])
    more = ""
    if len(paths) > 3:
        more = " …"
    verb = "hold"
    if len(paths) == 1:
        verb = "holds"
    messages.info(
        f"{names}{more} {verb} {kind.lower()}.",
        icon=":material/lightbulb:",
    )
    st.button(
        _VERBS[kind],
        key=f"data.as-{kind}",
        type="primary",
        on_click=_choose_kind,
        args=(kind,),
    )


def _show_digits() -> None:
    # Without an entry, the chooser begins with the first dataset, the digits.
    st.session_state.pop("encode.entry", None)
    st.session_state.update({"data.kind": "Bundled", "bundled.kind": "Texts and pictures"})


def picture_folder(paths: Sequence[Path]) -> Path:
    """A folder of the session that contains these picture files, or the content of an archive."""
    first = paths[0]
    stamps = compute.file_stamps(paths)
    place = session.member().uploads_folder() / digest_of("pictures", list(map(str, paths)), stamps)[:16]
    stem = "pictures"
    if first.suffix.lower() == ".zip":
        stem = first.stem
    place = place / stem
    if not place.is_dir():
        with disk_errors(place), st.spinner("Unpacking the pictures …"):
            place.parent.mkdir(exist_ok=True)
            with new_folder(place) as made:
                if first.suffix.lower() == ".zip":
                    zip_files.unpack(access.regular_file(first), made, IMAGES)
                else:
                    _copy(paths, made)
    os.utime(place.parent)
    return place


def _copy(paths: Sequence[Path], folder: Path) -> None:
    """Copy files into a folder. A file whose name is taken gets the name of its own folder before it."""
    for path in paths:
        name = path.name
        if (folder / name).exists():
            name = f"{path.parent.name}-{name}"
        write(folder / name, path.read_bytes())


def of_kind(kind: Kind, paths: Sequence[Path]) -> list[Path]:
    """The paths with this kind of content. All picture files together become one folder, which comes last."""
    found = [
        path for path in paths if known_kind(path) == kind or (kind == "Texts" and _is_damaged_table(path))
    ]
    places = []
    pictures = []
    for path in found:
        suffix = path.suffix.lower()
        if suffix in IMAGES:
            pictures.append(path)
        elif suffix == ".zip":
            places.append(picture_folder([path]))
        else:
            places.append(path)
    if pictures:
        places.append(picture_folder(pictures))
    return places


def _is_damaged_table(path: Path) -> bool:
    """Whether a file is a damaged table, which should be read as texts, because that gives a better error
    message."""
    return path.suffix.lower() in item_rows.OF_TEXTS and path.is_file() and not item_rows.first_kinds(path)


def choose_encoding(path: Path) -> str | None:
    """The encoding that the user chose for a text file, "" for the detected one. The chooser is drawn only if
    the file is not UTF-8; until the user has chosen, None is returned."""
    if path.suffix.lower() not in (".csv", ".tsv", ".txt"):
        return ""
    found = None
    try:
        found = _encoding_of(path)
    except SpaceError as error:
        messages.warning(error)
    if found == UTF8:
        return ""
    index = None
    if found is not None:
        index = list(ENCODINGS).index(found)
    chosen = st.selectbox(
        "Encoding",
        list(ENCODINGS),
        index=index,
        format_func=ENCODINGS.get,
        key=f"data.encoding-{digest_of(str(path))[:12]}",
        help="The bytes are not UTF-8. Choose another encoding if letters look wrong below.",
        width=300,
    )
    if chosen == found and found:
        return ""
    return chosen


@compute.cached(128, key=lambda path: (path, compute.file_stamps([path])))
def _encoding_of(path: Path) -> str:
    return item_rows.encoding_of(access.regular_file(access.readable_path(path)))


def offer_others(kind: Kind, paths: Sequence[Path]) -> None:
    for other in HOLDS:
        if other != kind and (some := [path for path in paths if known_kind(path) == other]):
            offer(other, some)
