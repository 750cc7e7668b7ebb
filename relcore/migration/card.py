"""Card: what an adapter is, what it was learned from, and how it scored; it travels inside the adapter's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from relcore import __version__
from relcore.migration.adapter import Adapter
from relcore.spaces import SpaceError, need_whole
from relcore.store.digest import digest_of


@dataclass(frozen=True)
class CardScore:
    """A score on held-out rows, with its interval where there is one, and the number of queries behind it."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class Card:
    """What a stranger needs to know before they use an adapter.

    Attributes
    ----------
    adapter : str
        Its method, a name of `relcore.names.ADAPTERS`.
    new_width, old_width, width : int
        Numbers per row of the new model, of the old one, and of the space that is searched.
    n_pairs : int
        Rows that both models have embedded, and from which it was learned.
    new_digest, old_digest : str
        Digests of these rows (`relcore.store.digest.digest_of` of the float32 arrays): equal rows, equal digests.
    commit, version : str
        Of Relscope; the commit is "" outside a checkout.
    """

    adapter: str
    new_width: int
    old_width: int
    width: int
    n_pairs: int
    new_digest: str
    old_digest: str
    new_model: str = ""
    old_model: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    scores: tuple[CardScore, ...] = ()
    date: str = ""
    commit: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        need_whole(self, new_width=1, old_width=1, width=1, n_pairs=2)


def card_of(
    adapter: Adapter,
    new: np.ndarray,
    old: np.ndarray,
    *,
    method: str,
    new_model: str = "",
    old_model: str = "",
    scores: Sequence[CardScore] = (),
    commit: str = "",
) -> Card:
    """The card of an adapter that was fitted on these pairs, new (m, d_new) and old (m, d_old), dated today.

    Raises
    ------
    SpaceError
        The adapter is not fitted, or was fitted on rows of other widths.
    """
    widths = getattr(adapter, "n_features_in_", None), getattr(adapter, "n_features_old_", None)
    if widths != (new.shape[1], old.shape[1]):
        raise SpaceError(
            f"card: expected an adapter fitted on these pairs, of widths {new.shape[1]} and {old.shape[1]}, got one of "
            f"{widths[0]} and {widths[1]}; fit it on them"
        )
    return Card(
        method,
        *widths,
        width=adapter.corpus(old[:1]).shape[1],
        n_pairs=len(new),
        new_digest=digest_of(np.asarray(new, np.float32)),
        old_digest=digest_of(np.asarray(old, np.float32)),
        new_model=new_model,
        old_model=old_model,
        settings=adapter.get_params(),
        scores=tuple(scores),
        date=date.today().isoformat(),
        commit=commit,
        version=__version__,
    )
