"""Write the corpus of an earlier version: every figure's recipe with its numbers, a session file, permalinks
and specs.

Run it once, in a checkout of that version (this one is for 0.1.0, commit 0b21b84)::

    cd <checkout> && PYTHONPATH=. RELSCOPE_STORE=<empty folder> python <this file> <folder to write to>

Do not run it again to make a test pass: the files are what users of that version have on their disks.
"""

import copy
import hashlib
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from app.workspace import Workspace, to_query, to_session_file
from relcore.base.errors import SpaceError
from relcore.base.names import STUDIES
from relcore.catalog.catalog import SpaceSpec, encoding_key, encoding_spec, load, renamed_spec
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import encoder_from_json, encoder_to_json
from relcore.encoders.parallel import load_parallel
from relcore.experiments.inversion import InversionSpec
from relcore.experiments.pictures import PictureSpec
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import ViewSpec
from relcore.recipes.figures import _ELSEWHERE, _FIGURES, exportable
from relcore.recipes.try_it import _to_json as item_json
from relcore.runs.store import Store
from relcore.scores.comparison import ProjectionSpec
from relcore.spaces.space import match
from relcore.stitch.stitching import StitchSpec
from relcore.stitching.autoencoders import AutoencoderSpec
from relcore.studies.study import StudySpec, study_of

QUICK = 0.3  # seconds of this process in which a changed recipe must be refused or drawn to be kept


def write_files(folder):
    """Three small spaces that share most of their ids, two of them of one width, and the same texts in two
    languages.
    """
    rng = np.random.default_rng(11)
    n, classes = 90, np.array(["ant", "bee", "cat"])
    kinds = rng.integers(0, 3, n)
    latent = rng.normal(size=(3, 6))[kinds] * 1.5 + rng.normal(size=(n, 6))
    ids = np.array([f"item {row}" for row in range(n)])
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    made = {
        "a": (latent, slice(0, 84)),
        "b": (latent @ rotation + 0.05 * rng.normal(size=(n, 6)), slice(6, 90)),
        "c": (np.tanh(latent @ rng.normal(size=(6, 8)) / 3), slice(3, 87)),
    }
    for name, (vectors, rows) in made.items():
        columns = {"id": ids[rows], "label": classes[kinds[rows]]}
        columns |= {f"x{i}": np.round(vectors[rows, i], 4) for i in range(vectors.shape[1])}
        pd.DataFrame(columns).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
    sentences = load_parallel(("en", "es"))
    lengths = [
        "question" if "?" in text else "long" if len(text) > 30 else "short" for text in sentences["en"]
    ]
    table = pd.DataFrame(sentences | {"length": lengths})[:160]
    table.to_csv(folder / "sentences.csv", index=False, lineterminator="\n")


def encoded(dataset, encoder):
    """The spec of the only space that this encoder makes of it, encoded now."""
    (space,) = encode(dataset, encoder, Store())
    key = encoding_key(load_dataset(dataset).digest, encoder)
    return encoding_spec(dataset, encoder, "", key, space.name)


def encoder(name, **settings):
    return encoder_from_json({"encoder": name, **settings})


def asked():
    """Name → a recipe as a person would write it; settings that are left out take their defaults."""
    files = [SpaceSpec("file", f"files/{name}.csv") for name in "abc"]
    spaces = [load(spec) for spec in files]
    a, b, c = (spec.to_json() for spec in files)
    digests = [space.digest for space in spaces]
    pair = match(spaces[0], spaces[1])
    anchors = [f"item {row}" for row in range(10, 42, 2)]
    seen = {
        "source": a,
        "target": b,
        "anchors": anchors,
        "view": {"pivots": ["item 12", "item 30"], "n_nearest": 9},
    }
    seen |= {"source_digest": pair.source.digest, "target_digest": pair.target.digest}
    two, three = {"spaces": [a, b], "digests": digests[:2]}, {"spaces": [a, b, c], "digests": digests}
    words = {"source": {"source": "bundled", "name": "word2vec-novels", "limit": 600}}
    words |= {"target": {"source": "bundled", "name": "fasttext-novels", "limit": 600}}
    shown = words | {"view": {"pivots": ["water"]}, "anchors": ["good", "night", "water", "hand", "eyes"]}
    stitching = {
        "methods": ["absolute", "relative", "irp-pruned", "procrustes"],
        "n_anchors": 16,
        "random_states": [0, 1],
    }
    ordered = {"order": ["ant", "bee", "cat"]}
    small = {"width": 8, "epochs": 1}
    digits = DatasetSpec("digits", limit=150)
    inverted = DatasetSpec("digits", limit=150, options=(("look", "inverted"),))
    networks = [encoder("small-vision", architecture=name, **small) for name in ("cnn", "mlp")]
    pictures = [encoded(digits, network) for network in networks]
    texts = [
        DatasetSpec("file", "files/sentences.csv", column=language, label_column="length")
        for language in ("en", "es")
    ]
    lsa = encoder("tfidf-svd", n_components=8, min_texts=1)
    languages = [encoded(text, lsa) for text in texts]
    spoken = {
        "spaces": [one.to_json() for one in languages],
        "digests": [load(one).digest for one in languages],
    }
    drawn = {"spaces": [one.to_json() for one in pictures], "digests": [load(one).digest for one in pictures]}
    image = load_dataset(digits).item(3)
    autoencoders = {
        "pictures": asdict(PictureSpec(digits, 60, 20)) | {"dataset": digits.to_json()},
        "random_states": [0, 1],
        "n_anchors": 12,
        "dataset_digest": load_dataset(digits).digest,
    }
    models = [
        AutoencoderSpec(form, own, 8, epochs=1) for form in ("absolute", "relative") for own in (False, True)
    ]
    sentences = load_parallel(("en", "es"))
    known = [
        list(one) for one in zip(*(sentences[language][200:260] for language in ("en", "es")), strict=True)
    ]
    bootstrap = {"n_anchors": 80, "n_seeds": 10, "rows": 500, "random_state": 1}
    by_paper = {
        "method": "paper",
        "n_anchors": 30,
        "n_seeds": 12,
        "steps": 6,
        "rows": 200,
        "learning_rate": 0.05,
    }
    translated = {
        "anchors": anchors,
        "spec": {"methods": ["absolute", "irp-pruned", "procrustes"], "n_queries": 30},
    }
    crossed = {
        "methods": ["irp-pruned", "procrustes"],
        "n_anchors": 12,
        "random_states": [0, 1],
        "settings": {"delta": 0.3},
    }
    domains = {"domain_names": ["one", "other"], "encoder_names": ["E", "F"], "anchors": anchors}
    seeds = StudySpec.of(
        study_of("seed-count"), {"seeds": [0, 8], "rows": [500], "methods": ["self-learning"], "n_states": 3}
    )
    return {
        "comparison": seen,
        "comparison-whitened": (
            seen
            | {
                "panes": ["absolute", "whitened"],
                "projection": asdict(ProjectionSpec("angular", True, 0.5)),
                "view": asdict(ViewSpec(("item 12", "item 20"), 10, True, "labels", True)),
                "reduction": asdict(ReductionSpec(fit="first", align=True)),
            }
        ),
        "comparison-umap": shown | {"reduction": {"method": "umap", "n_neighbors": 8}},
        "comparison-tsne": shown | {"reduction": {"method": "tsne", "max_points": 60}},
        "scores": seen | {"k": 5, "convention": "mutual"},
        "scores-words": shown | {"k": 10, "n_queries": 100},
        "spectrum": seen,
        "norms": {"spaces": [a, b, c]},
        "training": {"spaces": drawn["spaces"]},
        "all-pairs": three | {"metric": "cka"},
        "all-pairs-relative": three | {"metric": "relative cosine", "anchors": anchors, "grouped": True},
        "all-pairs-neighbours": three | {"metric": "mutual knn", "k": 5, "n_queries": 40},
        "reconstruction": (
            autoencoders
            | {
                "models": [asdict(model) for model in models],
                "encoder_state": 1,
                "decoder_state": 0,
            }
        ),
        "reconstruction-mse": autoencoders | {"models": [asdict(model) for model in models]},
        "plane-codes": (
            autoencoders
            | {
                "models": [asdict(AutoencoderSpec(width=2, epochs=1))],
                "reference_state": 0,
                "moving_state": 1,
            }
        ),
        "bootstrap": words | {"bootstrap": bootstrap, "digests": ["", ""]},
        "bootstrap-paper": {
            "source": a,
            "target": b,
            "bootstrap": by_paper | {"rows": 60},
            "digests": digests[:2],
        },
        "bootstrap-scores": words | {"bootstrap": bootstrap},
        "layers": (
            three
            | {
                "rows": [0, 1],
                "columns": [1, 2],
                "metric": "cka",
                "stitching": stitching | {"methods": ["relative"]},
            }
        ),
        "layers-relative": (
            three | {"rows": [0], "columns": [1, 2], "metric": "relative cosine", "anchors": anchors}
        ),
        "layers-neighbours": (
            three | {"rows": [0, 1], "columns": [2], "metric": "mutual knn", "k": 5, "n_queries": 30}
        ),
        "stitch-matrix": three | {"stitching": stitching | ordered},
        "stitch-matrix-gap": (
            two
            | {
                "stitching": {"anchors": anchors, "head": "mlp", "methods": ["relative"]},
                "metric": "f1",
                "show": "gap",
            }
        ),
        "stitch-confusion": two | {"stitching": stitching, "method": "relative", "encoder": 0, "head": 1},
        "study": {"study": seeds.to_json(), "chart": ""},
        "inversion": seen,
        "inversion-labels": (
            seen | {"inversion": asdict(InversionSpec("backward", "ridge", 4, 0.5)), "color_by": "labels"}
        ),
        "inversion-errors": seen | {"inversion": asdict(InversionSpec("within", "whitened"))},
        "inversion-grid": seen | {"sweep": {"deltas": [0.0, 0.4, 0.8], "omegas": [1, 4]}},
        "inversion-grid-condition": (
            seen
            | {
                "measure": "condition",
                "sweep": {"deltas": [0.2, 0.6], "omegas": [1, 2], "route": "within", "n_rows": 40},
            }
        ),
        "inversion-lengths": {"spaces": [a, c]},
        "rescale-input": {
            "spaces": [a],
            "digests": digests[:1],
            "spec": {"networks": ["relu", "layernorm"], "n_alphas": 5},
        },
        "rescale-layers": {
            "dataset": digits.to_json(),
            "encoder": encoder_to_json(encoder("small-vision", architecture="vit", **small)),
            "spec": {"n_train": 60, "n_test": 20, "span": 4.0, "n_alphas": 3},
        },
        "translation-table": three | translated,
        "translation-table-accuracy": two | translated | {"metric": "accuracy"},
        "cross-domain": {
            "datasets": [digits.to_json(), inverted.to_json()],
            "encoders": [encoder_to_json(networks[1])],
            "anchor_dataset": 0,
            "spec": crossed,
            "method": "procrustes",
        },
        "cross-domain-spaces": (
            two | domains | {"spec": crossed, "test_ids": [f"item {row}" for row in range(50, 80, 3)]}
        ),
        "try-it": spoken | {"stitching": stitching | {"methods": ["relative"]}, "text": sentences["en"][5]},
        "try-it-picture": drawn | {"stitching": stitching | {"methods": ["relative"]}, **item_json(image)},
        "cross-lingual": (
            spoken
            | {"retrieval": {"methods": ["absolute", "relative", "procrustes"], "n_anchors": 60, "k": 5}}
        ),
        "cross-lingual-pairs": (
            two
            | {
                "retrieval": {"methods": ["relative"], "n_anchors": 20},
                "pairs": [[f"item {i}", f"item {i}"] for i in range(8, 80)],
            }
        ),
        "across-languages": spoken | {"stitching": {"methods": ["relative", "procrustes"]}, "pairs": known},
        "zero-shot": {
            "spaces": drawn["spaces"][:1],
            "digests": drawn["digests"][:1],
            "encoder": encoder_to_json(encoder("pooled-words")),
            "captions": {"n_pairs": 60, "keep": 20},
        },
    }


def figure_of(name):
    """The kind of figure that a name of the corpus begins with."""
    return max((kind for kind in (*_FIGURES, *_ELSEWHERE) if (name + "-").startswith(kind + "-")), key=len)


def rounded(table):
    """The plotted numbers with 8 digits."""
    return table.to_csv(index=False, lineterminator="\n", float_format="%.8g")


def changes(recipe, path=()):
    """(path, what): settings added, left out, or of another type."""
    yield [*path, "unknown_setting"], "add"
    for name, value in recipe.items():
        if name in ("relscope", "figure", "options"):
            continue
        if not path:
            yield [name], "drop"
            yield [name], "number"
        if isinstance(value, dict):
            yield from changes(value, [*path, name])
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from changes(value[0], [*path, name, 0])


def changed(recipe, path, what):
    recipe = copy.deepcopy(recipe)
    inner = recipe
    for step in path[:-1]:
        inner = inner[step]
    if what == "drop":
        del inner[path[-1]]
    else:
        inner[path[-1]] = 3
    return recipe


def outcome(recipe):
    """ "refused" by a SpaceError, the digest of the recipe that the figure then writes, or None for all
    else.
    """
    started = time.process_time()
    try:
        found = exportable(recipe)
        found = hashlib.blake2b(found.bytes("json"), digest_size=8).hexdigest()
    except SpaceError:
        found = "refused"
    except Exception:  # not a promise
        return None
    return found if time.process_time() - started < QUICK else None


def specs():
    """Records of what recipes are made of, kind by kind."""
    digits = DatasetSpec("digits")
    base = SpaceSpec("file", "files/a.csv", 50, (("id_column", "id"), ("label_column", "label")))
    datasets = [
        digits,
        DatasetSpec("digits", limit=100, options=(("look", "inverted"),)),
        DatasetSpec("wikipedia", options=(("articles", 16), ("fewest", 250), ("per_article", 400))),
        DatasetSpec("parallel", "es"),
        DatasetSpec(
            "file", "files/sentences.csv", column="en", label_column="length", options=(("empty", "drop"),)
        ),
        DatasetSpec("folder", "pictures", "train", limit=20),
        DatasetSpec("huggingface", "fancyzhx/ag_news", "test", "text", "label", 100, (("config", "plain"),)),
        DatasetSpec("planetoid", "Cora", options=(("folder", "graphs"),)),
    ]
    encoders = [
        encoder("small-vision"),
        encoder(
            "small-vision",
            architecture="vit",
            width=32,
            epochs=3,
            random_state=5,
            image_size=16,
            train_rows=100,
        ),
        encoder("swept-vision"),
        encoder(
            "swept-vision",
            architecture="cnn",
            activation="tanh",
            dropout=0.1,
            optimizer="sgd",
            learning_rate=0.05,
        ),
        encoder("pretrained-vision", model="facebook/dinov2-small", layers=[4, 8, 12], pooling="cls"),
        encoder("timm", model="resnet18"),
        encoder("pretrained-text", model="roberta-base", layers=[-1, 6], pooling="cls", max_tokens=64),
        encoder("minilm"),
        encoder("minilm", layers=[2, 4, 6]),
        encoder("tfidf-svd", n_components=64),
        encoder("pooled-words", words="fasttext-novels", weighting="idf"),
        encoder("graph"),
        encoder("graph", architecture="gin", layers=3, keep="last", learning_rate=0.01),
    ]
    spaces = [
        SpaceSpec("bundled", "word2vec-novels", 2000),
        SpaceSpec("gensim-data", "glove-wiki-gigaword-50"),
        base,
        renamed_spec(base, "0" * 32, "renamed"),
        encoding_spec(datasets[1], encoders[1], "", "1" * 32, "ViT 32 · digits"),
        encoding_spec(datasets[3], encoders[8], "layer 4", "2" * 32, "MiniLM, layer 4 · everyday/es"),
    ]
    studies = [StudySpec.of(study_of(kind)) for kind in STUDIES]
    return {
        "space": [one.to_json() for one in spaces],
        "dataset": [one.to_json() for one in datasets],
        "encoder": [encoder_to_json(one) for one in encoders],
        "study": [one.to_json() for one in studies],
        "stitching": [
            StitchSpec().to_json(),
            StitchSpec(("relative",), "mlp", (1, 2), anchors=("x", "y"), test_ids=("z",)).to_json(),
        ],
    }


def sessions():
    """Name → (workspace, digests of its spaces)."""
    files = tuple(SpaceSpec("file", f"files/{name}.csv") for name in "abc")
    whole = Workspace(
        spaces=files,
        source=files[2],
        target=files[0],
        anchors=("item 4", "item 9", "item 40"),
        anchors_from="",
        pinned=("item 9",),
        named_sets=(("mine", ("item 4", "item 5")), ("noch eins", ())),
        projection=ProjectionSpec("euclidean", False, 0.2, 2.0),
        view=ViewSpec(("item 4",), 20, True, "labels", True),
        reduction=ReductionSpec("umap", 3, "apart", True, 8, 0.2),
        panes=("relative", "whitened"),
        k=7,
        convention="mutual",
        inversion=InversionSpec("within", "ridge", 4, 0.5, 2.0, 3),
    )
    return {"session": whole, "session-first": Workspace(anchors_from="random 300 0")}


def main():
    folder = Path(sys.argv[1])
    for name in ("files", "recipes", "tables"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    write_files(folder / "files")
    os.chdir(folder)
    tried = {}
    for name, settings in asked().items():
        started = time.process_time()
        drawn = exportable({"figure": figure_of(name), **settings})
        Path("recipes", f"{name}.json").write_bytes(drawn.bytes("json"))
        Path("tables", f"{name}.csv").write_text(rounded(drawn.table()))
        recipe = json.loads(drawn.bytes("json"))
        took = time.process_time() - started
        found = [[path, what, outcome(changed(recipe, path, what))] for path, what in changes(recipe)]
        # What a number in place of a list or an object draws by accident is no promise.
        tried[name] = [one for one in found if one[2] == "refused" or (one[2] and one[1] == "drop")]
        lost = sum(one[2] is None for one in found)
        print(
            f"{name}: {took:.1f} s, {len(tried[name])} of {len(found)} changes, {lost} slow or broken",
            flush=True,
        )
    lines = [
        f"{json.dumps(name)}: [\n  " + ",\n  ".join(map(json.dumps, found)) + "\n ]"
        for name, found in tried.items()
    ]
    Path("changed.json").write_text("{\n " + ",\n ".join(lines) + "\n}\n")
    Path("specs.json").write_text(json.dumps(specs(), indent=1, ensure_ascii=False) + "\n")
    links = {}
    for name, workspace in sessions().items():
        digests = {spec: load(spec).digest for spec in workspace.spaces}
        Path(f"{name}.json").write_text(to_session_file(workspace, digests))
        links[name] = to_query(workspace)
    Path("permalinks.json").write_text(json.dumps(links, indent=1) + "\n")


main()
