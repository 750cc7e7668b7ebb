"""The workspace: all settings of a user as one immutable value, with undo, a session file and a link."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any

from relcore.base import records
from relcore.base.earlier import NEWER_SETTINGS
from relcore.base.errors import SpaceError, need_one_of, need_strings
from relcore.base.names import STRATEGIES
from relcore.base.records import MOST_BYTES, parse
from relcore.base.settings import settings_of
from relcore.base.text import visible
from relcore.base.version import __version__
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.comparison_recipe import ComparisonRecipe
from relcore.compare.columns import Tags
from relcore.compare.scene import MapLook
from relcore.figures.colorings import Condition, StarLook
from relcore.invert.inversion import InversionSpec
from relcore.maps.pane_maps import MOST_PIVOTS, OWN, TWO, ViewSpec
from relcore.maps.principal_axes import ReductionSpec
from relcore.represent.representations import ProjectionSpec
from relcore.scores.neighbours import CONVENTIONS
from relcore.spaces.matching import Match

BUNDLED = (SpaceSpec("bundled", "word2vec-novels"), SpaceSpec("bundled", "fasttext-novels"))
PANES = (OWN, "absolute", "relative", "whitened", TWO)
MOST_NEIGHBOURS = 200
MOST_MODELS = 4  # number of models side by side in Explore
OPENING_INVERSION = InversionSpec(method="whitened", tuned=True)  # the settings of a new session
MOST_ANCHORS = 2000  # the similarities of 20,000 rows to 2,000 anchors in two spaces take 320 MB
MOST_TAGS = 20
MOST_TAGGED = 20_000  # number of rows in all tags; each step of the history that changes tags holds them
UNDO_STEPS = 200
Step = tuple[str, "Workspace"]
BOOTSTRAPPED = "bootstrap"
# Before the name of a tag or a class that is a pole of the axis.
TAG_POLE = "Tag: "
CLASS_POLE = "Class: "


@dataclasses.dataclass(frozen=True)
class ScoreSettings:
    """What the scores of a representation depend on, besides the pair."""

    anchors: tuple[str, ...] = ()
    projection: ProjectionSpec = ProjectionSpec()
    k: int = 10
    convention: str = "paper"


@dataclasses.dataclass(frozen=True)
class Workspace:
    """The compared spaces, the anchors, and the display settings. Equal workspaces show equal pages.

    `others` are further spaces that Explore shows beside the source and the target. If `example` is True,
    Migrate shows its example instead of these spaces. `anchors_from` tells how the anchors were chosen:
    "strategy n random_state", `BOOTSTRAPPED`, or "" if by hand. Pinned anchors stay when the user chooses a
    new strategy. `tags` are sets of rows that the user named. `poles` are what the user chose as two poles
    of the axis: ids of rows, tags (after `TAG_POLE`) and classes (after `CLASS_POLE`). While it is empty, the
    page chooses them.
    """

    spaces: tuple[SpaceSpec, ...] = BUNDLED
    source: SpaceSpec = BUNDLED[0]
    target: SpaceSpec = BUNDLED[1]
    anchors: tuple[str, ...] = ()
    anchors_from: str = ""
    pinned: tuple[str, ...] = ()
    named_sets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    projection: ProjectionSpec = ProjectionSpec()
    view: ViewSpec = ViewSpec()
    reduction: ReductionSpec = ReductionSpec(fit="first")
    panes: tuple[str, ...] = ("absolute", "relative")
    k: int = 10
    convention: str = "paper"
    inversion: InversionSpec = InversionSpec()
    stars: StarLook = StarLook()
    oriented: bool = True
    look: MapLook = MapLook()
    others: tuple[SpaceSpec, ...] = ()
    example: bool = False
    tags: Tags = ()
    poles: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        need_strings("anchors", self.anchors)
        need_strings("pinned", self.pinned)
        if not isinstance(self.k, int) or not 1 <= self.k <= MOST_NEIGHBOURS:
            raise SpaceError(f"k: expected 1 … {MOST_NEIGHBOURS} neighbours, got {self.k!r}")
        need_one_of("convention", self.convention, CONVENTIONS)
        if not 1 <= len(self.panes) <= 2:
            raise SpaceError(f"panes: expected one row or two, got {self.panes!r:.80}")
        for pane in self.panes:
            need_one_of("panes", pane, PANES)
        if len(self.models) > MOST_MODELS:
            raise SpaceError(f"others: expected at most {MOST_MODELS} models, got {len(self.models)}")
        if not isinstance(self.anchors_from, str):
            raise SpaceError(f"anchors_from: expected a text, got {self.anchors_from!r}")
        for name, ids in self.named_sets:
            need_strings(f"named set {name!r}", ids)
        for name, ids in self.tags:
            need_strings(f"tag {name!r}", ids)
        if len(self.poles) not in (0, 2):
            raise SpaceError(f"poles: expected two, got {len(self.poles)}")
        for pole in self.poles:
            need_strings("pole", pole)

    def with_anchors(self, ids: tuple[str, ...], anchors_from: str = "") -> Workspace:
        return dataclasses.replace(self, anchors=tuple(dict.fromkeys(ids)), anchors_from=anchors_from)

    @property
    def models(self) -> tuple[SpaceSpec, ...]:
        """The spaces that Explore shows side by side: the source, the target, and the others."""
        return self.source, self.target, *self.others

    @property
    def representation(self) -> str:
        """The name of the anchor-based representation that the panes show, "relative" or "whitened"."""
        return next((pane for pane in self.panes[::-1] if pane in ("relative", "whitened")), "relative")

    @property
    def scoring(self) -> ScoreSettings:
        return ScoreSettings(self.anchors, self.projection, self.k, self.convention)

    @property
    def by_strategy(self) -> bool:
        return self.anchors_from not in ("", BOOTSTRAPPED)

    def recipe(self, matched: Match) -> ComparisonRecipe:
        """The settings of a figure of these matched spaces: the source, the target and, if `matched` has
        them, the others."""
        settings = self.anchors, self.projection, self.view, self.reduction, self.panes
        source, target, *digests = (space.digest for space in matched.spaces)
        others = self.others[: len(digests)], tuple(digests)
        return ComparisonRecipe(self.source, self.target, *settings, source, target, *others)


def strategy_of(anchors_from: str) -> tuple[str, int, int] | None:
    """The strategy, number and random state. Returns None for anchors that no strategy chose."""
    strategy, *numbers = anchors_from.split(" ")
    whole = len(numbers) == 2 and all(one.isascii() and one.isdecimal() and len(one) < 10 for one in numbers)
    if whole and strategy in STRATEGIES:
        return (strategy, max(1, int(numbers[0])), int(numbers[1]))
    return None


def settled_tags(tags: Tags) -> Tags:
    """The tags with distinct names and distinct ids, without empty tags. Raises a SpaceError for too many
    tags or tagged rows."""
    settled = {name: tuple(dict.fromkeys(ids)) for name, ids in tags}
    kept = tuple((name, ids) for name, ids in settled.items() if ids)
    if len(kept) > MOST_TAGS:
        raise SpaceError(f"tags: expected at most {MOST_TAGS}, got {len(kept)}; delete one")
    n = sum(len(ids) for _, ids in kept)
    if n > MOST_TAGGED:
        raise SpaceError(
            f"tags: expected at most {MOST_TAGGED:,} rows in all tags, got {n:,}; delete a tag, or tag fewer"
            " rows"
        )
    return kept


def settled_poles(poles: tuple[tuple[str, ...], ...], tags: Tags) -> tuple[tuple[str, ...], ...]:
    """The poles without tags that are no longer there, and each choice listed once."""
    there = {f"{TAG_POLE}{name}" for name, _ in tags}
    settled = []
    for pole in poles:
        kept = (one for one in pole if one in there or not one.startswith(TAG_POLE))
        settled.append(tuple(dict.fromkeys(kept)))
    return tuple(settled)


class History:
    """The present workspace, and the past and undone steps, each with its name. The step nearest to the
    present is last."""

    def __init__(self, present: Workspace, past: Iterable[Step] = (), future: Iterable[Step] = ()) -> None:
        self.present = present
        self._past = list(past)[-UNDO_STEPS:]
        self._future = list(future)

    def edit(self, step: str, changed: Workspace) -> None:
        """Make `changed` the present workspace, and forget undone steps. An unchanged workspace adds
        no step."""
        if changed != self.present:
            self._past = [*self._past, (step, self.present)][-UNDO_STEPS:]
            self._future = []
            self.present = changed

    @property
    def steps(self) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        return tuple(self._past), tuple(self._future)

    def undo(self) -> None:
        self._move(self._past, self._future)

    def redo(self) -> None:
        self._move(self._future, self._past)

    def _move(self, origin: list[Step], destination: list[Step]) -> None:
        if origin:
            step, workspace = origin.pop()
            destination.append((step, self.present))
            self.present = workspace

    @property
    def with_other_anchors(self) -> Workspace | None:
        """The most recent workspace whose anchors differ from the present ones."""
        past = (earlier for _, earlier in reversed(self._past))
        return next((earlier for earlier in past if earlier.anchors != self.present.anchors), None)

    @property
    def undo_step(self) -> str | None:
        if self._past:
            return self._past[-1][0]
        return None

    @property
    def redo_step(self) -> str | None:
        if self._future:
            return self._future[-1][0]
        return None


def session_json(workspace: Workspace, digests: Mapping[SpaceSpec, str]) -> dict[str, Any]:
    usual = Workspace()
    written = records.to_json(workspace)
    unused = [name for name in NEWER_SETTINGS if getattr(workspace, name) == getattr(usual, name)]
    number = workspace.spaces.index
    written["others"] = [number(spec) for spec in workspace.others]
    body = {name: value for name, value in written.items() if name not in unused} | {
        "spaces": [records.to_json(spec) | {"digest": digests.get(spec, "")} for spec in workspace.spaces],
        "source": number(workspace.source),
        "target": number(workspace.target),
        "named_sets": {name: list(ids) for name, ids in workspace.named_sets},
    }
    return {"relscope": __version__, "session": body}


def with_selection(content: dict[str, Any], selection: Sequence[str] | None) -> str:
    """The JSON text of a session file: its `content` with the selected ids, or with None if the ids would
    make the text too large."""
    content = content | {"panes": {"selection": selection}}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    too_large = selection is not None and len(text.encode()) > MOST_BYTES
    if too_large:
        return with_selection(content, None)
    return text


@dataclasses.dataclass(frozen=True)
class _Saved:
    """The fields whose form in a session file differs from their form in the workspace."""

    spaces: tuple[dict[str, Any], ...]
    source: int
    target: int
    named_sets: dict[str, tuple[str, ...]]
    others: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.spaces)
        if not all(isinstance(space.get("digest", ""), str) for space in self.spaces):
            raise SpaceError("digest: expected a string for each space")
        ends = (("source", self.source), ("target", self.target))
        for end, number in (*ends, *(("others", other) for other in self.others)):
            if not 0 <= number < n:
                raise SpaceError(
                    f"{end}: expected the number of one of the {n} spaces, counted from 0, got {number}"
                )


_SAVED = tuple(field.name for field in dataclasses.fields(_Saved))


def from_session_file(
    text: str | bytes, rejoined: Callable[[Any], Any] = lambda described: described
) -> tuple[Workspace, dict[SpaceSpec, str]]:
    """The workspace of a session file, and the digests of its spaces when it was saved. `rejoined` finds
    their files.

    Raises a SpaceError if the content is not a session file, or if its settings do not fit together.
    """
    try:
        content = parse(text, "session file")
        body = dict(content["session"].items())
    except (SpaceError, TypeError, KeyError, IndexError, AttributeError) as error:
        reason = ""
        if isinstance(error, SpaceError):
            reason = f" ({error})"
        raise SpaceError(
            f"session file: expected the JSON that 'Save session' writes, got something else{reason}"
        ) from error
    try:
        return _workspace_of(body, rejoined)
    except SpaceError as error:
        version = visible(content.get("relscope", "?"), 20)
        raise SpaceError(
            f"session file: made by version {version}, this is {__version__}; {error}"
        ) from error


def _workspace_of(
    body: dict[str, Any], rejoined: Callable[[Any], Any]
) -> tuple[Workspace, dict[SpaceSpec, str]]:
    saved = records.from_json(_Saved, {name: body[name] for name in _SAVED if name in body}, "session")
    spaces = rejoined(saved.spaces)
    digests = [space.pop("digest", "") for space in spaces]
    # Read the spaces first, so that an error in them is reported as theirs.
    specs = records.from_json(tuple[SpaceSpec, ...], list(spaces), "spaces")
    as_in_workspace = {
        "spaces": spaces,
        "source": spaces[saved.source],
        "target": spaces[saved.target],
        "others": [spaces[number] for number in saved.others],
        "named_sets": list(saved.named_sets.items()),
    }
    workspace = records.from_json(Workspace, body | as_in_workspace, "session")
    if len(workspace.anchors) > MOST_ANCHORS:
        raise SpaceError(
            f"anchors: expected at most {MOST_ANCHORS:,} in the app, got {len(workspace.anchors):,}"
        )
    return workspace, dict(zip(specs, digests, strict=True))


def _number(text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and 1 <= int(text) <= most):
        raise ValueError(text)
    return int(text)


def _origin(text: str) -> str:
    origin = text.replace(",", " ")
    if not strategy_of(origin):
        raise ValueError(text)
    return origin


def _inversion(text: str) -> InversionSpec:
    if text == "auto":
        return OPENING_INVERSION
    settings = settings_of(InversionSpec)
    given = text.removesuffix(",auto").split(",")
    named = zip((name for name in settings if name != "tuned"), given, strict=True)
    values = {name: settings[name].read(value) for name, value in named}
    return InversionSpec(**values, tuned=text.endswith(",auto"))


def _inversion_text(spec: InversionSpec) -> str:
    if spec == OPENING_INVERSION:
        return "auto"
    *values, tuned = dataclasses.astuple(spec)
    choices = values
    if tuned:
        choices = [*values, "auto"]
    return ",".join(map(str, choices))


_LONGEST_FILTER = 1500  # maximum number of characters of a filter in a link


def _filter_text(conditions: tuple[Condition, ...]) -> str:
    text = json.dumps(records.to_json(conditions), ensure_ascii=False, separators=(",", ":"))
    if conditions and len(text) <= _LONGEST_FILTER:
        return text
    return ""


_FLAG = {False: "0", True: "1"}.__getitem__, {"0": False, "1": True}.__getitem__
# Name in a link → the setting, its writer and its reader. The classes refuse wrong values.
_LINKED: dict[str, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    "similarity": ("projection.similarity", str, str),
    "center": ("projection.center", *_FLAG),
    "pivots": (
        "view.pivots",
        lambda pivots: json.dumps(pivots, ensure_ascii=False),
        lambda text: records.from_json(tuple[str, ...], parse(text, "pivots"))[:MOST_PIVOTS],
    ),
    "nearest": ("view.n_nearest", str, lambda text: _number(text, 2000)),
    "all": ("view.everything", *_FLAG),
    "method": ("reduction.method", str, str),
    "fit": ("reduction.fit", str, str),
    "panes": ("panes", ",".join, lambda text: tuple(text.split(","))),
    "k": ("k", str, lambda text: _number(text, MOST_NEIGHBOURS)),
    "convention": ("convention", str, str),
    "anchors": (
        "anchors_from",
        lambda origin: origin.replace(" ", ",") if strategy_of(origin) else "",
        _origin,
    ),
    # Old links contain neither example rows nor labels.
    "color": ("view.color_by", lambda name: "" if name in ("pivots", "labels") else name, str),
    "second": (
        "look",
        lambda look: f"{look.second_panes},{look.second}" if look.second else "",
        lambda text: MapLook(second=text.partition(",")[2], second_panes=text.partition(",")[0]),
    ),
    "filter": (
        "look.filter",
        _filter_text,
        lambda text: records.from_json(tuple[Condition, ...], parse(text, "filter")),
    ),
    "inverse": ("inversion", _inversion_text, _inversion),
}


def to_query(workspace: Workspace) -> dict[str, str]:
    """The settings for the address bar: those that are small and differ from their defaults."""
    usual = _query(Workspace())
    query = {name: text for name, text in _query(workspace).items() if text != usual[name]}
    if workspace.others:
        query["others"] = ",".join(str(workspace.spaces.index(spec) + 1) for spec in workspace.others)
    return query


def _query(workspace: Workspace) -> dict[str, str]:
    return {name: write(attrgetter(place)(workspace)) for name, (place, write, _) in _LINKED.items()}


def from_query(query: Mapping[str, str], workspace: Workspace) -> Workspace:
    """The workspace with the settings of a link. Invalid settings are ignored, because links get damaged when
    they are copied."""
    for name, (place, _, read) in _LINKED.items():
        field, _, inner = place.partition(".")
        with suppress(ValueError, KeyError):  # a SpaceError is a ValueError
            value = read(query[name])
            if inner:
                value = dataclasses.replace(getattr(workspace, field), **{inner: value})
            workspace = dataclasses.replace(workspace, **{field: value})
    with suppress(ValueError, KeyError):
        numbers = [_number(number, len(workspace.spaces)) for number in query["others"].split(",")]
        others = tuple(workspace.spaces[number - 1] for number in dict.fromkeys(numbers))
        others = tuple(spec for spec in others if spec not in (workspace.source, workspace.target))
        workspace = dataclasses.replace(workspace, others=others)
    return workspace
