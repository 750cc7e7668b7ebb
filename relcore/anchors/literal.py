"""Anchor optimisation as published (Cannistraci et al. 2023, Alg. 1 and Table 3), the transport plan in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from relcore.similarity import row_blocks

BLOCK_BYTES = 64 * 2**20
STEPS, LEARNING_RATE = 250, 0.02  # of Table 3, retrieval


@dataclass(frozen=True, eq=False)
class LiteralStep:
    """One step of Adam: the loss, the target row nearest to each anchor, and what it takes to go on from here."""

    number: int
    loss: float
    nearest: np.ndarray
    state: Mapping[str, np.ndarray]


def optimise_anchors(
    source: np.ndarray,
    target: np.ndarray,
    anchors: np.ndarray,
    seeds: np.ndarray,
    *,
    steps: int = STEPS,
    learning_rate: float = LEARNING_RATE,
    random_state: int = 0,
    device: str = "auto",
    state: Mapping[str, np.ndarray] | None = None,
) -> Iterator[LiteralStep]:
    """Find target anchors for the source rows `anchors` (k,), of which the first have the target rows `seeds` (s,).

    The other target anchors begin as N(0, 1), are held at length 1 and moved by Adam, so that the relative rows of unit rows
    source (n, d_source) and target (m, d_target) agree in the mean square once the target's are permuted by one Sinkhorn
    iteration. To resume give the `state` of the last finished step.
    """
    import torch

    device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    X, Y = (torch.from_numpy(np.ascontiguousarray(rows)).to(device) for rows in (source, target))
    known = Y[torch.from_numpy(seeds).to(device)]
    noise = np.random.default_rng(random_state).normal(size=(len(anchors) - len(seeds), target.shape[1]))
    begun = {"free": noise, "first": np.zeros_like(noise), "second": np.zeros_like(noise), "step": np.array(0)}
    held = {name: torch.tensor(np.array(array), dtype=torch.float32, device=device) for name, array in (state or begun).items()}
    free = held["free"].requires_grad_()
    optimiser = torch.optim.Adam([free], lr=learning_rate)
    if int(held["step"]):
        optimiser.state[free] = {"step": held["step"].cpu(), "exp_avg": held["first"], "exp_avg_sq": held["second"]}
    relative = X @ X[torch.from_numpy(anchors).to(device)].T
    for number in range(int(held["step"]) + 1, steps + 1):
        found = torch.cat([known, torch.nn.functional.normalize(free, dim=1)])
        other = Y @ found.T
        with torch.no_grad():
            order = hard_limit_assignment(relative, other)
        loss = torch.nn.functional.mse_loss(other[order], relative)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            now = torch.cat([known, torch.nn.functional.normalize(free, dim=1)])
            nearest = torch.argmax(now @ Y.T, dim=1)
        nearest[: len(seeds)] = torch.from_numpy(seeds).to(device)  # of equal rows the seed, not its twin
        moments = optimiser.state[free]
        saved = {"free": free, "first": moments["exp_avg"], "second": moments["exp_avg_sq"], "step": moments["step"]}
        arrays = {name: tensor.detach().cpu().numpy().copy() for name, tensor in saved.items()}
        yield LiteralStep(number, float(loss.detach()), nearest.cpu().numpy(), arrays)


def hard_limit_assignment(source, target):
    """Row of `target` (m, k) for each row of `source` (n, k), both torch: the largest entry of a row of the transport plan.

    One Sinkhorn iteration with ε → 0 (published: 1e-4) on Euclidean distances M has the limit uᵢ = minⱼ Mᵢⱼ,
    vⱼ = minᵢ (Mᵢⱼ − uᵢ), matchᵢ = argminⱼ (Mᵢⱼ − uᵢ − vⱼ). Two passes over blocks of distances; M is never held.
    """
    import torch

    size = max(1, BLOCK_BYTES // (4 * len(target)))
    slack = torch.full((len(target),), torch.inf, device=source.device)
    for block in row_blocks(len(source), size):
        distances = torch.cdist(source[block], target)
        distances -= distances.min(dim=1, keepdim=True).values
        torch.minimum(slack, distances.min(dim=0).values, out=slack)
    match = torch.empty(len(source), dtype=torch.int64, device=source.device)
    for block in row_blocks(len(source), size):
        match[block] = (torch.cdist(source[block], target) - slack).argmin(dim=1)
    return match
