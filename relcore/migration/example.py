"""The migration that comes with Relscope: 960 Wikipedia sentences, TF-IDF + SVD as the old model, MiniLM as the new one."""

from __future__ import annotations

from relcore.migration.migrate import Migration
from relcore.sources.catalog import SpaceSpec, stored_encoding_spec
from relcore.sources.examples import EXAMPLES, example_spaces
from relcore.sources.lsa import TfidfSvd
from relcore.sources.text import MiniLM
from relcore.store import Finished

GROUP = "migration-example"
DATASET = EXAMPLES["sentences"].dataset
OLD, NEW = TfidfSvd(128), MiniLM()
TASK = Migration(n_pairs=300, relevance="labels")


def starting_models(finished: Finished | None) -> tuple[SpaceSpec, SpaceSpec] | None:
    """The old and the new space; None if they are missing."""
    group = finished.groups.get(GROUP) if finished else None
    news = [spec for spec in example_spaces("sentences", finished)[0] if spec.encoder == NEW]
    summary = finished.summary(group.files[0]) if group and group.files else None
    if summary is None or not news:
        return None
    return stored_encoding_spec(summary), news[0]
