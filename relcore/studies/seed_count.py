"""How many seeds does bootstrapping need? Hidden pairs found by the number of known ones, by both methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.bootstrap.spec import BootstrapSpec, most_frequent
from relcore.encoders.words import corpus_words, in_data_folder, swadesh_pairs
from relcore.figures.charts import Lines
from relcore.represent.bootstrap import BootstrapResult, bootstrap_anchors
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.studies.material import word_pair
from relcore.studies.statistics import chart, findings_over, findings_table, lines_by, mean
from relcore.studies.study import Option, RunResult, Settings, Study, grid, states

METHODS = {"self-learning": "self-learning", "paper": "as published"}
ENOUGH = 0.9  # of the hidden pairs: the method has found how the spaces lie to each other
_ANCHORS = 300
_LITERAL = {"steps": 125, "learning_rate": 0.05}  # Table 3 of the paper, stitching


class SeedCount(Study):
    """Word2Vec and FastText of one corpus: 300 anchors, seeds among them, the rest hidden, the target's rows
    shuffled.

    English and French, trained on corpora of two languages: the seeds are drawn from the Swadesh list, 207
    basic words, and the pairs of that list that are no seeds are asked for. There a word has its one listed
    translation or is wrong.
    """

    kind = "seed-count"
    options = (
        Option(
            "spaces",
            "Spaces",
            ("words", "english-french"),
            "words",
            names=("Word2Vec and FastText, bundled", "English and French, trained here"),
            help=(
                "English and French need the data folder that RELSCOPE_DATA names; their first run trains for"
                " two minutes."
            ),
        ),
        Option(
            "seeds",
            "Seeds",
            (0, 3, 4, 5, 6, 8, 10, 12, 15),
            (0, 3, 5, 8, 15),
            many=True,
            help="0 seeds: self-learning only.",
        ),
        Option(
            "rows",
            "Rows",
            (500, 1000, 2000, 4000),
            (500, 1000, 2000),
            many=True,
            help="The most frequent of each space.",
        ),
        Option(
            "methods", "Methods", tuple(METHODS), tuple(METHODS), many=True, names=tuple(METHODS.values())
        ),
        states("the seeds and the hidden pairs", 5),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        varied = {"method": options["methods"], "rows": options["rows"], "seeds": options["seeds"]}
        runs = grid(options, "spaces", **varied)
        return [run for run in runs if run["seeds"] or run["method"] == "self-learning"]

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        report(0, 1, f"{settings['seeds']} seeds, {settings['rows']} rows")
        measured = _translated if settings["spaces"] == "english-french" else _hidden
        result, share, hidden = measured(settings, store, report)
        chance = 1 / result.history[-1].rows
        return RunResult({"found": share, "fits": float(result.success), "hidden": hidden, "chance": chance})

    def seconds(self, settings: Settings) -> float:
        millions = settings["rows"] ** 2 / 1e6
        return 1 + (4 if settings["method"] == "paper" else 1 if settings["seeds"] else 5) * millions

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        charts, titles = {}, ("seeds", "share of hidden pairs found")
        names = {rows: f"{rows:,} rows" for rows in options["rows"]}
        for method, part in table.groupby("method", sort=False):
            lines = lines_by(part.sort_values("rows", kind="stable"), "seeds", "found", "rows", names)
            hidden = f"{int(part.hidden.median()):,} hidden pairs a run"
            levels = {"chance": "chance"}
            charts[METHODS[method]] = chart(part, lines, titles, hidden, levels, y_range=(0, 1.02))
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for (method, n), part in table.groupby(["method", "rows"], sort=False):
            names = {"found": "found", "fits": "told to fit"}
            measures = {name: f"{METHODS[method]}, {n:,} rows, {what}" for name, what in names.items()}
            rows += findings_over(part, "seeds", measures)
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        """Of the most rows: the fewest seeds with which a method finds nine tenths, or the best that it
        does.
        """
        rows, parts = int(table.rows.max()), []
        for method, part in table[table.rows == rows].groupby("method", sort=False):
            shares = {int(seeds): mean(some.found, bounded=True) for seeds, some in part.groupby("seeds")}
            shares = {seeds: share for seeds, share in shares.items() if share.has_interval}
            if not shares:
                return ""
            enough = [seeds for seeds, share in shares.items() if share.value >= ENOUGH]
            best = min(enough) if enough else max(shares, key=lambda seeds: shares[seeds].value)
            verb = "needs" if enough else "does best with"
            text = f"{METHODS[method]} {verb} {best or 'no'} seeds and finds {shares[best]:2}"
            worse = [seeds for seeds in sorted(shares) if seeds > best and shares[seeds].value < ENOUGH]
            if enough and worse:  # so few are trusted, and lead astray
                text += f", but with {worse[-1]} seeds {shares[worse[-1]]:2}"
            parts.append(text)
        pair = "English and French" if options["spaces"] == "english-french" else "Word2Vec and FastText"
        return f"Of the hidden pairs among {rows:,} words of {pair}, {'; '.join(parts)}."


def _hidden(settings: Settings, store: Store, report: Report) -> tuple[BootstrapResult, float, int]:
    pair = word_pair((), store)
    sizes = {"n_anchors": _ANCHORS, "n_seeds": settings["seeds"], "rows": settings["rows"]}
    spec = BootstrapSpec(settings["method"], **sizes, random_state=settings["random_state"], **_LITERAL)
    outcome = spec.run((pair.source, pair.target))
    return outcome.result, outcome.share, _ANCHORS - settings["seeds"]


def _translated(settings: Settings, store: Store, report: Report) -> tuple[BootstrapResult, float, int]:
    corpora = (in_data_folder("corpora", f"{language}.txt.xz") for language in ("english", "french"))
    english, french = (most_frequent(corpus_words(path, store, report), settings["rows"]) for path in corpora)
    listed = swadesh_pairs(in_data_folder("swadesh", "en"), in_data_folder("swadesh", "fr"))
    pairs = [pair for pair in listed if pair[0] in english.index and pair[1] in french.index]
    method, state = settings["method"], settings["random_state"]
    order = [pairs[number] for number in np.random.default_rng(state).permutation(len(pairs))]
    seeds, hidden = order[: settings["seeds"]], order[settings["seeds"] :]
    anchors = [one for one, _ in hidden]
    if method == "paper":  # as many anchors as the paper: other words beside those that are scored
        others = np.setdiff1d(english.ids, [one for one, _ in pairs])
        more = np.random.default_rng(state).choice(others, _ANCHORS - len(pairs), replace=False)
        anchors += more.tolist()
    literal = _LITERAL if method == "paper" else {}
    shared = {"method": method, "random_state": state, "n_anchors": len(pairs), **literal}
    result = bootstrap_anchors(english, french, seeds=seeds, anchors=anchors, **shared)
    linked = dict(result.anchors)
    return result, float(np.mean([linked[one] == other for one, other in hidden])), len(hidden)
