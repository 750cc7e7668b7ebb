"""``python -m benchmarks.watching --batches 1200 --frames 30 --rounds 5``: what it costs to watch a training, as the
time with `relcore.watch` by that without it, in turns, and from how many batches on 60 frames cost at most 3 %.
With ``--budget 0.03``, `relcore.watch` leaves out frames to keep that share, as it does by default.

"pictures" is a CNN of two convolutions for pictures of 28 × 28, "bundled" the one that Relscope trains on the digits
of 8 × 8. Batches have 64 pictures, the probe has 500 rows, two layers are kept. Times are of the processor: neither
other work on the machine counts nor waiting for the disk. Give OMP_NUM_THREADS=1 on a machine that is busy.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import relcore

_FRAMES = 60  # the most that `relcore.watch` keeps
_SHARE = 0.03
_SIDES = {"pictures": 28, "bundled": 8}


def network(kind: str) -> tuple[Any, list[str]]:
    """A new network, and the two layers that are watched."""
    from torch import nn

    if kind == "bundled":
        from relcore.encoders.vision_networks import small_network

        encoder = small_network("cnn", 1, (8, 8), 64)
        return nn.Sequential(encoder, nn.Linear(64, 10)), ["0", "1"]
    layers = [
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        nn.Linear(32 * 49, 10),
    ]
    return nn.Sequential(*layers), ["3", "6"]


def seconds(
    kind: str, n_batches: int, n_frames: int, folder: Path | None, budget: float | None = None
) -> tuple[float, int]:
    """The processor's seconds of one training, watched if there is a folder, and the number of its frames."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    side = _SIDES[kind]
    pictures = torch.rand(2048, 1, side, side)
    labels = torch.randint(0, 10, (2048,))
    model, layers = network(kind)
    optimizer = torch.optim.AdamW(model.parameters())
    run: Any = nullcontext()
    if folder:
        run = relcore.watch(
            folder, model, pictures[:500], layers, steps=n_frames, total=n_batches, budget=budget
        )
    start = time.process_time()
    with run:
        for number in range(n_batches):
            rows = torch.arange(64) + 64 * (number % 32)
            loss = nn.functional.cross_entropy(model(pictures[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if folder:
                run.step(loss=loss)
    taken = time.process_time() - start
    if not folder:
        return taken, 0
    return taken, len(run.open())


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.watching",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--network", choices=_SIDES, default="pictures")
    parser.add_argument("--batches", type=int, default=1200)
    parser.add_argument("--frames", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float)
    options = parser.parse_args()
    sizes = options.network, options.batches, options.frames
    ratios = []
    of_a_frame = []
    warnings.simplefilter("ignore")  # that of frames that are left out; their number is printed
    with tempfile.TemporaryDirectory() as folder:
        seconds(options.network, 10, 2, Path(folder, "first"))  # what the first call imports
        for number in range(options.rounds):
            (alone, _) = seconds(*sizes, None)
            (watched, n_frames) = seconds(*sizes, Path(folder, str(number)), options.budget)
            ratios.append(watched / alone)
            of_a_frame.append((watched - alone) / n_frames / (alone / options.batches))
            print(
                f"{alone:.2f} s alone, {watched:.2f} s with {n_frames} frames: {ratios[-1]:.3f}", flush=True
            )
    cost = median(of_a_frame)
    print(
        f"median ratio {median(ratios):.3f}; a frame costs {cost:.1f} batches of training"
        f" ({min(of_a_frame):.1f} to {max(of_a_frame):.1f} in {options.rounds} rounds);"
        f" {_FRAMES} frames cost at most {_SHARE:.0%} from {_FRAMES * cost / _SHARE:,.0f} batches on"
    )


if __name__ == "__main__":
    main()
