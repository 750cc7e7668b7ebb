"""StitchSpec: every choice of a stitching experiment, as JSON that people can read and edit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from relcore.evaluation import TEST_FRACTION
from relcore.names import HEADS, METHODS, STRATEGIES
from relcore.spaces import SpaceError, need_one_of, need_strings
from relcore.stitching.methods import MethodSettings


@dataclass(frozen=True)
class StitchSpec:
    """Methods, heads, anchors, split, and how often all is drawn again.

    Attributes
    ----------
    methods : tuple of str
        See `methods.METHODS`.
    head : {"logistic", "mlp", "paper"}
    random_states : tuple of int
        Each draws the test rows, the anchors, the prunings and a network's first weights; what is given here stays as it is.
    n_anchors, strategy : int, str
        Anchors chosen among the training rows of the first encoder; see `select_anchors`.
    anchors : tuple of str
        Anchors by id instead; no anchor is tested.
    test_fraction : float
        Share of the rows; each is drawn by a hash of its id, so the share is met on average.
    test_ids : tuple of str
        Test rows by id instead, apart from anchors; all others are trained on.
    order : tuple of str
        Labels from low to high, where they have an order: errors are then counted in steps, too.
    settings : MethodSettings
    """

    methods: tuple[str, ...] = ("absolute", "relative", "whitened", "irp-pruned", "irp-whitened", "procrustes")
    head: str = "logistic"
    random_states: tuple[int, ...] = (0,)
    n_anchors: int = 300
    strategy: str = "random"
    anchors: tuple[str, ...] = ()
    test_fraction: float = TEST_FRACTION
    test_ids: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    settings: MethodSettings = MethodSettings()

    def __post_init__(self) -> None:
        for name in ("anchors", "test_ids", "order"):
            need_strings(name, getattr(self, name))
        for name, least in (("methods", "method"), ("random_states", "random state")):
            values = getattr(self, name)
            if not isinstance(values, tuple) or not values or len(set(values)) < len(values):
                raise SpaceError(f"{name}: expected at least one {least}, none twice, got {values!r}")
        for method in self.methods:
            need_one_of("methods", method, METHODS)
        for state in self.random_states:
            if not isinstance(state, int) or state < 0:
                raise SpaceError(f"random_states: expected whole numbers from 0, got {state!r}")
        need_one_of("head", self.head, HEADS)
        need_one_of("strategy", self.strategy, STRATEGIES)
        if not 0 < self.test_fraction < 1:
            raise SpaceError(f"test_fraction: expected a share between 0 and 1, got {self.test_fraction!r}")

    def to_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> StitchSpec:
        """The spec of such a dict; what is missing takes its default.

        Raises
        ------
        SpaceError
            Unknown settings, or values that cannot be.
        """
        try:
            return _made(cls, {**record, "settings": _made(MethodSettings, record.get("settings", {}))})
        except (TypeError, AttributeError) as error:
            raise SpaceError(f"stitching: a setting is misplaced or of the wrong type ({error})") from error


def _made(kind: type, record: Mapping[str, Any]) -> Any:
    known = [field.name for field in fields(kind)]
    if unknown := set(record) - set(known):
        raise SpaceError(f"expected settings among {', '.join(known)}, got {', '.join(sorted(unknown))}")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in record.items()})
