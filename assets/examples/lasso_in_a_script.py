"""Draw a lasso in the app, and this script prints how close the selected rows are to each other in a file of
vectors.

    relscope app first.npy second.npy --print-selection | python assets/examples/lasso_in_a_script.py
    first.npy

It waits for the next lasso until the app is stopped.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from relcore import load_space, read_selections

space = load_space(sys.argv[1])
for selection in read_selections(sys.stdin):
    vectors = space.vectors[selection.rows_in(space)]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    mean = (vectors / lengths).mean(axis=0) if len(vectors) else np.zeros(space.dimension)
    # The mean of the cosines of all pairs of rows, each with itself among them.
    print(
        f"{len(vectors):,} rows selected, first {list(selection.ids[:3])}: mean cosine {mean @ mean:.3f}",
        flush=True,
    )
