"""How close to each other are the rows that were selected in the app? Draw a lasso, then save the session or
download the table of the selected rows.

    python assets/examples/lasso_in_a_script.py first.npy relscope-session.json
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from relcore import load_space, read_selection

space = load_space(sys.argv[1])
selection = read_selection(sys.argv[2])
vectors = space.vectors[selection.rows_in(space)]
lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
if len(vectors):
    mean = (vectors / lengths).mean(axis=0)
else:
    mean = np.zeros(space.dimension)
# The mean of the cosines of all pairs of rows, including each row with itself.
print(f"{len(vectors):,} rows selected, first {list(selection.ids[:3])}: mean cosine {mean @ mean:.3f}")
