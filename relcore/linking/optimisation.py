"""The method of Cannistraci et al. 2023: anchors that are optimised by gradient descent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relcore.base.environment import torch_name
from relcore.base.errors import extra
from relcore.base.rows import row_blocks, unit_rows
from relcore.engine.device import full_precision
from relcore.linking.clusters import ASSIGNED_BYTES

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class Step:
    """The state of `optimise_anchors` at one step. The arrays are copied from the GPU only when they are
    read, because copying takes longer than the step.

    Attributes
    ----------
    error : float
        The mean squared error before the step.
    anchors : array (k, d_target)
        The unit anchors after the step.
    nearest : array (k,)
        The index of the target row nearest to each anchor.
    returned : array (k,)
        Whether the assignment Π maps this target row back to the source row of the anchor.
    """

    numbers: tuple[Any, Any, Any, Any]

    @property
    def error(self) -> float:
        return float(self.numbers[0])

    @property
    def anchors(self) -> np.ndarray:
        return self._array(1)

    @property
    def nearest(self) -> np.ndarray:
        return self._array(2)

    @property
    def returned(self) -> np.ndarray:
        return self._array(3)

    def _array(self, place: int) -> np.ndarray:
        array: np.ndarray = self.numbers[place].cpu().numpy()
        return array


STEPS = 250  # as in the paper's Table 3 for retrieval; 125 for stitching
MOST_STEPS = 100_000
LEARNING_RATE = 0.02  # as in the paper's Table 3 for retrieval; .05 for stitching


def optimise_anchors(
    source: np.ndarray,
    target: np.ndarray,
    anchors: np.ndarray,
    seeds: np.ndarray,
    *,
    steps: int = STEPS,
    learning_rate: float = LEARNING_RATE,
    random_state: int = 0,
) -> Iterator[Step]:
    """Yield the steps of the optimisation of Cannistraci et al. 2023, which finds target anchors for the
    source rows `anchors` (k,). The first s anchors have known partners, the target rows `seeds` (s,).

    Adam minimises equation 1 over the target anchors, unit vectors Ã (k, d_target). The error is the squared
    difference between the similarities of each unit row y of `target` (m, d_target) to the target anchors, y
    Ãᵀ, and the similarities of the row Π(y) to the source anchors. Π(y) is the row of `source` (n, d_source)
    that is assigned to y, by one Sinkhorn iteration per step.

    The anchors without known partners begin as random directions b. A trivialisation (Casado 2019) keeps them
    on the unit sphere: Adam moves tangent vectors v from 0, and the anchors are exp_b(v) = cos ‖v‖ b + sin
    ‖v‖ v / ‖v‖. The seeds stay fixed. (In the paper, they are optimised as well, but then far fewer anchors
    are found.)
    """
    with extra():
        import torch

    device = torch_name()

    def put(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    X = put(source)
    Y = put(target)
    own = put(anchors)
    seeded = put(seeds)
    initial = np.random.default_rng(random_state).normal(size=(len(anchors) - len(seeds), target.shape[1]))
    known = Y[seeded]
    base = torch.from_numpy(unit_rows(initial)).to(device)
    tangent = torch.zeros_like(base).requires_grad_()
    optimiser = torch.optim.Adam([tangent], lr=learning_rate)
    kind = device.partition(":")[0]
    with full_precision(torch, kind):
        relative = X @ X[own].T
    for _ in range(steps):
        with full_precision(torch, kind):
            other = Y @ torch.cat([known, on_sphere(base, tangent)]).T
            with torch.no_grad():
                order = hard_limit_assignment(relative, other)
            loss = torch.nn.functional.mse_loss(other, relative[order])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                now = torch.cat([known, on_sphere(base, tangent)])
                nearest = torch.argmax(now @ Y.T, dim=1)
        nearest[: len(seeds)] = seeded  # each seed itself, even if another row equals it
        yield Step((loss.detach(), now, nearest, order[nearest] == own))


def on_sphere(base: torch.Tensor, tangent: torch.Tensor) -> torch.Tensor:
    """The exponential map of the unit sphere at `base` (k, d), applied to the part of `tangent` (k, d) that
    is orthogonal to `base`. Arrays are torch tensors.
    """
    import torch

    across = tangent - (tangent * base).sum(dim=1, keepdim=True) * base
    # Tangents begin at 0, where the root has no gradient. With the smallest float added, the gradient is its
    # limit.
    angle = (across.square().sum(dim=1, keepdim=True) + torch.finfo(across.dtype).tiny).sqrt()
    return torch.cos(angle) * base + torch.sinc(angle / torch.pi) * across


def hard_limit_assignment(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """For each row of `target` (m, k), the index of the row of `source` (n, k) that is assigned to it, a
    torch tensor. This is the row in which the target row's column of the transport plan is largest.

    One Sinkhorn iteration with ε → 0 (in the paper 1e-4) on Euclidean distances M has the limit uᵢ = minⱼ
    Mᵢⱼ, vⱼ = minᵢ (Mᵢⱼ − uᵢ). So column j of the plan is largest where Mᵢⱼ − uᵢ is smallest. M is computed in
    blocks of rows.
    """
    import torch

    best = torch.full((len(target),), torch.inf, device=source.device)
    match = torch.zeros(len(target), dtype=torch.int64, device=source.device)
    for block in row_blocks(len(source), max(1, ASSIGNED_BYTES // (4 * len(target)))):
        excess = torch.cdist(source[block], target)
        excess -= excess.min(dim=1, keepdim=True).values
        least, row = excess.min(dim=0)
        better = least < best
        best = torch.where(better, least, best)
        match = torch.where(better, row + block.start, match)
    return match
