"""Hostile adapters; the truth is what the package safetensors and Python's JSON find in the same bytes."""

import json

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of

from relcore.base.records import to_json
from relcore.migrate.adapter_files import load
from tests.hostile import safetensors
from tests.hostile.cases import PICKLE, controls, each, spoiled

FILE = "adapter.safetensors"
KEY = "relscope-adapter"
CARD = {
    "adapter": "affine",
    "new_width": 3,
    "old_width": 2,
    "width": 2,
    "n_pairs": 40,
    "new_digest": "ab",
    "old_digest": "cd",
    "new_model": "new",
    "old_model": "old",
    "settings": {"ridge": 0.5},
    "date": "2026-01-02",
    "commit": "",
    "version": "1",
    "candidates": "old",
    "n_candidates": 20,
    "weight": 0.5,
    "scores": [{"name": "nDCG@10", "value": 0.4, "low": 0.3, "high": 0.5, "n": 9}],
}
PLAN = {"layout": 1, "queries": ["unit", "affine", "unit"], "corpus": ["unit"], "card": CARD}
TENSORS = {
    "queries.1.matrix": np.arange(6, dtype="<f4").reshape(3, 2) / 8,
    "queries.1.offset": np.ones(2, "<f4"),
}


def packed(plan=PLAN, tensors=TENSORS, *, text=None, matrix=None):
    """A file of this plan and these tensors; `matrix` changes that tensor's entry in the header."""
    entry = {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}
    change = None
    if matrix:
        change = {"queries.1.matrix": entry | matrix}
    return safetensors.packed(tensors, {KEY: json.dumps(plan) if text is None else text}, change)


def read(folder):
    found = load(folder / FILE)
    return {
        "card": to_json(found.card),
        "tensors": [found.query_steps_[1].matrix, found.query_steps_[1].offset],
    }


def truth(content):
    """The reading of a file with the steps of `PLAN`, if each field of its card has the right type."""
    try:
        tensors = tensors_of(content)
        length = int.from_bytes(content[:8], "little")
        plan = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][KEY])
        steps = {name: plan.pop(name) for name in ("layout", "queries", "corpus")}
        card = plan.pop("card")
        alike = (
            steps == {name: PLAN[name] for name in steps}
            and not plan
            and _typed(card | {"settings": CARD["settings"]}, CARD)
            and isinstance(card["settings"], dict)  # of any names
            and card["n_pairs"] >= 2
        )
        alike &= all(card[name] == CARD[name] for name in CARD if name.endswith("width"))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError):
        return None
    found = [tensors.pop(name, None) for name in TENSORS]
    shapes = [one is not None and (one.shape, one.dtype) for one in found]
    alike &= shapes == [(one.shape, one.dtype) for one in TENSORS.values()] and not tensors
    if alike and all(np.isfinite(one).all() for one in found):
        return {"card": card, "tensors": found}
    return None


def _typed(got, expected):
    if isinstance(expected, dict):
        alike = isinstance(got, dict) and got.keys() == expected.keys()
        return alike and all(_typed(got[one], expected[one]) for one in got)
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(map(_typed, got, expected))
    return type(got) is type(expected)


def with_card(**changed):
    return PLAN | {"card": CARD | changed}


def cases():
    whole = packed()
    layout = {name: one for name, one in PLAN.items() if name != "layout"}
    yield from controls(read, FILE, {"an adapter": (whole, truth(whole))})
    plans = {
        "a later layout": PLAN | {"layout": 2},
        "no layout": layout,
        "steps: none": PLAN | {"queries": []},
        "steps: unknown": PLAN | {"queries": ["unit", "exec", "unit"]},
        "steps: an affine without tensors": PLAN | {"corpus": ["unit", "affine", "unit"]},
        "card: a setting of another version": with_card(surprise=1),
        "card: another new width": with_card(new_width=4),
        "card: a width as text": with_card(new_width="3"),
        "card: a score that is a text": with_card(scores=["0.4"]),
    }
    contents = {name: packed(plan) for name, plan in plans.items()} | {
        "metadata: not JSON": packed(text="{hello"),
        "metadata: NaN": packed(with_card(settings={"ridge": float("nan")})),
        "metadata: nested 100,000 deep": packed(text="[" * 100_000),
        "tensors: one more": packed(tensors=TENSORS | {"queries.7.matrix": np.ones((2, 2), "<f4")}),
        "tensors: float64": packed(tensors=TENSORS | {"queries.1.offset": np.ones(2)}),
        "tensors: NaN": packed(tensors=TENSORS | {"queries.1.offset": np.full(2, np.nan, "<f4")}),
        "sizes: negative": packed(matrix={"shape": [-3, -2]}),
        "sizes: overlapping": packed(matrix={"data_offsets": [8, 32]}),
        "sizes: a shape of flags": packed(matrix={"shape": [True, 6]}),
        "a pickle": PICKLE,
    }
    yield from each(read, FILE, contents)
    yield from each(read, FILE, spoiled(whole, n_flips=24), truth)
