"""ResidualAdapter: Procrustes, and a small network that learns what is left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.determinism import reproducible
from relcore.extras import extra
from relcore.migration.adapter import Adapter
from relcore.migration.procrustes import ProcrustesAdapter
from relcore.migration.steps import Residual, Step, Unit
from relcore.similarity import unit_rows

_CHECKED = 5  # every fifth pair stops the training, and is not trained on
_PATIENCE = 30


@dataclass(eq=False)
class ResidualAdapter(Adapter):
    """A residual MLP with one hidden layer on top of centred Procrustes, trained on 1 − cos (as in Drift-Adapter, EMNLP 2025).

    It starts as Procrustes exactly, and every fifth pair decides which epoch is kept: where the network learns nothing that
    holds for these, Procrustes is what is left. Equal settings and pairs give an equal network.

    Parameters
    ----------
    hidden : int
        Width of the hidden layer.
    epochs : int
        At most this number of passes over the pairs.
    rate : float
        Learning rate of Adam.

    Attributes
    ----------
    epoch_ : int
        The epoch that was kept; 0 is Procrustes.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migration.residual import ResidualAdapter
    >>> new = np.random.default_rng(0).normal(size=(200, 4))
    >>> ResidualAdapter().fit(new, np.maximum(new, 0)).epoch_ > 0
    True
    """

    hidden: int = 256
    epochs: int = 200
    rate: float = 3e-3
    random_state: int = 0

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        checked = np.arange(len(new)) % _CHECKED == _CHECKED - 1
        if not checked.any():
            checked[-1] = len(new) > 2
        (start,), (centre,) = ProcrustesAdapter()._solve(new[~checked], old[~checked])
        correction = self._trained(unit_rows(start(new)), centre(old), checked)
        (start,), corpus = ProcrustesAdapter()._solve(new, old)
        return (start, Unit(), correction) if correction else (start,), corpus

    def _trained(self, rows: np.ndarray, old: np.ndarray, checked: np.ndarray) -> Residual | None:
        """The network of the best epoch; None where that is the start."""
        with extra("torch"):
            import torch
        from torch.nn.functional import cosine_similarity

        self.epoch_, width = 0, rows.shape[1]
        if not checked.any():
            return None
        known, wanted, unseen, its = (
            torch.from_numpy(np.ascontiguousarray(part, dtype=np.float32))
            for part in (rows[~checked], old[~checked], rows[checked], old[checked])
        )
        with reproducible(self.random_state):
            inner = torch.nn.Linear(width, self.hidden)
            outer = torch.nn.Linear(self.hidden, width)
            torch.nn.init.zeros_(outer.weight)
            torch.nn.init.zeros_(outer.bias)
            weights = [*inner.parameters(), *outer.parameters()]
            optimiser = torch.optim.AdamW(weights, lr=self.rate, weight_decay=0.01)
            error = lambda X, Y: 1 - cosine_similarity(X + outer(torch.relu(inner(X))), Y).mean()  # noqa: E731
            with torch.no_grad():
                best, kept = float(error(unseen, its)), None
            for epoch in range(1, self.epochs + 1):
                for block in torch.randperm(len(known)).split(256):
                    optimiser.zero_grad()
                    error(known[block], wanted[block]).backward()
                    optimiser.step()
                with torch.no_grad():
                    reached = float(error(unseen, its))
                if reached < best:
                    best, self.epoch_ = reached, epoch
                    kept = [one.detach().numpy().copy() for one in weights]
                elif epoch - self.epoch_ > _PATIENCE:
                    break
        if kept is None:
            return None
        into, into_offset, out, out_offset = kept
        return Residual(np.ascontiguousarray(into.T), into_offset, np.ascontiguousarray(out.T), out_offset)
