"""Rows that a study answers: its runs one after the other, each saved, and its findings."""

from __future__ import annotations

import pandas as pd

from relcore.papers.ours import SHARE, Number, grouped, rounded
from relcore.papers.runs import Measured, Settings
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.studies.runs import StudyRuns, finished_run, run_key, run_table
from relcore.studies.statistics import correlation
from relcore.studies.study import Study, StudySpec, study_of


def training(settings: Settings, store: Store, report: Report) -> Measured:
    """Weighted F1 and accuracy of heads on absolute, relative and whitened rows, the mean over the
    encoders and each.
    """
    _, _, table = _table("training", settings, store, report)
    forms = {"absolute": "absolute", "relative": "relative", "whitened": "relative, whitened (ours)"}
    rows = []
    for run in table.to_dict("records"):
        of_encoders = [column for column in run if column.startswith("F1 of ")]
        for column in ("F1", "accuracy", *of_encoders):
            _, _, encoder = column.partition(" of ")
            label = forms[run["features"]] + (
                f", {encoder.partition(' · ')[0]}" if encoder else ", mean of 4 encoders"
            )
            row = {
                "label": label,
                "metric": "accuracy" if column == "accuracy" else "weighted F1",
                "value": run[column],
            }
            rows.append({**row, "n": run["test rows"], "baseline": run["chance"]})
    return Measured(grouped(rows, baseline_is="chance (accuracy)"), _earlier(table))


def similarity(settings: Settings, store: Store, report: Report) -> Measured:
    """Correlations of similarity with accuracy, over models and over epochs, with 95 % intervals."""
    study, spec, table = _table("similarity-performance", settings, store, report)
    numbers = []
    for found in study.findings(spec.settings, table).to_dict("records"):
        metric = "Spearman" if "Spearman" in found["what"] else "Pearson"
        label = found["what"].replace(f"{metric} ", "")
        ends = {end: rounded(found[end]) for end in ("low", "high") if not pd.isna(found[end])}
        facts = {"unit": "−1 … 1", "n": int(found["n"]), "baseline": 0.0, "baseline_is": "unrelated"}
        numbers.append(Number(label, metric, rounded(found["value"]), **facts, **ends))
    return Measured(tuple(numbers), _earlier(table))


def models(settings: Settings, store: Store, report: Report) -> Measured:
    """Fig. 8: of each model that learns, its accuracy and the correlation of similarity with accuracy over
    its epochs.

    The interval is Fisher's, as if the epochs were independent.
    """
    from relcore.studies.similarity_performance import model_label, trained_well

    chosen = {name: settings[name] for name in ("data", "n_runs")}
    _, _, table = _table("similarity-performance", chosen, store, report, settings["only"], settings["most"])
    numbers = []
    for number, run in enumerate(trained_well(table).to_dict("records"), start=1):
        label = f"{number}: {run['architecture']}, {model_label(run)}, state {run['random_state']}"
        numbers.append(Number(label, "accuracy", rounded(run["accuracy"])))
        found = correlation(run["similarity by epoch"], run["accuracy by epoch"])
        ends = {"low": rounded(found.low), "high": rounded(found.high)}
        numbers.append(
            Number(label, "Pearson over the epochs", rounded(found.value), unit="−1 … 1", n=found.n, **ends)
        )
    return Measured(tuple(numbers), _earlier(table))


def anchor_count(settings: Settings, store: Store, report: Report) -> Measured:
    """Accuracy by number of anchors, frozen encoders: heads in their own space and stitched."""
    _, _, table = _table("anchor-count", settings, store, report)
    measures = ("relative, same space", "relative, stitched", "whitened, same space", "whitened, stitched")
    return Measured(_by_count(table, measures), _earlier(table))


def trained_count(settings: Settings, store: Store, report: Report) -> Measured:
    """Accuracy by number of anchors, networks trained on relative rows from the start."""
    _, _, table = _table("trained-count", settings, store, report)
    return Measured(
        _by_count(table, ("relative, same space", "relative, stitched", "absolute")), _earlier(table)
    )


def quantisation(settings: Settings, store: Store, report: Report) -> Measured:
    """Mean cosine distance of paired rows (the paper's score), Euclidean ones beside it, and MRR, by form."""
    from relcore.studies.quantisation import FORMS

    _, _, table = _table("quasi-isometry", settings, store, report)
    units = {
        "cosine distance": ("cosine distance (the paper's)", "0 … 2"),
        "distance": ("Euclidean distance", "length"),
        "unit distance": ("Euclidean distance of unit rows", "0 … 2"),
        "mrr": ("MRR", SHARE),
    }
    rows = [
        {"label": FORMS[run["form"]], "metric": name, "unit": unit, "value": run[column], "n": run["rows"]}
        | ({"k": run["k"], "baseline": run["mrr chance"]} if column == "mrr" else {})
        for run in sorted(table.to_dict("records"), key=lambda run: list(FORMS).index(run["form"]))
        for column, (name, unit) in units.items()
    ]
    return Measured(grouped(rows), _earlier(table))


def _by_count(table: pd.DataFrame, measures: tuple[str, ...]) -> tuple[Number, ...]:
    runs = table.sort_values("n_anchors").to_dict("records")
    return grouped(
        [
            {
                "label": f"{run['n_anchors']} anchors",
                "metric": f"{measure}: accuracy",
                "value": run[measure],
                "n": run["test rows"],
                "baseline": run["chance"],
            }
            for run in runs
            for measure in measures
        ]
    )


def _table(
    kind: str,
    settings: Settings,
    store: Store,
    report: Report,
    only: Settings | None = None,
    most: int | None = None,
) -> tuple[Study, StudySpec, pd.DataFrame]:
    """The study's runs, or the first `n` whose settings are `only` these; missing ones are computed."""
    study = study_of(kind)
    spec = StudySpec.of(study, settings)
    wanted = (only or {}).items()
    chosen = [
        one
        for one in StudyRuns(study, spec).settings
        if all(one.get(name) == value for name, value in wanted)
    ][:most]
    for done, one in enumerate(chosen):
        report(done, len(chosen), f"run {done + 1} of {len(chosen)}")
        finished_run(
            study,
            one,
            store,
            lambda *told, done=done: report(done, len(chosen), told[2] if len(told) > 2 else ""),
        )
    return study, spec, run_table([run_key(study, one) for one in chosen], store)


def _earlier(table: pd.DataFrame) -> float:
    """Seconds that the runs took, whenever they were made."""
    return float(table.seconds.sum())
