"""How much does inversion depend on δ and ω? Pruned inversion over a grid, within a space and between
spaces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.charts.lines import Lines
from relcore.represent.anchors import select_anchors
from relcore.represent.inversion import inversion_grid
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.spaces.split import Split
from relcore.studies.material import SPACES, word_pair, word_specs
from relcore.studies.runs import circumstances, findings_over, lines_over, means_at
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, findings_table, grid

OMEGAS = (1, 2, 4, 8, 16)
_DELTAS = (0.0, 0.3, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
_ROWS = 4000
_COLUMNS = {f"cosine, ω = {omega}": f"ω = {omega}" for omega in OMEGAS}


class InversionSensitivity(Study):
    """Figs. 3 and 6: mean cosine of recovered rows to the true ones; with δ the pruning keeps fewer, more
    different anchors.
    """

    kind = "inversion-sensitivity"
    version = 2
    title = "δ and ω of the inverse"
    question = "How much does inversion depend on δ and ω?"
    paper = "Maiorca et al. 2024, Figs. 3 and 6"
    options = (
        Option(
            "direction",
            "Recovered",
            ("between", "within"),
            "between",
            names=("in the target", "in the source itself"),
        ),
        Option("n_anchors", "Anchors", (100, 300, 768), 300),
        Option(
            "n_states",
            "Random states",
            (3, 5, 10),
            3,
            help=f"Each draws the anchors and the {_ROWS:,} held-out rows.",
        ),
        SPACES,
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        shared = {name: options[name] for name in ("direction", "n_anchors")} | {
            "spaces": list(options["spaces"])
        }
        return grid(options, shared, delta=_DELTAS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        pair, state = word_pair(settings["spaces"], store), settings["random_state"]
        target = pair.target if settings["direction"] == "between" else pair.source
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state)
        split = Split.held_out(pair.ids, pair.source.rows(anchors), state)
        delta = [settings["delta"]]
        found = inversion_grid(pair.source.vectors, target.vectors, split, delta, OMEGAS, state, n_rows=_ROWS)
        cosines = {
            f"cosine, ω = {row.omega}": None if np.isnan(row.cosine) else row.cosine
            for row in found.itertuples()
        }
        last = found.iloc[-1]
        condition = float(last.condition) if np.isfinite(last.condition) else None
        return RunResult(
            {
                **cosines,
                "anchors kept": float(last.kept),
                "condition number": condition,
                "rows": len(split.queries(_ROWS)),
            }
        )

    def seconds(self, settings: Settings) -> float:
        return 3.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        told = f"{int(table['rows'].iloc[0]):,} held-out rows, {table.n_anchors.iloc[0]} anchors"
        note = circumstances(table, told)
        kept = lines_over(
            table, "delta", {"anchors kept": "anchors kept", "condition number": "condition number"}
        )
        return {
            "cosine": Lines(
                tuple(lines_over(table, "delta", _COLUMNS)), "δ", "mean cosine to the true rows", note=note
            ),
            "anchors kept": Lines(tuple(kept), "δ", "mean over 16 prunings", note=note),
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        return findings_table(
            findings_over(table.sort_values("delta"), "delta", _COLUMNS) if len(table) else []
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        cells = {
            (delta, omega): found[0]
            for delta in (sorted(set(table.delta)) if len(table) else ())
            for omega in OMEGAS
            if (found := means_at(table, "delta", delta, [f"cosine, ω = {omega}"]))
        }
        if len(cells) < 2:
            return ""
        delta, omega = max(cells, key=lambda cell: cells[cell].value)
        told = (
            f"The best of {len(cells)} cells is δ = {delta:g} and ω = {omega}, with a cosine of"
            f" {cells[delta, omega].told()}"
        )
        return f"{told}; without pruning it is {cells[0.0, 1].told()}." if (0.0, 1) in cells else f"{told}."

    def opening(self, settings: Settings) -> Opening:
        pair = word_pair(settings["spaces"], Store())
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=settings["random_state"])
        return Opening(spaces=word_specs(settings["spaces"]), anchors=tuple(anchors.tolist()))
