"""Take away: the adapter as files that work without Relscope."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

import streamlit as st

from app.migrate.panel import MigrateSetup
from relcore.base.names import ADAPTERS
from relcore.migrate.adapter_file import GRAPHS, SNIPPET, CardScore, card_of, write
from relcore.migrate.migration import TITLES, MigrationResult
from relcore.papers.runs import commit_of

_CODE = """from apply import corpus, queries  # the file apply.py needs NumPy and nothing else

scores = queries(new_vectors) @ corpus(old_vectors).T  # cosines; search the two sides with any index"""


def draw(setup: MigrateSetup, result: MigrationResult) -> None:
    """The tab."""
    st.markdown(
        f"**{ADAPTERS[result.adapter].title}**, fitted on {result.n_pairs:,} pairs: maps"
        f" {setup.new.dimension:,}-dimensional new queries to the space in which the"
        f" {setup.old.dimension:,}-dimensional old vectors are searched."
    )
    st.download_button(
        "Download the adapter (ZIP)",
        data=lambda: archive(setup, result),
        file_name="adapter.zip",
        mime="application/zip",
        key="take-away.zip",
        icon=":material/download:",
        type="primary",
        on_click="ignore",
    )
    st.caption(
        "adapter.safetensors holds the steps and a card: widths, digests, models, settings, scores with"
        f" intervals, date and commit. {SNIPPET} applies it with NumPy alone. {' and '.join(GRAPHS.values())}"
        " are the same as ONNX, where the package onnx is installed."
    )
    st.code(_CODE, language="python")


def archive(setup: MigrateSetup, result: MigrationResult) -> bytes:
    """The files of the take-away as one ZIP."""
    old, new = setup.old, setup.new
    rows = new.vectors[new.rows(old.ids[result.pairs])], old.vectors[result.pairs]
    adapter = ADAPTERS[result.adapter].load()().fit(*rows)
    scores = [
        CardScore(f"{result.metric}, {TITLES[one.option]}", one.value, one.low, one.high, len(result.queries))
        for one in result.options
    ]
    names = {"new_model": new.name, "old_model": old.name}
    card = card_of(adapter, *rows, method=result.adapter, scores=scores, commit=commit_of(), **names)
    with tempfile.TemporaryDirectory() as folder, io.BytesIO() as file:
        paths = write(adapter, card, Path(folder) / "adapter")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in paths:
                packed.writestr(zipfile.ZipInfo(path.name, (2026, 1, 1, 0, 0, 0)), path.read_bytes())
        return file.getvalue()
