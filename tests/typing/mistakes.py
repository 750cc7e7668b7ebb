"""Six mistakes that mypy and pyright must both find, and nothing else; `check.py` runs them, nobody runs this."""

import numpy as np

from relcore import LatentSpace, Procrustes, linear_cka, match, mrr, select_anchors

X = np.zeros((40, 3))
space = LatentSpace(X, [f"w{row}" for row in range(40)])
linear_cka("first.npy", X)  # mistake: a path is no matrix
mrr(X, X, neighbours=5)  # mistake: the keyword is k
select_anchors(space)  # mistake: how many is missing
print(match(space, space).overlap)  # mistake: a match has no such attribute
Procrustes().fit(X, None)  # mistake: there is no target
ids: list[str] = linear_cka(X, X)  # mistake: a score is a number
