"""``python -m benchmarks.gpu``: Relscope's own paths on a GPU beside the same work in plain torch, into
benchmarks/gpu.md.

Each line has two calls and their floors: the first call copies the rows to the card; the second finds them
there. Without a GPU it runs a hundredth of the rows on torch's CPU, and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from relcore import InverseRelativeProjection, LatentSpace, Procrustes, RelativeProjection, match
from relcore.base.environment import device_in_words, has_gpu, use_device
from relcore.catalog.encodings import encode as encode_rows
from relcore.encoders.dataset import Dataset
from relcore.encoders.transformers import PretrainedText
from relcore.engine.nearest import nearest
from relcore.maps.principal_axes import ReductionSpec
from relcore.maps.reduction import reduce_spaces
from relcore.represent.heads import fit_head, fit_heads
from relcore.represent.representations import ProjectionSpec
from relcore.runs.store import Store
from relcore.scores.comparison import score_representations

RESULTS = Path(__file__).parent / "gpu.md"
DEVICE = "cuda" if has_gpu() else "cpu"
SCALE = 1 if has_gpu() else 100
QUERIES = 2_000 // SCALE
ANCHORS = 300 // (1 + SCALE // 2)
SECTIONS = ("compare", "neighbours", "inversion", "heads", "maps", "encode", "command")


class Line(NamedTuple):
    """Seconds; None where there is nothing to compare with."""

    work: str
    first: float
    again: float | None = None
    floor_first: float | None = None
    floor_again: float | None = None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; default: all")
    options = parser.parse_args()
    lines = []
    with use_device("auto" if has_gpu() else "torch"):
        card = device_in_words()
        for section in options.sections or SECTIONS:
            for line in globals()[section]():
                lines.append(line)
                print(json.dumps(line._asdict()), flush=True)
            if has_gpu():
                torch.cuda.empty_cache()
    if has_gpu() and not options.sections:
        RESULTS.write_text(table(card, lines), encoding="utf-8")
    return 0


def seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    if has_gpu():
        torch.cuda.synchronize()
    return round(time.perf_counter() - began, 4)


def median(work: Callable[[], Any], times: int = 3) -> float:
    work()
    return float(np.median([seconds(work) for _ in range(times)]))


def made_up(n: int, d: int, seed: int = 0) -> list[np.ndarray]:
    """Two models of the same n rows: 48 hidden numbers of each, mixed by two matrices, with noise."""
    drawn = torch.Generator(device=DEVICE).manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, device=DEVICE, generator=drawn)  # noqa: E731
    hidden = draw(n, 48)
    sides = [(hidden @ draw(48, d) + draw(n, d) / 2).cpu().numpy() for _ in range(2)]
    for rows in sides:
        rows.flags.writeable = False  # like the rows of a space: only such rows stay on the card
    return sides


def uploaded(rows: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(rows)).to(DEVICE)


def directions(rows: torch.Tensor) -> torch.Tensor:
    centred = rows - rows.mean(0)
    return centred / centred.norm(dim=1, keepdim=True)


def compare() -> Iterator[Line]:
    """Scores of absolute and relative rows, against a projection, the nearest rows and a Gram matrix."""
    scored(20_000 // SCALE, 100)  # loads what the first search loads
    for n, d in ((20_000, 100), (250_000, 128), (1_000_000, 128), (1_000_000, 768)):
        yield scored(n // SCALE, d)


def scored(n: int, d: int) -> Line:
    sides = made_up(n, d)
    ids = [f"row {row}" for row in range(n)]
    drawn = np.random.default_rng(1)
    anchors = drawn.choice(n, ANCHORS, replace=False)
    queries = drawn.choice(n, QUERIES, replace=False)
    pair = match(*(LatentSpace(rows, ids) for rows in sides))
    forms = ("absolute", "relative")
    names = [pair.ids[row] for row in anchors]
    ours = lambda: score_representations(pair, forms, names, ProjectionSpec(), n_queries=QUERIES)  # noqa: E731

    def floor(rows: list[torch.Tensor]) -> None:
        for side in rows:
            unit = directions(side)
            relative = directions(unit @ unit[anchors].T)
            for each in (unit, relative):
                nearest_rows(each[queries], each)
            (relative.T @ relative).cpu()

    first = seconds(ours)
    again = seconds(ours)
    held = [uploaded(rows) for rows in sides]
    return Line(
        f"scores of {n:,} × {d}, absolute and relative, {ANCHORS} anchors, {QUERIES:,} queries",
        first,
        again,
        median(lambda: floor([uploaded(rows) for rows in sides])),
        median(lambda: floor(held)),
    )


def nearest_rows(queries: torch.Tensor, rows: torch.Tensor, k: int = 11) -> torch.Tensor:
    parts = [torch.topk(queries @ part.T, k, dim=1).values for part in rows.split(65_536) if len(part) > k]
    return torch.cat(parts, 1).topk(k, dim=1).values.cpu()


def neighbours() -> Iterator[Line]:
    n = 1_000_000 // SCALE
    q = 10_000 // SCALE
    rows = directions(torch.from_numpy(np.array(made_up(n, 128)[0]))).numpy()
    rows.flags.writeable = False
    queries = rows[:q]
    floor = lambda held: [nearest_rows(part, held) for part in held[:q].split(1000)]  # noqa: E731
    first, again = (seconds(lambda: nearest(queries, rows, 10)) for _ in range(2))
    held = uploaded(rows)
    both = median(lambda: floor(uploaded(rows))), median(lambda: floor(held))
    yield Line(f"nearest 10 of {q:,} queries in {n:,} × 128", first, again, *both)


def inversion() -> Iterator[Line]:
    n = 1_000_000 // SCALE
    d = (768, 50)[SCALE > 1]
    k = 1_000 // SCALE
    source, target = made_up(n, d)
    anchors = np.random.default_rng(1).choice(n, k, replace=False)
    pairs = source[anchors].copy(), target[anchors].copy()
    held = uploaded(source)
    basis = torch.randn(d, d, device=DEVICE)
    back = median(lambda: (directions(uploaded(source)) @ basis).cpu(), 1)
    floors = back, median(lambda: (directions(held) @ basis).cpu(), 1)
    methods = {
        "pruned inverse": InverseRelativeProjection(method="pruned", omega=8, delta=0.5),
        "whitened inverse": InverseRelativeProjection(method="whitened"),
        "Procrustes": Procrustes(),
    }
    solvers = {  # of the same work; the pruned inverse solves many such problems
        "whitened inverse": lambda A, B: [torch.linalg.eigh(A.T @ A), torch.linalg.eigh(B.T @ B)],
        "Procrustes": lambda A, B: torch.linalg.svd(A.T @ B),
    }
    for name, method in methods.items():
        fit = lambda method=method: method.fit(*pairs)  # noqa: E731
        fits = [seconds(fit), min(seconds(fit) for _ in range(3))]
        if name in solvers:
            solve = solvers[name]
            both = [uploaded(side).double() for side in pairs]
            fits.append(median(lambda solve=solve: solve(*(uploaded(side).double() for side in pairs))))
            fits.append(median(lambda solve=solve, both=both: solve(*both)))
        yield Line(f"{name}: fit to {k:,} pairs of width {d}, float64", *fits)
        mapped = lambda method=method: method.transform(source)  # noqa: E731
        yield Line(f"{name}: {n:,} × {d}, back in memory", seconds(mapped), seconds(mapped), *floors)
    projection = RelativeProjection().fit(source, anchors=anchors)
    wide = torch.randn(d, k, device=DEVICE)
    floor = median(lambda: (directions(uploaded(source)) @ wide).cpu(), 1)
    relative = lambda: projection.transform(source)  # noqa: E731
    name = f"relative projection {n:,} × {d} → {k:,}, back in memory"
    yield Line(name, seconds(relative), seconds(relative), floor)


def heads() -> Iterator[Line]:
    for n, d in ((1_500, 64), (60_000 // SCALE, (768, 50)[SCALE > 1])):
        rng = np.random.default_rng(0)
        classes = rng.integers(0, 10, n)
        rows = (rng.standard_normal((10, d))[classes] + 2 * rng.standard_normal((n, d))).astype(np.float32)
        for kind in ("mlp", "paper"):
            fit = lambda kind=kind, rows=rows, y=classes: fit_head(rows, y, 10, kind)  # noqa: E731
            yield Line(f"{kind} head, {n:,} × {d}, 30 epochs", seconds(fit), seconds(fit))
        if n == 1_500:
            fit = lambda rows=rows, y=classes: fit_heads([rows] * 12, [y] * 12, 10, "mlp")  # noqa: E731
            yield Line(f"12 mlp heads at once, {n:,} × {d}", seconds(fit), seconds(fit))


PEER = """
import numpy as np, pandas as pd
from sentence_transformers import SentenceTransformer, models
tower = models.Transformer("bert", max_seq_length=512)
encoder = SentenceTransformer(modules=[tower, models.Pooling(768)], device="cuda")
texts = list(pd.read_parquet("texts.parquet")["text"])
np.savez("peer.npz", encoder.encode(texts, batch_size=128, show_progress_bar=False))
"""


def encode() -> Iterator[Line]:
    """A BERT of random weights, against sentence-transformers: a command with all its imports, and the work
    alone.
    """
    import pandas as pd

    n = 50_000 // SCALE // SCALE
    with tempfile.TemporaryDirectory() as folder:
        rng = random.Random(0)
        words = [f"w{number}" for number in range(3_000)]
        lengths = (int(min(200, rng.lognormvariate(3, 0.6))) + 1 for _ in range(n))
        texts = [" ".join(rng.choices(words, k=length)) for length in lengths]
        save_bert(Path(folder, "bert"), words)
        ids = [f"text {number}" for number in range(n)]
        pd.DataFrame({"id": ids, "text": texts}).to_parquet(Path(folder, "texts.parquet"))
        parts = ["encode", "texts.parquet", "--encoder", "./bert", "-o", "out.npz", "--store", "store"]
        ours = seconds(lambda: run(folder, *parts))
        peer = None
        if has_gpu():
            script = [sys.executable, "-c", PEER]
            peer = seconds(lambda: subprocess.run(script, cwd=folder, capture_output=True, check=True))
        yield Line(f"encode {n:,} texts by BERT-base, as a command; sentence-transformers", ours, None, peer)
        data = Dataset(lambda start, stop: texts[start:stop], ids, name="texts", kind="texts")
        encoder = PretrainedText(str(Path(folder, "bert")))
        store = Store(Path(folder, "other"))
        ours = seconds(lambda: encode_rows(data, encoder, store))
        if has_gpu():
            from sentence_transformers import SentenceTransformer, models

            tower = models.Transformer(str(Path(folder, "bert")), max_seq_length=512)
            other = SentenceTransformer(modules=[tower, models.Pooling(768)], device=DEVICE)
            peer = seconds(lambda: other.encode(texts, batch_size=128, show_progress_bar=False))
        yield Line(f"the same {n:,} texts, libraries loaded, into the store", ours, None, peer)


def maps() -> Iterator[Line]:
    """UMAP by TorchDR."""
    for n, d in ((20_000, 100), (50_000, 384)):
        rows = made_up(n // SCALE, d)[0]
        draw = lambda rows=rows: reduce_spaces([rows], ReductionSpec("umap-gpu"))  # noqa: E731
        yield Line(f"UMAP of {n // SCALE:,} × {d} by TorchDR", seconds(draw), seconds(draw))


def save_bert(folder: Path, words: list[str]) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: number for number, word in enumerate(special + words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    named = {f"{name[1:-1].lower()}_token": name for name in special}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **named).save_pretrained(folder)
    torch.manual_seed(0)
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    config = BertConfig(vocab_size=len(vocabulary), **({} if has_gpu() else size))
    BertModel(config).save_pretrained(folder)


def run(folder: str, *arguments: str) -> None:
    environment = os.environ | {"RELSCOPE_STORE": f"{folder}/store", "PYTHONPATH": os.pathsep.join(sys.path)}
    parts = [sys.executable, "-m", "relcore", *arguments, "--quiet"]
    done = subprocess.run(parts, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)


# Both files to the card, and there the products and searches of the scores.
PLAIN_COMPARE = """
import sys
import numpy as np, torch
held = [torch.from_numpy(np.load(name)).to(sys.argv[1]) for name in ("a.npy", "b.npy")]
chosen = torch.randperm(len(held[0]))[:2300].to(sys.argv[1])
unit_rows = lambda rows: torch.nn.functional.normalize(rows - rows.mean(0))
for rows in held:
    unit = unit_rows(rows)
    relative = unit_rows(unit @ unit[chosen[2000:]].T)
    for each in (unit, relative):
        parts = [(each[chosen[:2000]] @ part.T).topk(11).values for part in each.split(65_536)]
        print(float(torch.cat(parts, 1).topk(11).values.sum()), (each.T @ each).cpu().sum())
"""


def command() -> Iterator[Line]:
    n = 1_000_000 // SCALE
    d = (768, 50)[SCALE > 1]
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in zip("ab", made_up(n, d), strict=True):
            np.save(Path(folder, name), rows)
        work = lambda: run(folder, "compare", "a.npy", "b.npy", "--pair-by-row", "--json")  # noqa: E731
        script = [sys.executable, "-c", PLAIN_COMPARE, DEVICE]
        peer = lambda: subprocess.run(script, cwd=folder, capture_output=True, check=True)  # noqa: E731
        times = [(seconds(work), seconds(peer)) for _ in range(3)]
        name = f"relscope compare, {n:,} × {d}, the whole command; a script of plain torch"
        yield Line(
            name, *times[0][:1], min(time for time, _ in times), times[0][1], min(time for _, time in times)
        )


def table(card: str, lines: list[Line]) -> str:
    cells = [[line.work, *("" if value is None else f"{value:.3g}" for value in line[1:])] for line in lines]
    head = ["work", "first call", "again", "plain torch, rows uploaded", "plain torch, rows on the card"]
    rows = [head, ["---", *["---:"] * 4], *cells]
    return (
        f"# On a GPU\n\n`python -m benchmarks.gpu`, {date.today()}: {card}, torch {torch.__version__},"
        f" {os.cpu_count()} cores. Seconds. The first call brings the rows to the card; the second finds them"
        " there. Plain torch does the products and searches alone: no chance levels, no intervals, no checks"
        " of the rows, no search across the two models; before an upload it copies the rows out of read-only"
        " memory.\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
    )


if __name__ == "__main__":
    raise SystemExit(main())
