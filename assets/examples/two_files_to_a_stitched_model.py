"""From two files of vectors to a stitched model: a head trained on one space classifies the rows of the
other.

    python assets/examples/two_files_to_a_stitched_model.py [first.npz second.npz]

Each file holds `vectors`, `ids` and `labels`, as `relscope encode … -o file.npz` writes them. Without files,
two small networks are trained on the same digits first, including the test rows, so all numbers are
optimistic. Run the whole script, or cell by cell (`# %%`) in an editor with notebook support.
"""

# %% Two files
import os
import subprocess
import sys
from pathlib import Path

from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from relcore import RelativeProjection, Split, load_space, match, select_anchors

paths = sys.argv[1:] or ["digits-1.npz", "digits-2.npz"]
if not all(Path(path).is_file() for path in paths) and not sys.argv[1:]:
    encode = [sys.executable, "-m", "relcore", "encode", "digits", "--encoder", "mlp,cnn", "-o", "digits.npz"]
    subprocess.run(encode, check=True, env=os.environ | {"PYTHONPATH": sys.path[0]})

# %% The rows that both have, by id: about a fifth is held out to test on, and anchors are chosen among the
# others
pair = match(*(load_space(path) for path in paths))
labels = pair.source.labels
split = Split.draw(pair.ids, labels=labels)
train = split.train
test = split.test
anchors = pair.source.rows(select_anchors(pair.source.take(train), 128))
first = pair.source.vectors
second = pair.target.vectors
print(f"{len(train):,} rows to train on, {len(test):,} to test on, {len(set(labels))} classes")

# %% Each space relative to its own anchors, without a look at the other one
relative = [RelativeProjection().fit(X[train], anchors=X[anchors]).transform for X in (first, second)]


# %% A classifier for the first space: what does it say of the second? Rows are centred and scaled to length
# 1, because rows of different encoders differ in length.
def accuracy(trained_on, read):
    mean = trained_on[train].mean(axis=0)
    classifier = LogisticRegression(max_iter=1000).fit(normalize(trained_on[train] - mean), labels[train])
    return classifier.score(normalize(read[test] - mean), labels[test])


not_stitched = accuracy(first, first)
if first.shape[1] == second.shape[1]:
    absolute = accuracy(first, second)
else:
    absolute = float("nan")
stitched = accuracy(relative[0](first), relative[1](second))
print(
    f"not stitched {not_stitched:.3f}; stitched: absolute {absolute:.3f}, relative {stitched:.3f},"
    f" {len(anchors)} anchors"
)
