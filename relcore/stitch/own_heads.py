"""Heads of users: classifiers of a space's rows that were trained elsewhere, as PyTorch modules or
scikit-learn estimators."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, brief, quote
from relcore.base.names import METHODS


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
        try:
            scores = _scores(self.head, X)
        except Exception as error:  # users' code raises anything
            reason = " ".join(str(error).split())[:200]
            raise SpaceError(
                f"heads: expected a head that reads rows {X.shape} of {self.name!r:.80}, got"
                f" {type(error).__name__}: {reason}"
            ) from error
        if scores.shape != (len(X), len(self.order)):
            raise SpaceError(
                f"heads: expected scores (m, {len(self.order)}) from the head of {self.name!r:.80}, one for"
                f" each class, got {scores.shape} for {len(X)} rows"
            )
        if not np.isfinite(scores).all():
            raise SpaceError(f"heads: expected finite scores from the head of {self.name!r:.80}, got NaN")
        return scores[:, self.order].astype(np.float32)


def own_heads(
    heads: Sequence[Any] | None, names: Sequence[str], classes: Sequence[str], methods: Sequence[str]
) -> list[OwnHead | None]:
    """The heads that users gave for spaces with these names; None where one is trained.

    Raises
    ------
    SpaceError
        Not one for each space; neither a module nor an estimator; other classes; methods whose heads read
        similarities.
    """
    if heads is None:
        return [None] * len(names)
    if isinstance(heads, str | bytes) or not isinstance(heads, Sequence) or len(heads) != len(names):
        raise SpaceError(
            f"heads: expected a list of {len(names)}, one for each space and None to train it, got"
            f" {brief(heads, 80)}"
        )
    relative = [one for one in methods if METHODS[one].representation != "absolute"]
    if relative and any(head is not None for head in heads):
        able = [one for one in METHODS if METHODS[one].representation == "absolute"]
        raise SpaceError(
            f"heads: expected methods that translate rows, because your heads read rows, got"
            f" {quote(relative)}; choose among {quote(able)}"
        )
    pairs = zip(heads, names, strict=True)
    return [_own_head(head, name, classes) for head, name in pairs]


def _own_head(head: Any, name: str, classes: Sequence[str]) -> OwnHead | None:
    if head is None:
        return None
    if _is_module(head):
        return OwnHead(name, head, np.arange(len(classes)))
    if not hasattr(head, "predict") or not hasattr(head, "classes_"):
        raise SpaceError(
            f"heads: expected a PyTorch module or a fitted classifier of scikit-learn for {name!r:.80}, got"
            f" {type(head).__name__}"
        )
    known = [str(one) for one in np.asarray(head.classes_).tolist()]
    if sorted(known) != sorted(classes):
        raise SpaceError(
            f"heads: expected a head of {name!r:.80} for the classes {quote(list(classes)[:5])}, got"
            f" {quote(known[:5])}"
        )
    return OwnHead(name, head, np.array([known.index(one) for one in classes]))


def _is_module(head: Any) -> bool:
    torch = sys.modules.get("torch")  # a module exists only after torch was imported
    return torch is not None and isinstance(head, torch.nn.Module)


def _scores(head: Any, X: np.ndarray) -> np.ndarray:
    if not _is_module(head):
        if hasattr(head, "predict_proba"):
            return np.asarray(head.predict_proba(X))
        answers = np.asarray(head.predict(X))
        return (answers[:, None] == np.asarray(head.classes_)).astype(np.float32)
    import torch

    from relcore.nn.capture import undisturbed

    tensors = [*head.parameters(), *head.buffers()]
    rows = torch.from_numpy(np.array(X))
    if tensors:
        rows = rows.to(tensors[0].device)
    with undisturbed(head):
        scores = head(rows)
    return np.asarray(scores.float().softmax(dim=-1).cpu())
