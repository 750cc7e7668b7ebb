"""`Run`: what a network's layers give for the same rows at several steps of its training, read from a folder.

`relcore.watch` writes such a folder. It holds ``run.json`` (layers, ids, labels), ``metrics.json``, and a
folder ``step-000000012`` with ``<layer>.npy`` for each frame. A folder of checkpoints that were saved as
spaces is read in the same way.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np

from relcore.base.access import may_read, readable_path
from relcore.base.errors import SpaceError, quote
from relcore.base.records import from_json, read_file
from relcore.base.writing import is_orphaned
from relcore.catalog.loading import load_space
from relcore.files.formats import suffix_of
from relcore.files.numpy_files import npy_layout, npy_rows
from relcore.files.parts import natural, series_of
from relcore.files.reading import shape_of
from relcore.nn.capture import OUTPUT
from relcore.spaces.matching import shared_ids
from relcore.spaces.space import LatentSpace
from relcore.training.beside import Points, labels_beside, metrics_beside

CARD = "run.json"
METRICS = "metrics.json"
LAYOUT = 1
_FRAME = re.compile(r"step-(\d{1,18})")
# A checkpoint's name tells its step after such a word, or is a number.
_STEP = re.compile(
    r"(?:step|epoch|iteration|iter|it|batch|checkpoint|ckpt)s?[-_=. ]*(\d{1,18})", re.IGNORECASE
)
_NUMBER = re.compile(r"\d{1,18}")
_MOST_FRAMES = 500


@dataclass(frozen=True)
class RunCard:
    """What ``run.json`` holds: the layers with the names of their files, and ids and labels of the rows.

    `writer` identifies the process that trains, as in `relcore.base.writing.own_name`.
    """

    name: str
    writer: str
    layers: list[str]
    files: list[str]
    n: int
    ids: list[str]
    labels: list[str] | None = None
    layout: int = LAYOUT


@dataclass(frozen=True)
class LoggedMetrics:
    """What ``metrics.json`` holds: steps and values of each metric, whether the training has ended, and how
    many frames the budget left out."""

    step: int = 0
    ended: bool = False
    steps: dict[str, list[int]] = field(default_factory=dict)
    values: dict[str, list[float | None]] = field(default_factory=dict)
    left_out: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A training that was watched: the same n rows at several steps, in one or several layers.

    Attributes
    ----------
    folder : Path
    name : str
        By default the name of the folder.
    steps : (m,) int array
        The steps that have a frame, ascending. 0 is before the training.
    layers : names
    ids : (n,) array of strings
    labels : (n,) array of strings, or None
    metrics : name → (steps, values)
        What the training logged, as two arrays of one length. NaN is a value that was not finite.
    growing : bool
        Whether the training still runs. `refresh` then reads the new frames.
    n_left_out : int
        The number of frames that were left out to keep the budget of `relcore.watch`.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import torch
    >>> import relcore
    >>> model = torch.nn.Linear(4, 3)
    >>> with relcore.watch(mkdtemp() + "/first", model, torch.eye(4), budget=None) as watched:
    ...     for _ in range(20):  # a training has its steps here
    ...         watched.step(loss=0.5)
    >>> run = relcore.open_run(watched.folder)
    >>> run.steps[:5], run.layers, run.rows(-1, "output").shape
    (array([0, 1, 2, 3, 4]), ('output',), (4, 3))
    """

    folder: Path
    name: str
    steps: np.ndarray
    layers: tuple[str, ...]
    ids: np.ndarray
    labels: np.ndarray | None
    metrics: Mapping[str, Points]
    growing: bool = False
    n_left_out: int = 0
    _frames: tuple[Mapping[str, Path], ...] = ()
    _watched: bool = True

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {len(self)} frames, layers={self.layers}, n={len(self.ids)})"

    def rows(self, frame: int, layer: str | None = None) -> np.ndarray:
        """The rows (n, d) of a layer at a frame, float32. Frames are counted from 0, and −1 is the last one.
        The layer may be left out if there is only one.

        Raises
        ------
        SpaceError
            There is no such frame or layer, or the frame was removed since the run was read.
        """
        if not -len(self.steps) <= frame < len(self.steps):
            raise SpaceError(f"frame: expected a number below {len(self.steps)}, got {frame}")
        path = self._frames[frame][self.need_layer(layer)]
        if self._watched:
            return _watched_rows(path, len(self.ids))
        space = load_space(path)
        return np.asarray(space.vectors[space.rows(self.ids)])

    def space(self, frame: int, layer: str | None = None) -> LatentSpace:
        """The rows of a layer at a frame as a space with ids and labels."""
        layer = self.need_layer(layer)
        name = f"{self.name}, step {self.steps[frame]:,}"
        if len(self.layers) > 1:
            name = f"{name}, {layer}"
        return LatentSpace(self.rows(frame, layer), self.ids, name=name, labels=self.labels)

    def need_layer(self, layer: str | None) -> str:
        """The layer; the only one if None. Raises a SpaceError for an unknown one."""
        if layer is None and len(self.layers) == 1:
            return self.layers[0]
        if layer not in self.layers:
            raise SpaceError(f"layer: expected one of {quote(self.layers)}, got {layer!r:.80}")
        return layer

    def metric(self, name: str) -> np.ndarray:
        """The last value (m,) of a metric at or before each frame; NaN before its first one."""
        steps, values = self.metrics[name]
        at = np.searchsorted(steps, self.steps, side="right") - 1
        return np.where(at < 0, np.nan, values[np.maximum(at, 0)])

    @cached_property
    def digest(self) -> str:
        """The hexadecimal digest of the files of all frames."""
        digest = hashlib.blake2b(digest_size=16)
        for step, paths in zip(self.steps.tolist(), self._frames, strict=True):
            for layer in self.layers:
                digest.update(f"{step} {layer} ".encode())
                digest.update(paths[layer].read_bytes())
        return digest.hexdigest()

    def refresh(self) -> Run:
        """The run as its folder is now, with the frames and metrics that are new."""
        return open_run(self.folder)


def open_run(folder: str | Path) -> Run:
    """The run in a folder: one that `relcore.watch` wrote, complete or not, or checkpoints saved as spaces.

    A checkpoint is a vector file whose name tells its step, such as ``step-100.npy``, or a folder such as
    ``epoch-3`` with a file for each layer, as ``relcore.encode(…, folder="epoch-3")`` writes it. The rows are
    those whose ids all checkpoints share. Their labels are those of the first checkpoint, as in an .npz with
    ``vectors``, ``ids`` and ``labels``, or the lines of ``labels.txt`` in the folder or the one above it.
    ``metrics.csv``, with the columns ``step`` and ``accuracy``, gives the accuracy.

    Parameters
    ----------
    folder : str or Path

    Raises
    ------
    SpaceError
        The folder holds no run, or several, or its files are damaged.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import numpy as np
    >>> import relcore
    >>> folder = Path(mkdtemp())
    >>> for step in (0, 10, 100):
    ...     np.save(folder / f"step-{step}.npy", np.random.default_rng(step).normal(size=(6, 3)))
    >>> run = relcore.open_run(folder)
    >>> run.steps, run.rows(2).shape
    (array([  0,  10, 100]), (6, 3))
    """
    place = readable_path(folder, uploads=False)
    if not place.is_dir():
        raise SpaceError(f"There is no folder {folder}; correct the path")
    if (place / CARD).is_file():
        return _watched_run(place)
    runs = _watched_folders(place)
    if runs:
        raise SpaceError(
            f"{folder}: expected one run, got a folder with {len(runs)}; open them with relcore.open_runs, or"
            f" name one, such as {quote([runs[0].name])}"
        )
    run = _checkpoints(place)
    if run is None:
        raise SpaceError(
            f"{folder}: expected a run that relcore.watch wrote, or vector files whose names tell their"
            " steps, such as step-100.npy, got neither"
        )
    return run


def open_runs(folder: str | Path) -> list[Run]:
    """All runs in a folder, in natural order of their names: the run that it is, or those in its sub-folders.

    Parameters
    ----------
    folder : str or Path

    Raises
    ------
    SpaceError
        The folder holds no run. A run in it is damaged.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import torch
    >>> import relcore
    >>> folder = mkdtemp()
    >>> for name in ("first", "second"):
    ...     with relcore.watch(f"{folder}/{name}", torch.nn.Linear(4, 3), torch.eye(4)) as watched:
    ...         watched.step()
    >>> [(run.name, run.steps.tolist()) for run in relcore.open_runs(folder)]
    [('first', [0, 1]), ('second', [0, 1])]
    """
    place = readable_path(folder, uploads=False)
    if not place.is_dir():
        raise SpaceError(f"There is no folder {folder}; correct the path")
    if (place / CARD).is_file():
        return [_watched_run(place)]
    if watched := _watched_folders(place):
        return [_watched_run(path) for path in watched]
    if run := _checkpoints(place):
        return [run]
    runs = [run for path in _folders(place) if (run := _checkpoints(path))]
    if not runs:
        raise SpaceError(
            f"{folder}: expected runs that relcore.watch wrote, or folders of vector files whose names tell"
            " their steps, such as step-100.npy, got none"
        )
    return runs


def frame_name(step: int) -> str:
    """The name of the folder with the frame of this step."""
    return f"step-{step:09d}"


def _folders(place: Path) -> list[Path]:
    inner = [path for path in place.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return sorted(filter(may_read, inner), key=natural)


def _watched_folders(place: Path) -> list[Path]:
    return [path for path in _folders(place) if (path / CARD).is_file()]


def _watched_run(place: Path) -> Run:
    """The run in a folder that `relcore.watch` wrote."""
    path = place / CARD
    card = _read_card(path)
    logged = LoggedMetrics()
    if (place / METRICS).is_file():
        logged = from_json(LoggedMetrics, read_file(place / METRICS, "a run's metrics"), str(place / METRICS))
    frames = _complete_frames(place, card)
    steps = sorted(frames)
    labels = None
    if card.labels is not None:
        labels = np.array(card.labels, object)
    return Run(
        folder=place,
        name=card.name or place.name,
        steps=np.array(steps, np.int64),
        layers=tuple(card.layers),
        ids=np.array(card.ids, object),
        labels=labels,
        metrics=_points(logged, place / METRICS),
        growing=not logged.ended and not is_orphaned(path, card.writer),
        n_left_out=logged.left_out,
        _frames=tuple(frames[step] for step in steps),
    )


def _read_card(path: Path) -> RunCard:
    card = from_json(RunCard, read_file(path, "a run's card"), str(path))
    if card.layout > LAYOUT:
        raise SpaceError(f"{path}: expected layout {LAYOUT}, got one of a later version; update Relscope")
    stems = card.files
    one_per_layer = bool(stems) and len(set(stems)) == len(card.layers)
    stays_inside = all(Path(stem).name == stem for stem in stems)  # no path to another folder
    if not (one_per_layer and stays_inside):
        raise SpaceError(
            f"{path}: expected a file name for each layer, got {quote(stems[:3])}; copy it again"
        )
    columns = [column for column in (card.ids, card.labels) if column is not None]
    if any(len(column) != card.n for column in columns):
        raise SpaceError(f"{path}: expected {card.n} ids and labels, got other numbers; copy it again")
    return card


def _complete_frames(place: Path, card: RunCard) -> dict[int, dict[str, Path]]:
    """The file of each layer, by step. A frame that lacks a file is left out."""
    frames = {}
    for folder in _folders(place):
        name = _FRAME.fullmatch(folder.name)
        if not name:
            continue
        paths = {layer: folder / f"{stem}.npy" for layer, stem in zip(card.layers, card.files, strict=True)}
        if all(path.is_file() and may_read(path) for path in paths.values()):
            frames[int(name[1])] = paths
    return frames


def _points(logged: LoggedMetrics, path: Path) -> Mapping[str, Points]:
    points = {}
    for name, steps in logged.steps.items():
        values = logged.values.get(name, [])
        if len(values) != len(steps):
            raise SpaceError(f"{path}: {name:.40}: expected a value for each step; copy it again")
        numbers = [np.nan if value is None else value for value in values]
        points[name] = np.array(steps, np.int64), np.array(numbers, np.float64)
    return MappingProxyType(points)


def _watched_rows(path: Path, n: int) -> np.ndarray:
    try:
        with path.open("rb") as stream:
            shape, dtype, _ = npy_layout(stream, path.stat().st_size, str(path))
            if shape[0] != n:
                raise SpaceError(f"{path}: expected {n} rows, as in {CARD}, got {shape[0]}; copy it again")
            return npy_rows(stream, n, shape, dtype, str(path))
    except FileNotFoundError:
        raise SpaceError(
            f"{path.parent}: expected a frame, got none: the training has thinned its frames since; read the"
            " run again with run.refresh()"
        ) from None


# Checkpoints that were saved as spaces.


def step_of(path: Path, anywhere: bool = True) -> int | None:
    """The step that a checkpoint's name tells, after a word such as "step" or "epoch", or as a number alone.
    With `anywhere`, the last number in the name counts as well. None if there is none.

    Examples
    --------
    >>> [step_of(Path(name)) for name in ("step-100.npy", "conv1_epoch3.npz", "seed1-20.npy", "words.npy")]
    [100, 3, 20, None]
    """
    stem = path.name.lower().removesuffix(suffix_of(path) or "")
    if found := _STEP.search(stem):
        return int(found[1])
    numbers = _NUMBER.findall(stem)
    if numbers and (anywhere or numbers == [stem]):
        return int(numbers[-1])
    return None


def _checkpoints(place: Path) -> Run | None:
    """The run of the checkpoints in a folder; None if there are none."""
    frames = _frames_of_folders(place) or _frames_of_files(place)
    if not frames:
        return None
    if len(frames) > _MOST_FRAMES:
        raise SpaceError(f"{place}: expected at most {_MOST_FRAMES} checkpoints, got {len(frames)}")
    steps = sorted(frames)
    layers = [layer for layer in frames[steps[0]] if all(layer in frames[step] for step in steps)]
    if not layers:
        raise SpaceError(f"{place}: expected a layer that each checkpoint has, got none; name files alike")
    spaces = [load_space(path) for step in steps for layer in layers for path in [frames[step][layer]]]
    shared = shared_ids(spaces)
    if not len(shared):
        raise SpaceError(f"{place}: expected checkpoints with common ids, got none; save them with ids")
    first = spaces[0].take(spaces[0].rows(shared))
    labels = first.labels
    if labels is None:
        labels = labels_beside(place, len(spaces[0]))
        if labels is not None:
            labels = labels[spaces[0].rows(shared)]
    return Run(
        folder=place,
        name=place.name,
        steps=np.array(steps, np.int64),
        layers=tuple(layers),
        ids=first.ids,
        labels=labels,
        metrics=metrics_beside(place),
        _frames=tuple(frames[step] for step in steps),
        _watched=False,
    )


def _frames_of_folders(place: Path) -> dict[int, dict[str, Path]]:
    """Step → layer → file, of folders such as ``epoch-3`` with a file for each layer."""
    frames: dict[int, dict[str, Path]] = {}
    for folder in _folders(place):
        step = step_of(folder, anywhere=False)
        if step is not None and step not in frames:
            files = {path.stem: path for path in _vector_files(folder) if path.parent == folder}
            if files:
                frames[step] = files
    return frames


def _frames_of_files(place: Path) -> dict[int, dict[str, Path]]:
    """Step → file, of files such as ``step-100.npy``."""
    frames: dict[int, dict[str, Path]] = {}
    for path in _vector_files(place):
        step = step_of(path)
        if step is None or path.parent != place:
            continue
        if step in frames:
            both = quote([frames[step][OUTPUT].name, path.name])
            raise SpaceError(
                f"{place}: expected one file for each step, got {both} for one; give each run a folder of its"
                " own"
            )
        frames[step] = {OUTPUT: path}
    return frames


def _vector_files(folder: Path) -> Sequence[Path]:
    if not any(suffix_of(path) for path in folder.iterdir()):
        return []
    try:
        return series_of(folder, lambda file: shape_of(file) is not None)
    except SpaceError:  # no file holds vectors
        return []
