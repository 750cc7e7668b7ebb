"""The corpus: every format's cases, and what becomes of them."""

from __future__ import annotations

import re
from importlib import import_module

from tests.hostile.judge import Verdict, judged

FORMATS = [
    "npy",
    "npz",
    "safetensors",
    "parquet",
    "delimited",
    "word2vec_text",
    "word2vec_binary",
    "side_files",
    "item_tables",
    "picture_bytes",
    "picture_folders",
    "session_files",
    "recipes",
    "specs",
    "lists_of_ids",
    "command_lines",
    "model_folders",
    "faiss_index",
    "arrow",
    "torch_file",
    "adapters",
    "round_trips",
]


def preload() -> None:
    import gc

    ours = "files.reading encoders.datasets migrate.adapters catalog.task cli figures.export runs.jobs"
    others = "pyarrow.parquet pyarrow.csv pyarrow.compute safetensors.numpy PIL.Image PIL.ImageOps msgspec"
    more = "app.workspace app.anchors.lists scipy.linalg sklearn.cluster"
    for module in (*others.split(), *(f"relcore.{one}" for one in ours.split()), *more.split()):
        import_module(module)
    gc.freeze()


# A sample has only some of the cases that are made by a rule (damage, other values, ids), that take seconds,
# or that have a twin in it.
BY_RULE = re.compile(
    r"(.*: )?(cut at|byte \d+ flipped|edit \d|drawn)|.* (is |lacks |has one more)|\S+\.\w+: [a-z ]+$|link:|[a-z]+ --?[\w-]+ '"
    r"|100 million |20,000 columns|200,000 chunks|one id of 1 MB|.*200,000 pairs|scheduler |.*, row 7: |name/a/b/c: "
)


def verdicts(name: str, every: int = 1) -> list[Verdict]:
    """Of the cases of a format; with `every`, only every so many-th of those that `BY_RULE` matches."""
    numbered = enumerate(import_module(f"tests.hostile.{name}").cases())
    return judged(case for number, case in numbered if number % every == 0 or not BY_RULE.match(case.name))
