"""``python -m benchmarks.watching --batches 600 --frames 6 --rounds 3``: what it costs to watch a training, as the
time with `relcore.watch` by that without it, in turns.

A CNN of two convolutions is trained on random pictures of 28 × 28, in batches of 64; the probe has 500 rows, two
layers are kept. Times are of the processor: neither other work on the machine counts nor waiting for the disk.
6 frames in 600 batches cost what 60 cost in 6,000.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import relcore

_LAYERS = ["3", "6"]


def seconds(n_batches: int, n_frames: int, watched: bool, folder: Path) -> float:
    """The processor's seconds of one training."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    pictures = torch.rand(2048, 1, 28, 28)
    labels = torch.randint(0, 10, (2048,))
    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        nn.Linear(32 * 49, 10),
    )
    optimizer = torch.optim.Adam(model.parameters())
    run: Any = nullcontext()
    if watched:
        run = relcore.watch(folder, model, pictures[:500], _LAYERS, steps=n_frames, total=n_batches)
    start = time.process_time()
    with run:
        for number in range(n_batches):
            rows = torch.arange(64) + 64 * (number % 32)
            loss = nn.functional.cross_entropy(model(pictures[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if watched:
                run.step(loss=loss)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.watching",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--batches", type=int, default=600)
    parser.add_argument("--frames", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sizes = options.batches, options.frames
    ratios = []
    of_a_frame = []
    with tempfile.TemporaryDirectory() as folder:
        seconds(10, 2, True, Path(folder, "first"))  # what the first call imports
        for number in range(options.rounds):
            alone = seconds(*sizes, False, Path(folder))
            watched = seconds(*sizes, True, Path(folder, str(number)))
            ratios.append(watched / alone)
            of_a_frame.append((watched - alone) / options.frames / (alone / options.batches))
            print(f"{alone:.2f} s alone, {watched:.2f} s watched: {ratios[-1]:.3f}", flush=True)
    print(f"median ratio {median(ratios):.3f}; a frame costs {median(of_a_frame):.1f} batches of training")


if __name__ == "__main__":
    main()
