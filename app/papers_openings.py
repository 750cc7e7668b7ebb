"""What a page begins with to explore a table of a paper: the settings of the table's run, as choices of the page.

A run whose data or experiment the page does not have opens nothing, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app import compute, sharing
from app.encode import raw_data
from app.fitting import fit_to_pair
from app.stitch import stitch_setup
from app.workspace import BUNDLED, Workspace
from relcore.papers.local import text_encoders
from relcore.papers.paper_run import RUNS
from relcore.papers.rows import PaperRow
from relcore.papers.runs import what_is_missing
from relcore.sources.catalog import SpaceSpec
from relcore.sources.dataset import DatasetSpec
from relcore.sources.datasets import load_dataset
from relcore.sources.encoder import Encoder
from relcore.sources.examples import example_spaces
from relcore.sources.lsa import TfidfSvd
from relcore.sources.parallel import LANGUAGES
from relcore.spaces import SpaceError
from relcore.store import Store, digest_of
from relcore.studies import study_of
from relcore.studies.material import dataset_of, encoders_of
from relcore.studies.study import StudySpec

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Opening:
    """How a page begins.

    Attributes
    ----------
    state : {widget key: value}
    change : callable, optional
        From the session's workspace to one with the table's spaces, anchors and numbers.
    study : StudySpec, optional
        What Studies opens.
    settings : dict
        Those of the run that the page then has; the others concern repetitions, or are the page's own constants.
    why_not : str
        Why it opens nothing; "" where it does.
    """

    state: Mapping[str, Any] = field(default_factory=dict)
    change: Callable[[Workspace], Workspace] | None = None
    study: StudySpec | None = None
    settings: Settings = field(default_factory=dict)
    why_not: str = ""


def opening_of(row: PaperRow, workspace: Workspace, store: Store) -> Opening:
    """That of the row's first run which the page can show; with the reason of the first one where there is none."""
    if not row.runs:
        return Opening(study=StudySpec.of(study_of(row.tab)) if row.page == "studies" else None)
    found = [opening_of_run(name, row, workspace, store) for name in row.run_names()]
    return next((one for one in found if not one.why_not), found[0])


def opening_of_run(name: str, row: PaperRow, workspace: Workspace, store: Store) -> Opening:
    """That of one run on the row's page."""
    run = RUNS[name]
    if missing := what_is_missing(name):
        return Opening(why_not=missing)
    try:
        if row.page == "studies":
            return _study(row.tab, run.settings)
        opener = _OPENERS.get(run.function)
        if opener is None:
            return Opening(why_not=f"{run.title}: the page lacks this experiment; run the table here instead.")
        return opener(run.settings, workspace, store)
    except SpaceError as error:
        return Opening(why_not=str(error))


def _study(kind: str, settings: Settings) -> Opening:
    study = study_of(kind)
    known = {option.name: option for option in study.options}
    fitting = {name: one for name, one in settings.items() if name in known and one in known[name].choices}
    if fitting != dict(settings):
        return Opening(why_not=f"{study.title}: the study lacks this experiment; run the table here instead.")
    return Opening(study=StudySpec.of(study, fitting), settings=fitting)


def _words(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    taken = _some(settings, "n_anchors", "k", "random_states")
    return Opening(
        change=lambda now: replace(_pair(BUNDLED, now, settings), k=settings["k"], convention="paper"), settings=taken
    )


def _every_pair(settings: Settings, workspace: Workspace, store: Store, **state: Any) -> Opening:
    specs = _spaces(settings["data"], workspace, store)
    spaces = tuple(dict.fromkeys((*workspace.spaces, *specs)))
    found = stitch_setup.candidates(replace(workspace, spaces=spaces))
    chosen = {
        f"stitch.encoders-{digest_of(found)[:8]}": list(specs),
        "stitch.head-kind": settings.get("head", "logistic"),
        "stitch.strategy": "random",
        f"stitch.anchors-{digest_of(tuple(specs))[:8]}": settings["n_anchors"],
        "stitch.states": len(settings["random_states"]),
    }
    return Opening(
        chosen | state, lambda now: replace(now, spaces=tuple(dict.fromkeys((*now.spaces, *specs)))), settings=settings
    )


def _relative_heads(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    return _every_pair(settings, workspace, store, **{"stitch.methods": ["absolute", "relative", "whitened"]})


def _absolute_heads(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    methods = ["absolute", "irp-pruned", "irp-ridge", "irp-whitened", "procrustes"]
    numbers = {"stitch.delta": settings["delta"], "stitch.omega": settings["omega"]}
    return _every_pair(settings, workspace, store, **{"stitch.methods": methods}, **numbers)


def _grid(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    specs = _spaces(settings["data"], workspace, store)
    ends = specs[settings["source"]], specs[settings["target"]]
    return Opening(change=lambda now: _pair(ends, now, settings), settings=settings)


def _norms(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    specs = [spec for data in ("digits", "sentences") for spec in _spaces(data, workspace, store)]
    return Opening(change=lambda now: replace(now, spaces=tuple(dict.fromkeys((*now.spaces, *specs)))), settings=settings)


def _layers(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    state = {"rescale.place": "layers", "rescale.network": "Wikipedia sentences through MiniLM"}
    state |= {"rescale.tests-False": settings["n_test"], "rescale.alphas-False": settings["n_alphas"]}
    return Opening(state | {"rescale.layer-span": int(settings["span"])}, settings=settings)


def _inputs(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    specs = _spaces("digits", workspace, store)
    state = {"rescale.place": "input", "rescale.space": specs[1], "rescale.states": len(settings["random_states"])}
    add = lambda now: replace(now, spaces=tuple(dict.fromkeys((*now.spaces, *specs))))  # noqa: E731
    return Opening(state | {"rescale.span": int(settings["span"])}, add, settings=settings)


def _looks(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    state = {"domains.source": "digits", "domains.looks": settings["looks"], "domains.networks": settings["networks"]}
    state |= {"domains.anchors-True": "own", "domains.anchors-of-1438": settings["n_anchors"], "domains.states": 1}
    numbers = _some(settings, "omega", "delta")
    return Opening(state, lambda now: replace(now, inversion=replace(now.inversion, **numbers)), settings=settings)


def _translations(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    n = len(load_dataset(DatasetSpec("parallel", "en"), store))
    state = {"languages.question": "find", f"languages.anchors-{n}": settings["n_anchors"]}
    state["languages.state"] = settings["random_states"][0]
    return Opening(state, settings=_some(settings, "n_anchors", "random_states"))


def _translate(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    encoder = TfidfSvd(settings["n_components"], min_texts=1)
    specs = _encoded([(DatasetSpec("parallel", language), encoder) for language in LANGUAGES], workspace, "everyday sentences")
    return Opening(change=lambda now: _pair((specs[1], specs[0]), now, settings), settings=_without(settings, "n_components"))


def _autoencoders(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    family = "VAE" if settings["variational"] else "AE"
    return _reconstruction(settings, len(settings["random_states"]), {"reconstruct.families": [family]}, settings["epochs"])


def _codes(settings: Settings, workspace: Workspace, store: Store) -> Opening:
    """The page trains the codes of two numbers for twice the epochs of the others."""
    return _reconstruction(settings, settings["n_states"], {}, settings["epochs"] // 2)


def _reconstruction(settings: Settings, n_runs: int, state: dict[str, Any], epochs: int) -> Opening:
    found = raw_data.available(sharing.open_folder())
    entry = next((one for one in found if one.spec == DatasetSpec(settings.get("data", "digits"))), None)
    if entry is None:
        return Opening(why_not="MNIST: the page lacks the table's part of it; run the table here instead.")
    place = raw_data.preview(entry.spec).digest[:8]
    state |= {"reconstruct.dataset": entry, "reconstruct.runs": n_runs, f"reconstruct.epochs-{place}": epochs}
    state |= {f"reconstruct.train-{place}": settings.get("n_train", 5_000)}
    state |= {f"reconstruct.anchors-{place}": settings["n_anchors"]} if "n_anchors" in settings else {}
    return Opening(state, settings=_without(settings, "width", "widths", "image_size"))


def _bootstrap(settings: Settings, workspace: Workspace, store: Store) -> Opening:
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
    return Opening(state, change, settings=_without(settings, "steps", "n_queries"))


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


def _encoded(wanted: Sequence[tuple[DatasetSpec, Encoder]], workspace: Workspace, data: str) -> list[SpaceSpec]:
    there = {(spec.dataset, spec.encoder): spec for spec in workspace.spaces if spec.source == "encoding"}
    if missing := [encoder.title for dataset, encoder in wanted if (dataset, encoder) not in there]:
        raise SpaceError(
            f"{data}: expected the table's {len(wanted)} encodings among this session's spaces, {len(missing)} are missing "
            f"({', '.join(dict.fromkeys(missing))}); encode them on the Spaces page."
        )
    return [there[one] for one in wanted]


def _pair(ends: Sequence[SpaceSpec], now: Workspace, settings: Settings) -> Workspace:
    """These two spaces, with the run's first random anchors and its numbers of the inverse."""
    source, target = ends
    changed = replace(now, spaces=tuple(dict.fromkeys((*now.spaces, *ends))), source=source, target=target)
    numbers = _some(settings, "omega", "delta")
    changed = replace(changed, inversion=replace(changed.inversion, **numbers, **({"tuned": False} if numbers else {})))
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


_OPENERS: dict[str, Callable[[Settings, Workspace, Store], Opening]] = {
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
