"""What a page begins with to explore a table of a paper: the settings of the table's run, as choices of the
page.

A run whose data or experiment the page does not have opens nothing, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app import compute, sharing
from app.encode import datasets
from app.session import fit_to_pair
from app.stitch import panel
from app.workspace import BUNDLED, Workspace
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.encoding import example_spaces
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder
from relcore.encoders.parallel import LANGUAGES
from relcore.encoders.sentences import TfidfSvd
from relcore.papers.local import text_encoders
from relcore.papers.rows import PaperRow
from relcore.papers.runs import RUNS, what_is_missing
from relcore.runs.digest import digest_of
from relcore.runs.store import Store
from relcore.studies.material import dataset_of, encoders_of
from relcore.studies.study import StudySpec, study_of

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class PaperOpening:
    """How a page begins.

    Attributes
    ----------
    state : {widget key: value}
    change : callable, optional
        From the session's workspace to one with the table's spaces, anchors and numbers.
    study : StudySpec, optional
        What Studies opens.
    settings : dict
        Those of the run that the page then has; the others concern repetitions, or are the page's own
        constants.
    why_not : str
        Why it opens nothing; "" where it does.
    """

    state: Mapping[str, Any] = field(default_factory=dict)
    change: Callable[[Workspace], Workspace] | None = None
    study: StudySpec | None = None
    settings: Settings = field(default_factory=dict)
    why_not: str = ""


def opening_of(row: PaperRow, workspace: Workspace, store: Store) -> PaperOpening:
    """That of the row's first run which the page can show; with the reason of the first one where there is
    none.
    """
    if not row.runs:
        return PaperOpening(study=StudySpec.of(study_of(row.tab)) if row.page == "studies" else None)
    found = [opening_of_run(name, row, workspace, store) for name in row.run_names()]
    return next((one for one in found if not one.why_not), found[0])


def opening_of_run(name: str, row: PaperRow, workspace: Workspace, store: Store) -> PaperOpening:
    """That of one run on the row's page."""
    run = RUNS[name]
    if missing := what_is_missing(name):
        return PaperOpening(why_not=missing)
    try:
        if row.page == "studies":
            return _study(row.tab, run.settings)
        opener = _OPENERS.get(run.function)
        if opener is None:
            return PaperOpening(
                why_not=f"{run.title}: the page lacks this experiment; run the table here instead."
            )
        return opener(run.settings, workspace, store)
    except SpaceError as error:
        return PaperOpening(why_not=str(error))


def _study(kind: str, settings: Settings) -> PaperOpening:
    study = study_of(kind)
    known = {option.name: option for option in study.options}
    fitting = {name: one for name, one in settings.items() if name in known and one in known[name].choices}
    if fitting != dict(settings):
        return PaperOpening(
            why_not=f"{study.title}: the study lacks this experiment; run the table here instead."
        )
    return PaperOpening(study=StudySpec.of(study, fitting), settings=fitting)


def _words(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    taken = _some(settings, "n_anchors", "k", "random_states")
    return PaperOpening(
        change=lambda now: replace(_pair(BUNDLED, now, settings), k=settings["k"], convention="paper"),
        settings=taken,
    )


def _every_pair(settings: Settings, workspace: Workspace, store: Store, **state: Any) -> PaperOpening:
    specs = _spaces(settings["data"], workspace, store)
    spaces = tuple(dict.fromkeys((*workspace.spaces, *specs)))
    found = panel.candidates(replace(workspace, spaces=spaces))
    chosen = {
        f"stitch.encoders-{digest_of(found)[:8]}": list(specs),
        "stitch.head-kind": settings.get("head", "logistic"),
        "stitch.strategy": "random",
        f"stitch.anchors-{digest_of(tuple(specs))[:8]}": settings["n_anchors"],
        "stitch.states": len(settings["random_states"]),
    }
    return PaperOpening(
        chosen | state,
        lambda now: replace(now, spaces=tuple(dict.fromkeys((*now.spaces, *specs)))),
        settings=settings,
    )


def _relative_heads(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    return _every_pair(settings, workspace, store, **{"stitch.methods": ["absolute", "relative", "whitened"]})


def _absolute_heads(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    methods = ["absolute", "irp-pruned", "irp-ridge", "irp-whitened", "procrustes"]
    numbers = {"stitch.delta": settings["delta"], "stitch.omega": settings["omega"]}
    return _every_pair(settings, workspace, store, **{"stitch.methods": methods}, **numbers)


def _grid(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    specs = _spaces(settings["data"], workspace, store)
    ends = specs[settings["source"]], specs[settings["target"]]
    return PaperOpening(change=lambda now: _pair(ends, now, settings), settings=settings)


def _norms(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    specs = [spec for data in ("digits", "sentences") for spec in _spaces(data, workspace, store)]
    return PaperOpening(
        change=lambda now: replace(now, spaces=tuple(dict.fromkeys((*now.spaces, *specs)))), settings=settings
    )


def _layers(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    state = {"rescale.place": "layers", "rescale.network": "Wikipedia sentences through MiniLM"}
    state |= {"rescale.tests-False": settings["n_test"], "rescale.alphas-False": settings["n_alphas"]}
    return PaperOpening(state | {"rescale.layer-span": int(settings["span"])}, settings=settings)


def _inputs(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    specs = _spaces("digits", workspace, store)
    state = {
        "rescale.place": "input",
        "rescale.space": specs[1],
        "rescale.states": len(settings["random_states"]),
    }
    add = lambda now: replace(now, spaces=tuple(dict.fromkeys((*now.spaces, *specs))))  # noqa: E731
    return PaperOpening(state | {"rescale.span": int(settings["span"])}, add, settings=settings)


def _looks(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    state = {
        "domains.source": "digits",
        "domains.looks": settings["looks"],
        "domains.networks": settings["networks"],
    }
    state |= {
        "domains.anchors-True": "own",
        "domains.anchors-of-1438": settings["n_anchors"],
        "domains.states": 1,
    }
    numbers = _some(settings, "omega", "delta")
    return PaperOpening(
        state, lambda now: replace(now, inversion=replace(now.inversion, **numbers)), settings=settings
    )


def _translations(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    n = len(load_dataset(DatasetSpec("parallel", "en"), store))
    state = {"languages.question": "find", f"languages.anchors-{n}": settings["n_anchors"]}
    state["languages.state"] = settings["random_states"][0]
    return PaperOpening(state, settings=_some(settings, "n_anchors", "random_states"))


def _translate(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    encoder = TfidfSvd(settings["n_components"], min_texts=1)
    specs = _encoded(
        [(DatasetSpec("parallel", language), encoder) for language in LANGUAGES],
        workspace,
        "everyday sentences",
    )
    return PaperOpening(
        change=lambda now: _pair((specs[1], specs[0]), now, settings),
        settings=_without(settings, "n_components"),
    )


def _autoencoders(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    family = "VAE" if settings["variational"] else "AE"
    return _reconstruction(
        settings, len(settings["random_states"]), {"reconstruct.families": [family]}, settings["epochs"]
    )


def _codes(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    """The page trains the codes of two numbers for twice the epochs of the others."""
    return _reconstruction(settings, settings["n_states"], {}, settings["epochs"] // 2)


def _reconstruction(settings: Settings, n_runs: int, state: dict[str, Any], epochs: int) -> PaperOpening:
    found = datasets.available(sharing.open_folder())
    entry = next((one for one in found if one.spec == DatasetSpec(settings.get("data", "digits"))), None)
    if entry is None:
        return PaperOpening(
            why_not="MNIST: the page lacks the table's part of it; run the table here instead."
        )
    place = datasets.preview(entry.spec).digest[:8]
    state |= {"reconstruct.dataset": entry, "reconstruct.runs": n_runs, f"reconstruct.epochs-{place}": epochs}
    state |= {f"reconstruct.train-{place}": settings.get("n_train", 5_000)}
    state |= {f"reconstruct.anchors-{place}": settings["n_anchors"]} if "n_anchors" in settings else {}
    return PaperOpening(state, settings=_without(settings, "width", "widths", "image_size"))


def _bootstrap(settings: Settings, workspace: Workspace, store: Store) -> PaperOpening:
    most = settings["rows"]
    state = {
        "bootstrap.mode": "hide",
        f"bootstrap.start-{'-'.join(('random', 'anchors', 'typed', 'none'))}": "random",
        "bootstrap.method": "paper",
        f"bootstrap.rows-{_shorter_of_the_words()}-paper": most,
        f"bootstrap.anchors-{most}": settings["n_anchors"],
        f"bootstrap.seeds-{settings['n_anchors'] - 1}": settings["n_seeds"],
        "bootstrap.learning-rate": settings["learning_rate"],
        "bootstrap.random-state": settings["random_states"][0],
    }
    change = lambda now: replace(_pair(BUNDLED, now, {}), k=settings["k"])  # noqa: E731
    return PaperOpening(state, change, settings=_without(settings, "steps", "n_queries"))


def _shorter_of_the_words() -> int:
    return min(len(compute.load_space(spec)) for spec in BUNDLED)


def _spaces(data: str, workspace: Workspace, store: Store) -> list[SpaceSpec]:
    """The spaces of a table's data, in the order of its run.

    Raises
    ------
    SpaceError
        They are not here.
    """
    if data == "digits" and (found := example_spaces(data, store.finished)[0]):
        return found
    if data not in ("digits", "sentences"):
        raise SpaceError(f"{data}: the table's spaces are not here; run the table here instead.")
    encoders = encoders_of(data) if data == "digits" else text_encoders()
    return _encoded([(dataset_of(data), encoder) for encoder in encoders], workspace, data)


def _encoded(
    wanted: Sequence[tuple[DatasetSpec, Encoder]], workspace: Workspace, data: str
) -> list[SpaceSpec]:
    there = {(spec.dataset, spec.encoder): spec for spec in workspace.spaces if spec.source == "encoding"}
    if missing := [encoder.title for dataset, encoder in wanted if (dataset, encoder) not in there]:
        raise SpaceError(
            f"{data}: expected the table's {len(wanted)} encodings among this session's spaces,"
            f" {len(missing)} are missing ({', '.join(dict.fromkeys(missing))}); encode them on the Spaces"
            " page."
        )
    return [there[one] for one in wanted]


def _pair(ends: Sequence[SpaceSpec], now: Workspace, settings: Settings) -> Workspace:
    """These two spaces, with the run's first random anchors and its numbers of the inverse."""
    source, target = ends
    changed = replace(now, spaces=tuple(dict.fromkeys((*now.spaces, *ends))), source=source, target=target)
    numbers = _some(settings, "omega", "delta")
    changed = replace(
        changed, inversion=replace(changed.inversion, **numbers, **({"tuned": False} if numbers else {}))
    )
    pair = compute.matched(source, target)
    if "n_anchors" not in settings:
        return fit_to_pair(changed, pair)
    state = settings.get("random_state", settings.get("random_states", [0])[0])
    chosen = compute.select_anchors(pair, settings["n_anchors"], "random", state)
    return fit_to_pair(changed.with_anchors(chosen, f"random {settings['n_anchors']} {state}"), pair)


def _some(settings: Settings, *names: str) -> dict[str, Any]:
    return {name: settings[name] for name in names if name in settings}


def _without(settings: Settings, *names: str) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in names}


_OPENERS: dict[str, Callable[[Settings, Workspace, Store], PaperOpening]] = {
    "word_spaces:neighbours": _words,
    "stitched:relative_heads": _relative_heads,
    "stitched:absolute_heads": _absolute_heads,
    "stitched:across_looks": _looks,
    "rescaled:grid": _grid,
    "rescaled:lengths": _norms,
    "rescaled:layers": _layers,
    "rescaled:inputs": _inputs,
    "languages:translations_found": _translations,
    "languages:carried_over": _translate,
    "pictures:autoencoders": _autoencoders,
    "codes:turned": _codes,
    "bootstrapped:words": _bootstrap,
}
