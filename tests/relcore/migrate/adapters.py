"""Adapters of every kind of step, for tests of what is taken away; their numbers are random."""

from dataclasses import dataclass

import numpy as np

from relcore.migrate.adapters import Adapter, AffineStep

NEW, OLD, PROJECTED = 12, 9, 7


@dataclass(eq=False)
class Made(Adapter):
    """Random steps: ``"affine"``, or ``"projected"`` (the corpus, too)."""

    kind: str = "affine"

    def _solve(self, new, old):
        rng = np.random.default_rng(7)

        def drawn(*shape):
            return rng.normal(size=shape).astype(np.float32)

        if self.kind == "projected":
            return (AffineStep(drawn(NEW, PROJECTED), drawn(PROJECTED)),), (
                AffineStep(drawn(OLD, PROJECTED), drawn(PROJECTED)),
            )
        return (AffineStep(drawn(NEW, OLD), drawn(OLD)),), ()


KINDS = ("affine", "projected")


def pairs(n=40):
    """Rows of both models, (n, 12) and (n, 9), of uneven lengths, one of the new ones zero."""
    rng = np.random.default_rng(3)
    new, old = (
        rng.normal(size=(n, width)).astype(np.float32) * rng.uniform(0.1, 30, (n, 1)) for width in (NEW, OLD)
    )
    new[5] = 0
    return new.astype(np.float32), old.astype(np.float32)
