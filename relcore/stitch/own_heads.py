"""Heads of users: classifiers of a space's rows that were trained elsewhere, as PyTorch modules, scikit-learn
estimators or ONNX files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, brief, quote
from relcore.base.names import METHODS
from relcore.spaces.space import LatentSpace
from relcore.stitch.onnx_heads import OnnxHead


@dataclass(frozen=True, eq=False)
class OwnHead:
    """A user's head, as those of `relcore.represent.heads`. `order` (C,) are the columns of its scores in the
    order of the classes."""

    name: str
    head: Any
    order: np.ndarray
    needs_company: bool = True  # each encoder's rows in a call of their own

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """The scores (m, C) of rows (m, d), the highest of which is the answer.

        Raises
        ------
        SpaceError
            The head fails on these rows, or does not give a finite number for each class.
        """
        with errors_of_users("head", self.name, X):
            scores = _scores(self.head, X)
        if scores.shape != (len(X), len(self.order)):
            raise SpaceError(
                f"heads: expected scores (m, {len(self.order)}) from the head of {self.name!r:.80}, one for"
                f" each class, got {scores.shape} for {len(X)} rows"
            )
        if not np.isfinite(scores).all():
            raise SpaceError(f"heads: expected finite scores from the head of {self.name!r:.80}, got NaN")
        return scores[:, self.order].astype(np.float32)


def own_heads(
    heads: Sequence[Any] | None,
    spaces: Sequence[LatentSpace],
    names: Sequence[str],
    classes: Sequence[str],
    methods: Sequence[str],
) -> list[OwnHead | None]:
    """The heads that users gave for spaces with these names; None where one is trained.

    Raises
    ------
    SpaceError
        Not one for each space; neither a module nor an estimator nor an ONNX file; other classes or another
        width; methods whose heads read similarities.
    """
    if heads is None:
        return [None] * len(names)
    need_one_each("heads", heads, names)
    if any(head is not None for head in heads):
        need_translations("heads", methods)
    sides = zip(heads, spaces, names, strict=True)
    return [_own_head(head, name, space.dimension, classes) for head, space, name in sides]


@contextmanager
def errors_of_users(noun: str, space: str, X: np.ndarray) -> Iterator[None]:
    """Turn any error of a user's "head" or "decoder" into a SpaceError, which names the space of its rows."""
    try:
        yield
    except SpaceError:
        raise
    except Exception as error:  # users' code raises anything
        reason = " ".join(str(error).split())[:200]
        raise SpaceError(
            f"{noun}s: expected a {noun} that reads rows {X.shape} of {space!r:.80}, got"
            f" {type(error).__name__}: {reason}"
        ) from error


def need_one_each(argument: str, values: Any, names: Sequence[str]) -> None:
    """Raise a SpaceError unless `values` is a list with an item for each space."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or len(values) != len(names):
        raise SpaceError(
            f"{argument}: expected a list of {len(names)}, one for each space, or None for a space without,"
            f" got {brief(values, 80)}"
        )


def need_translations(argument: str, methods: Sequence[str]) -> None:
    """Raise a SpaceError unless all of these methods translate rows, which what users bring reads."""
    relative = [one for one in methods if METHODS[one].representation != "absolute"]
    if relative:
        raise SpaceError(
            f"{argument}: expected methods that translate rows, because your {argument} read rows, got"
            f" {quote(relative)}; choose among {quote(translations())}"
        )


def translations() -> list[str]:
    """The methods whose result are rows of the other space."""
    return [one for one in METHODS if METHODS[one].representation == "absolute"]


def _own_head(head: Any, name: str, width: int, classes: Sequence[str]) -> OwnHead | None:
    if head is None:
        return None
    if isinstance(head, str | Path):
        head = OnnxHead(head)
    if isinstance(head, OnnxHead):
        if head.width not in (0, width) or head.n_classes not in (0, len(classes)):
            raise SpaceError(
                f"heads: expected {head.name!r:.80} to map the {width} dimensions of {name!r:.80} to a"
                f" score for each of {len(classes)} classes, got a graph from {head.width or 'any'}"
                f" dimensions to {head.n_classes or 'any'} scores; export the head of this space"
            )
        return OwnHead(name, head, np.arange(len(classes)))
    if is_module(head):
        return OwnHead(name, head, np.arange(len(classes)))
    if not hasattr(head, "predict") or not hasattr(head, "classes_"):
        raise SpaceError(
            "heads: expected a PyTorch module, a fitted classifier of scikit-learn or an ONNX file for"
            f" {name!r:.80}, got {type(head).__name__}"
        )
    known = [str(one) for one in np.asarray(head.classes_).tolist()]
    if sorted(known) != sorted(classes):
        raise SpaceError(
            f"heads: expected a head of {name!r:.80} for the classes {quote(list(classes)[:5])}, got"
            f" {quote(known[:5])}"
        )
    return OwnHead(name, head, np.array([known.index(one) for one in classes]))


def is_module(value: Any) -> bool:
    torch = sys.modules.get("torch")  # a module exists only after torch was imported
    return torch is not None and isinstance(value, torch.nn.Module)


def module_outputs(module: Any, X: np.ndarray) -> Any:
    """The output tensor of a user's module for rows (m, d), on the module's device. The module stays as it
    was."""
    import torch

    from relcore.nn.capture import undisturbed

    tensors = [*module.parameters(), *module.buffers()]
    rows = torch.from_numpy(np.array(X))
    if tensors:
        rows = rows.to(tensors[0].device)
    with undisturbed(module):
        return module(rows)


def _scores(head: Any, X: np.ndarray) -> np.ndarray:
    if isinstance(head, OnnxHead):
        return head.scores(X)
    if is_module(head):
        return np.asarray(module_outputs(head, X).float().softmax(dim=-1).cpu())
    if hasattr(head, "predict_proba"):
        return np.asarray(head.predict_proba(X))
    answers = np.asarray(head.predict(X))
    return (answers[:, None] == np.asarray(head.classes_)).astype(np.float32)
