"""StitchSpec: every choice of a stitching experiment, as JSON that people can read and edit, and the task that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from relcore.evaluation import TEST_FRACTION
from relcore.names import HEADS, METHODS, STITCHED, STRATEGIES
from relcore.progress import Report, silent
from relcore.spaces import LatentSpace, SpaceError, need_distinct, need_one_of, need_strings
from relcore.stitching.methods import MethodSettings
from relcore.store import Store
from relcore.task import Task

if TYPE_CHECKING:
    from relcore.stitching.classification import SharedRows
    from relcore.stitching.result import StitchResult

# Seconds a row, column and class of a logistic head; a row, epoch and weight of a network: measured on two cores of 2026.
_LOGISTIC, _NETWORK, _BATCH = 2e-8, 3e-10, 1.2e-3
_EPOCHS, _WIDTH = 30, 256


@dataclass(frozen=True)
class StitchSpec(Task["StitchResult"]):
    """Methods, heads, anchors, split, and how often all is drawn again.

    Attributes
    ----------
    methods : tuple of str
        See `names.METHODS`.
    head : str
        See `names.HEADS`.
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

    kind: ClassVar[str] = "stitching"
    result: ClassVar[str] = "relcore.stitching.result:StitchResult"
    version: ClassVar[int] = 3

    methods: tuple[str, ...] = STITCHED
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
        need_distinct("methods", self.methods, METHODS)
        need_distinct("random_states", self.random_states)
        for state in self.random_states:
            if not isinstance(state, int) or state < 0:
                raise SpaceError(f"random_states: expected whole numbers from 0, got {state!r}")
        need_one_of("head", self.head, HEADS)
        need_one_of("strategy", self.strategy, STRATEGIES)
        if not 0 < self.test_fraction < 1:
            raise SpaceError(f"test_fraction: expected a share between 0 and 1, got {self.test_fraction!r}")

    @property
    def title(self) -> str:
        return "Stitching every pair"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        from relcore.stitching.classification import share_rows

        return self.seconds_for(share_rows(spaces, self.order))

    def seconds_for(self, shared: SharedRows) -> float:
        """`seconds` of rows that are shared already; heads are nearly all of it."""
        n, n_classes = len(shared.targets) * (1 - self.test_fraction), len(shared.classes)
        n_anchors = len(self.anchors) or self.n_anchors
        total = 0.0
        for kind in {METHODS[method].heads for method in self.methods}:
            for space in shared.spaces:
                width = space.dimension if kind == "absolute" else n_anchors * (4 if kind == "product" else 1)
                total += self._head_seconds(n, width, n_classes)
        carried = sum(METHODS[method].heads == "absolute" for method in self.methods)
        widest = max(space.dimension for space in shared.spaces)
        total += carried * len(shared.spaces) ** 2 * (0.002 + n_anchors * widest * 2e-7)
        return total * len(self.random_states)

    def _head_seconds(self, n: float, width: int, n_classes: int) -> float:
        if self.head == "logistic":
            return 0.01 + n * width * n_classes * _LOGISTIC
        return 0.2 + _EPOCHS * n * (_BATCH / 128 + _NETWORK * (width + _WIDTH + n_classes) * _WIDTH)

    def run(self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent) -> StitchResult:
        from relcore.stitching.classification import stitch_matrix

        return stitch_matrix(spaces, self, report=report)
