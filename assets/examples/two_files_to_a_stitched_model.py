"""From two files of vectors to a stitched model: a head trained on one space classifies the rows of the
other.

    python assets/examples/two_files_to_a_stitched_model.py [first.npz second.npz]

Each file holds `vectors`, `ids` and `labels`, as `relscope encode … -o file.npz` writes them. Without files,
two small networks are trained on the same digits first, including the test rows, so all numbers are
optimistic. Run the whole script, or cell by cell (`# %%`) in an editor with notebook support.
"""

# %% Two files
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from relcore import RelativeProjection, StitchSpec, load_space, match
from relcore.cli import main
from relcore.represent.heads import fit_head
from relcore.stitch.classifiers import split_rows
from relcore.stitch.shared_rows import share_rows

paths = sys.argv[1:] or ["digits-1.npz", "digits-2.npz"]
if not all(Path(path).is_file() for path in paths) and not sys.argv[1:]:
    main(["encode", "digits", "--encoder", "mlp,cnn", "-o", "digits.npz"])

# %% The rows that both have, by id: about a fifth is held out to test on, and anchors are chosen among the
# others
pair = match(*(load_space(path) for path in paths))
rows = share_rows([pair.source, pair.target])
split = split_rows(rows, StitchSpec(n_anchors=128), random_state=0)
train = split.known
test = split.test
anchors = split.anchors
first, second = (space.vectors for space in rows.spaces)
print(f"{len(train):,} rows to train on, {len(test):,} to test on, {len(rows.classes)} classes")

# %% Each space relative to its own anchors, without a look at the other one
relative = [RelativeProjection().fit(X[train], anchors=X[anchors]).transform for X in (first, second)]


# %% A head for the first space: what does it say of the second?
def accuracy(trained_on, read):
    head = fit_head(trained_on[train], rows.targets[train], len(rows.classes))
    return (head.probabilities(read[test]).argmax(axis=1) == rows.targets[test]).mean()


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
