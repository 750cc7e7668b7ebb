"""Hostile recipes, alone and inside PNG, PDF, SVG and HTML; what is accepted is written again as it was
given.
"""

import io
import json
from dataclasses import replace
from html import escape
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from relcore.base.names import FIGURES
from relcore.catalog.task import recipe_of
from relcore.figures.export import read_recipe
from tests.hostile.cases import Case, each, hole, places, spoiled
from tests.hostile.json_values import EARLIER, changed, differences, text
from tests.hostile.picture_bytes import chunk, png

NAMES = ("recipe", "space", "dataset", "encoder", "n_neighbors")


_FILE = {"source": "file", "name": "here.npz"}
_TWO = [_FILE, _FILE]
# Figures that version 0.1.0 had not.
_MIGRATION = {"n_pairs": 50, "judgements": [{"query": "q", "row": "a", "grade": 1.0}]}
NEWER = {
    "reasons": {"spaces": _TWO, "explain": {"k": 5, "own": ["contains:a"]}},
    "axis": {"source": _FILE, "target": _FILE, "axis": {"start": ["a"], "end": ["b"], "random_axes": 30}},
    "anchor-audit": {"source": _FILE, "target": _FILE, "audit": {"anchors": ["a", "b"], "k": 5}},
    "drift": {
        "old": _FILE,
        "new": _FILE,
        "drift": {"k": 5, "shared": True},
        "thresholds": {"new_queries": {"lost": 0.5}},
    },
    "drift-rows": {"old": _FILE, "new": _FILE, "drift": {"k": 5}},
    "inversion-anchors": {
        "source": _FILE,
        "target": _FILE,
        "anchors": ["a", "b"],
        "inversion": {"method": "ridge", "ridge": 0.5},
    },
    "cascade-price": {"spaces": [*_TWO, *_TWO], "migration": {"n_pairs": 50, "n_candidates": 20}},
    "cascade-estimate": {"n_rows": 1000, "rows_now": 50, "n_candidates": 20, "queries_a_day": 3.5},
    "cheaper-index": {"spaces": _TWO, "task": {"migration": _MIGRATION, "adapter": "ridge", "weight": 0.5}},
    "passport": {"passport": _FILE, "new": _FILE, "anchors": ["a", "b"]},
    "model-choice": {"spaces": _TWO, "choose": {"epsilon": 0.1, "judgements": _MIGRATION["judgements"]}},
    "check": {"space": _FILE, "trusted": _FILE, "other": _FILE, "check": {"fdr": 0.1, "random_state": 1}},
    "universe": {
        "spaces": _TWO,
        "digests": ["a", "b"],
        "universe": {"rows": 50, "unit": False},
        "chart": "accuracy",
    },
    "training-runs": {"runs": [{"name": "runs/first", "source": "folder"}], "training": {"k": 5}},
    "migration-options": {"spaces": _TWO, "migration": _MIGRATION},
    "threshold-change": {
        "spaces": _TWO,
        "task": {"migration": _MIGRATION, "adapter": "ridge", "threshold": 0.5, "keep": "recall"},
        "side": "old",
    },
}
NEWER = {name: {"figure": name, **settings} for name, settings in NEWER.items()}


def of(file, given=None):

    def read(folder):
        written = json.loads(json.dumps(recipe_of(read_recipe(folder / file)).to_json()))
        described = json.loads((folder / file).read_bytes() if given is None else given)
        return differences({name: one for name, one in described.items() if name != "relscope"}, written)

    return read


def case(name, file, content, given=None, refused=False, **more):
    right = None if refused else []
    more = {"names": (file, *NAMES), "remedy": False, **more}
    return Case(name, of(file, given), {file: content}, right, **more)


def in_png(recipe, zipped=False):
    stream = io.BytesIO()
    told = PngInfo()
    told.add_text("relscope-recipe", recipe.decode("latin-1"), zip=zipped)
    Image.new("L", (4, 4)).save(stream, "PNG", pnginfo=told)
    return stream.getvalue()


def in_pdf(recipe):
    safe = recipe.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
    return b"%PDF-1.4\n1 0 obj\n<< /Title (x) /Keywords (" + safe + b") >>\nendobj\n%%EOF\n"


def in_svg(recipe):
    head = b'<?xml version="1.0"?>\n<svg><metadata id="relscope-recipe">'
    return head + escape(recipe.decode()).encode() + b"</metadata></svg>"


def in_html(recipe):
    body = recipe.replace(b"<", b"\\u003c")
    return b'<!doctype html>\n<script type="application/json" id="relscope-recipe">' + body + b"</script>"


FORMS = {"figure.png": in_png, "figure.pdf": in_pdf, "figure.svg": in_svg, "figure.html": in_html}


def cases():
    drawn_here = {path: json.loads(path.read_bytes()) for path in Path(EARLIER, "recipes").glob("*.json")}
    every = sorted(path for path, recipe in drawn_here.items() if recipe["figure"] in FIGURES)
    for path in every:
        yield case(f"control: {path.stem}", "recipe.json", path.read_bytes(), accept=True)
    described = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in every} | NEWER
    for number, (stem, recipe) in enumerate(described.items()):  # of each figure other changes, a few
        found = list(changed(recipe, each=1))
        for name, value in found[number % 5 :: max(5, len(found) // 8)]:
            if name != "all lacks metric":  # a metric decides which of the other settings count
                yield case(f"{stem}: {name}", "recipe.json", text(value))
    for name, recipe in NEWER.items():
        yield case(f"control: {name}", "recipe.json", text(recipe), accept=True)
    whole = text(json.loads(Path(EARLIER, "recipes", "scores.json").read_text(encoding="utf-8")))
    for file, pack in FORMS.items():
        content = pack(whole)
        yield case(f"{file}: control", file, content, whole, accept=True)
        without = content.replace(b"relscope-recipe", b"relscope-receipt").replace(b"/Keywords", b"/Keyword")
        yield case(f"{file}: no recipe", file, without, refused=True)
        for name, made in {
            "not JSON": pack(b"hello"),
            "nested 100,000 deep": pack(b'{"figure":' * 100_000 + b"1" + b"}" * 100_000),
            "a figure of another class": pack(b'{"figure": "os:system"}'),
            "2 GB": hole(2 * 10**9, content[:200]),
        }.items():
            yield case(f"{file}: {name}", file, made, refused=True)
        for one in each(_readable(file), file, spoiled(content, n_flips=10), lambda _: True, f"{file}: "):
            yield replace(one, names=(file, *NAMES), remedy=False)
    yield from _made_to_harm(whole)
    for one in places("recipe.json", of("recipe.json")):
        yield Case(one.name, one.read, one.files, names=("recipe.json",), remedy=False)


def _readable(file):

    def read(folder):
        return bool(recipe_of(read_recipe(folder / file)).to_json())

    return read


def _made_to_harm(whole):
    told = chunk(b"tEXt", b"relscope-recipe\0" + whole)
    blank = png(100_000, 100_000, b"", told)  # no pixel is decoded
    yield case("PNG of 100,000 × 100,000", "figure.png", blank, whole)
    for name, (file, content) in {
        "PDF of a keyword that never ends": ("figure.pdf", b"%PDF-1.4\n/Keywords (" + b"\\(" * 10_000_000),
        "SVG of a million openings": ("figure.svg", b"<svg>" + b'<metadata id="relscope-recipe">' * 10**6),
        "PNG whose text unpacks to 1 GB": ("figure.png", in_png(b" " * 10**6, zipped=True)),
        "PNG of 200,000 texts": (
            "figure.png",
            png(4, 4, b"", chunk(b"tEXt", b"relscope-recipe\0{}") * 200_000),
        ),
    }.items():
        yield case(name, file, content, refused=True)
