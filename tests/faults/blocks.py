"""Work that leaves a line for every block that it computes, so that tests can count what was computed
twice.
"""

import os
import time
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from relcore.encoders.encoder import DatasetSpec, Encoder

DIGITS = DatasetSpec("digits", limit=500)
ROWS = 20  # of a block
N_BLOCKS = 25


@dataclass(frozen=True)
class Pixels(Encoder):
    """Pixels; writes its process id and what tells the block, and takes its time: from the fifth on until
    `gate` is there.
    """

    log: str
    pause: float = 0.0
    gate: str = ""

    kind: ClassVar = "images"
    title: ClassVar = "Pixels"

    def prepare(self, dataset, report):
        def encode(images):
            rows = np.stack([np.asarray(image, dtype=np.float32).ravel() for image in images])
            with open(self.log, "a") as file:
                file.write(f"{os.getpid()} {zlib.crc32(rows)}\n")
            time.sleep(self.pause)
            while self.gate and len(lines(self.log)) >= 5 and not Path(self.gate).exists():
                time.sleep(0.01)
            return {"": rows}

        return encode


def lines(log):
    return [line.split() for line in Path(log).read_text().splitlines()] if Path(log).exists() else []


def computed_twice(log):
    return sum(n - 1 for n in Counter(block for _, block in lines(log)).values())
