"""A session in which every text of a user or a file is Markdown, HTML and LaTeX."""

import numpy as np

from app.workspace import Workspace
from relcore.catalog.catalog import SpaceSpec, encoding_specs, renamed_spec
from relcore.catalog.encodings import encode, stored_encodings
from relcore.catalog.renamed import put_pairing
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.sentences import TfidfSvd
from relcore.maps.pane_maps import ViewSpec
from relcore.runs.store import Store

# Without a slash, which no file name has; `MARK` is for all other texts.
FILE_MARK = "![x](evil.png)<img src=x onerror=alert(1)>$x^{$:star:**b**"
MARK = (
    f"{FILE_MARK}![y](http://evil.test/p.png) http://evil.test :material/star: :red[r] $\\frac$"
    " </script><script>alert(2)"
)
SENTENCES = ("the sea and the ships", "the harbour of the sea", "a horse in a field", "the field of a horse")


def hostile_workspace(folder, n=60):
    """A workspace whose spaces have hostile names, ids and labels: two files, one of them also with other ids, a
    file that is missing, and two encodings of a table."""
    rng = np.random.default_rng(0)
    store = Store()
    ids = np.array([f"{MARK} {row}" for row in range(n)])
    labels = np.array([f"{MARK} {'ab'[row % 2]}" for row in range(n)])
    specs = []
    for number in range(2):
        path = folder / f"{FILE_MARK} {number}.npz"
        np.savez(path, vectors=rng.normal(size=(n, 6)).astype(np.float32), ids=ids, labels=labels)
        specs.append(SpaceSpec("file", str(path)))
    pairs = tuple((one, one) for one in ids.tolist())
    renamed = renamed_spec(specs[1], put_pairing(store, pairs), f"{MARK} renamed")
    gone = SpaceSpec("file", str(folder / f"{FILE_MARK} gone.npz"))
    anchors = tuple(ids[:12].tolist())
    table = folder / f"{FILE_MARK} table.csv"
    rows = [f'"{MARK} {SENTENCES[row % 4]} {row}","{MARK} {row % 2}"\n' for row in range(n)]
    table.write_text(f'"{MARK} text","{MARK} label"\n' + "".join(rows), encoding="utf-8")
    spaces = (*specs, renamed, *_encodings(table, store), gone)
    settings = {
        "named_sets": ((MARK, anchors[:3]),),
        "pinned": anchors[:1],
        "k": 3,
        "tags": ((MARK, anchors[:3]),),
    }
    return Workspace(spaces, *specs, anchors, view=ViewSpec(anchors[:2], n_nearest=10), **settings)


def _encodings(table, store):
    dataset = DatasetSpec("file", str(table), column=f"{MARK} text", label_column=f"{MARK} label")
    found = []
    for encoder in (TfidfSvd(4, min_texts=1), TfidfSvd(6, min_texts=1)):
        encode(dataset, encoder, store)
        found += encoding_specs(
            store, dataset, encoder, stored_encodings(store, load_dataset(dataset).digest, encoder)
        )
    return found
