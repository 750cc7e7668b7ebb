"""``python -m benchmarks.stitching [digits] [wikipedia]``: what is left of a head's accuracy on another
encoder, by method.

Encodings are kept in the store (RELSCOPE_STORE) and made where they are missing: half a minute for the
digits, some minutes for the sentences.
"""

from __future__ import annotations

import sys
import time

from relcore.base.names import METHODS
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.small_vision import SmallVision, held_out_rows
from relcore.encoders.transformers import MiniLM
from relcore.encoders.wikipedia import TASK
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.stitch.methods import MethodSettings
from relcore.stitch.stitching import StitchSpec, stitch_matrix


def digits(store: Store) -> tuple[list[LatentSpace], StitchSpec]:
    """Four architectures; tested on the fifth of the rows that none of them was trained on."""
    spaces = [
        encode(DatasetSpec("digits"), SmallVision(name), store)[0]
        for name in ("mlp", "cnn", "residual", "vit")
    ]
    test_ids = tuple(spaces[0].ids[held_out_rows(len(spaces[0]))])
    settings = MethodSettings(omega=8, delta=0.65)
    return spaces, StitchSpec(
        tuple(METHODS), n_anchors=128, test_ids=test_ids, random_states=(0, 1, 2), settings=settings
    )


def wikipedia(store: Store) -> tuple[list[LatentSpace], StitchSpec]:
    """LSA and three layers of MiniLM on the sentences of 16 articles; a fifth of each is tested on."""
    spaces = [*encode(TASK, TfidfSvd(), store), *encode(TASK, MiniLM((2, 4, 6)), store)]
    return spaces, StitchSpec(tuple(METHODS), n_anchors=768)


TASKS = {"digits": digits, "wikipedia": wikipedia}


def main() -> int:
    for name in sys.argv[1:] or TASKS:
        spaces, spec = TASKS[name](Store())
        started = time.perf_counter()
        result = stitch_matrix(spaces, spec)
        seconds = time.perf_counter() - started
        print(
            f"## {name}\n\nMean over the stitched pairs of {', '.join(result.encoders)};"
            f" {len(spec.random_states)} random state(s), {spec.n_anchors} anchors, {spec.head} heads, chance"
            f" {result.chance():.3f}; {seconds:.1f} s.\n"
        )
        print("| method | stitched | not stitched | pairs |\n|---|---:|---:|---:|")
        for row in result.summary().query("metric == 'accuracy'").itertuples():
            stitched = f"{row.stitched:.3f} ± {row.stitched_deviation:.3f}"
            print(
                f"| {row.method} | {stitched} | {row.own:.3f} ± {row.own_deviation:.3f} | {row.pairs} of"
                f" {row.of} |"
            )
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
