"""``python -m benchmarks.steps [name …]``: each step as a ratio to the matrix products that it needs, and beside what
people would use instead; all of them, without names, into benchmarks/results.md.

The floor, ours and the peers take turns in one run, so that other work of the machine slows all of them
alike.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

from relcore.base.rows import row_blocks, unit_rows
from relcore.represent.inverse import InverseRelativeProjection
from relcore.represent.projection import RelativeProjection
from relcore.scores.cka import linear_cka
from relcore.scores.neighbours import find_neighbours

RESULTS = Path(__file__).parent / "results.md"
# rows; width, and number of anchors; neighbours
N = 20_000
D = 300
K = 10
INVERTED_ANCHORS = 1_000
GRAM_ROWS = 5_000
N_TEXTS = 1_000


@dataclass(frozen=True)
class Benchmark:
    """A floor, and what is measured against it.

    Attributes
    ----------
    floor : (name, call)
        The products that no implementation can avoid, into memory that is there already.
    ours : name → (call, target)
        Ours, with the ratio to the floor that it must not exceed; None where none was set.
    peers : name → call
        What people would use instead.
    """

    title: str
    floor: tuple[str, Callable[[], object]]
    ours: Mapping[str, tuple[Callable[[], object], float | None]]
    peers: Mapping[str, Callable[[], object]]
    rounds: int = 9
    note: str = ""


@dataclass(frozen=True)
class Result:
    """One line of the table. Each round gives a ratio: the seconds of this step divided by those of the floor
    in that round. `seconds` and `ratio` are medians over the rounds."""

    name: str
    seconds: float
    ratio: float
    low: float
    high: float
    target: float | None = None

    @property
    def missed(self) -> bool:
        return self.target is not None and self.ratio > self.target


def measure(benchmark: Benchmark) -> list[Result]:
    """Time the floor, ours and the peers: each once to warm up, then once per round, in an order that changes
    from round to round.
    """
    calls = (
        dict([benchmark.floor])
        | {name: call for name, (call, _) in benchmark.ours.items()}
        | dict(benchmark.peers)
    )
    names = list(calls)
    seconds = np.empty((benchmark.rounds, len(names)))
    for call in calls.values():
        call()
    for turn in range(benchmark.rounds):
        for step in range(len(names)):
            column = (turn + step) % len(names)
            started = time.perf_counter()
            calls[names[column]]()
            seconds[turn, column] = time.perf_counter() - started
    ratios = seconds / seconds[:, :1]
    low, middle, high = np.percentile(ratios, [25, 50, 75], axis=0)
    targets = {name: target for name, (_, target) in benchmark.ours.items()}
    return [
        Result(name, float(np.median(seconds[:, i])), middle[i], low[i], high[i], targets.get(name))
        for i, name in enumerate(names)
    ]


def made_up(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two row-aligned matrices (20,000, 300) in float32, the second a noisy rotation of the first; the
    same every time.
    """
    rng = np.random.default_rng(seed)
    source = rng.standard_normal((N, D), dtype=np.float32)
    rotation, _ = np.linalg.qr(rng.standard_normal((D, D)))
    target = source @ rotation.astype(np.float32) + 0.5 * rng.standard_normal((N, D), dtype=np.float32)
    return source, target


def projection() -> Benchmark:
    """Rows as cosines to anchors, against one product."""
    from sklearn.metrics.pairwise import cosine_similarity

    space, _ = made_up()
    rows = np.random.default_rng(1).choice(N, D, replace=False)
    anchors = space[rows]
    out = np.empty((N, D), dtype=np.float32)
    plain, centred = (RelativeProjection(center=center).fit(space, anchors=rows) for center in (False, True))

    def normalise_then_product() -> np.ndarray:
        units = space / np.linalg.norm(space, axis=1, keepdims=True)
        return units @ (anchors / np.linalg.norm(anchors, axis=1, keepdims=True)).T

    assert np.allclose(plain.transform(space), cosine_similarity(space, anchors), atol=1e-5)
    return Benchmark(
        "Cosine projection",
        floor=(
            "floor: NumPy, X @ A.T into memory that is there",
            lambda: np.matmul(space, anchors.T, out=out),
        ),
        ours={
            "RelativeProjection(center=False).transform": (lambda: plain.transform(space), 1.6),
            "RelativeProjection(center=True).transform": (lambda: centred.transform(space), 1.6),
        },
        peers={
            "scikit-learn: cosine_similarity": lambda: cosine_similarity(space, anchors),
            "NumPy: normalise both, then the product": normalise_then_product,
        },
        rounds=41,
    )


def inversion() -> Benchmark:
    """Rows translated through 1,000 anchors, against one product."""
    source, target = made_up()
    rows = np.random.default_rng(1).choice(N, INVERTED_ANCHORS, replace=False)
    anchors = source[rows], target[rows]
    fitted = {omega: InverseRelativeProjection(omega=omega, delta=0.85).fit(*anchors) for omega in (1, 16)}
    matrix = np.ascontiguousarray(fitted[1].matrix_)
    units = unit_rows(anchors[1], anchors[1].mean(axis=0))

    def by_its_steps() -> np.ndarray:
        """Translate the rows by the formula of the paper, step by step, with one pruning."""
        (kept,) = fitted[1].kept_
        mean = fitted[1].source_mean_
        relative = unit_rows(source, mean) @ unit_rows(anchors[0][kept], mean).T
        found = relative @ np.linalg.pinv(units[kept].T)
        return found * np.float32(fitted[1].scale_) + fitted[1].target_mean_

    out = np.empty((N, D), dtype=np.float32)
    shift = fitted[1].target_mean_.astype(np.float32)

    def product_and_passes() -> None:
        """Each row has its own length, so that a product alone is no translation."""
        lengths = np.sqrt(np.vecdot(source, source))
        np.matmul(source, matrix, out=out)
        np.divide(out, lengths[:, None], out=out)
        np.add(out, shift, out=out)

    assert np.allclose(fitted[1].transform(source), by_its_steps(), atol=1e-2)
    return Benchmark(
        "Inverse relative projection",
        floor=(
            "floor: NumPy, row lengths, X @ W, scale and shift, into memory that is there",
            product_and_passes,
        ),
        ours={
            "transform, ω = 1": (lambda: fitted[1].transform(source), 1.3),
            "transform, ω = 16": (lambda: fitted[16].transform(source), 1.3),
        },
        peers={"NumPy: relative rows, then the inverse, of one pruning": by_its_steps},
        rounds=41,
        note="The centre is part of the shift once the product is there; ours takes memory for the result.",
    )


def neighbours() -> Benchmark:
    """Jaccard and MRR with every row as a query, against the two 20,000 × 20,000 products."""
    import torch
    from sklearn.neighbors import NearestNeighbors

    source, target = made_up()
    units = unit_rows(source), unit_rows(target)
    out = np.empty((4096, N), dtype=np.float32)

    def two_products() -> None:
        for queries in units:
            for block in row_blocks(N):
                np.matmul(queries[block], units[1].T, out=out[: block.stop - block.start])

    def ours() -> tuple[float, float]:
        found = find_neighbours(source, target, K)
        return found.overlap.mean(), found.reciprocal_rank.mean()

    def by_torch() -> tuple[float, float]:
        base = torch.from_numpy(units[1]).T
        lists = [
            torch.cat(
                [
                    torch.topk(torch.from_numpy(queries[block]) @ base, K, dim=1).indices
                    for block in row_blocks(N)
                ]
            )
            for queries in (units[1], units[0])
        ]
        return _scores_of(*(found.numpy() for found in lists))

    def by_scikit_learn() -> tuple[float, float]:
        search = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(units[1])
        return _scores_of(
            *(search.kneighbors(queries, return_distance=False) for queries in (units[1], units[0]))
        )

    assert np.allclose(ours(), by_torch(), atol=1e-5)
    return Benchmark(
        "Jaccard and MRR, k = 10",
        floor=("floor: NumPy, both products in blocks of 4,096 rows", two_products),
        ours={"find_neighbours, jaccard and mrr": (ours, 1.3)},  # the floor chooses no neighbours
        peers={
            "PyTorch: product and topk in the same blocks": by_torch,
            "scikit-learn: NearestNeighbors, brute": by_scikit_learn,
        },
        rounds=3,
        note=(
            "Ours normalises the rows and chooses the k nearest of each; the floor does neither, and the peers get"
            " normalised rows."
        ),
    )


def _scores_of(own: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Jaccard and MRR from neighbour lists (n, k), by a plain implementation."""
    shared = (own[:, :, None] == other[:, None, :]).sum(axis=(1, 2))
    found = other == np.arange(len(other))[:, None]
    ranks = np.where(found.any(axis=1), 1 / (1 + found.argmax(axis=1)), 0)
    return float((shared / (2 * own.shape[1] - shared)).mean()), float(ranks.mean())


def cka() -> Benchmark:
    """Linear CKA with its chance level, against its three products."""
    source, target = made_up()
    out = np.empty((D, D), dtype=np.float32)
    fewer = source[:GRAM_ROWS], target[:GRAM_ROWS]

    first, second = (np.empty_like(side) for side in (source, target))

    def products() -> None:
        """The products of the centred rows. In float32, the products of the means cannot be subtracted
        afterwards."""
        for side, centred in ((source, first), (target, second)):
            np.subtract(side, side.mean(axis=0), out=centred)
        for left, right in ((first, first), (second, second), (first, second)):
            np.matmul(left.T, right, out=out)

    assert np.isclose(linear_cka(*fewer), _gram_cka(*fewer), atol=1e-3)  # float32 products of 5,000 terms
    return Benchmark(
        "Linear CKA with its chance level",
        floor=("floor: NumPy, centred rows, XᵀX, YᵀY and XᵀY, into memory that is there", products),
        ours={"linear_cka": (lambda: linear_cka(source, target), 1.4)},
        peers={
            "NumPy: centre, then the three products": lambda: _feature_cka(source, target),
            f"NumPy: Gram form, on {GRAM_ROWS:,} rows only": lambda: _gram_cka(*fewer),
        },
        rounds=15,
        note=(
            "Ours has the moments of its chance level, too: the lengths of rows, and a second product of 256 rows."
            f" The Gram form takes n × n matrices, 1.6 GB each at 20,000 rows: it gets {GRAM_ROWS:,}, a 16th"
            " of the work."
        ),
    )


def _feature_cka(X: np.ndarray, Y: np.ndarray) -> float:
    X = X - X.mean(axis=0)
    Y = Y - Y.mean(axis=0)
    return float(np.linalg.norm(X.T @ Y) ** 2 / (np.linalg.norm(X.T @ X) * np.linalg.norm(Y.T @ Y)))


def _gram_cka(X: np.ndarray, Y: np.ndarray) -> float:
    grams = []
    for Z in (X, Y):
        gram = Z @ Z.T
        gram -= gram.mean(axis=0)
        gram -= gram.mean(axis=1, keepdims=True)
        grams.append(gram.ravel())
    return float(grams[0] @ grams[1] / np.sqrt((grams[0] @ grams[0]) * (grams[1] @ grams[1])))


def layers() -> Benchmark:
    """The rows of MiniLM's blocks for 1,000 texts, against a plain loop over the same batches with hooks."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    import relcore
    from relcore.encoders.transformers import minilm_folder

    model = AutoModel.from_pretrained(minilm_folder()).eval()
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    rng = np.random.default_rng(0)
    words = [word for word in tokenizer.get_vocab() if word.isalpha()]
    texts = [" ".join(rng.choice(words, size)) for size in rng.integers(3, 40, N_TEXTS)]
    blocks = [f"encoder.layer.{number}" for number in range(len(model.encoder.layer))]

    @torch.inference_mode()
    def by_hooks() -> dict[str, np.ndarray]:
        outputs: dict[str, torch.Tensor] = {}

        def keeper(name: str) -> Callable[..., None]:
            return lambda module, inputs, output: outputs.update({name: output})

        handles = [model.get_submodule(name).register_forward_hook(keeper(name)) for name in blocks]
        order = np.argsort([-len(text) for text in texts], kind="stable")
        rows = {name: np.empty((N_TEXTS, model.config.hidden_size), np.float32) for name in blocks}
        for start in range(0, N_TEXTS, 32):
            places = order[start : start + 32]
            batch = tokenizer([texts[place] for place in places], padding=True, return_tensors="pt")
            model(**batch)
            known = batch["attention_mask"][:, :, None]
            for name, output in outputs.items():
                rows[name][places] = ((output * known).sum(1) / known.sum(1)).numpy()
        for handle in handles:
            handle.remove()
        return rows

    def ours() -> dict[str, relcore.LatentSpace]:
        return relcore.encode(model, texts, layers=blocks, processor=tokenizer, device="torch")

    found = ours()
    assert all(np.allclose(found[name].vectors, rows, atol=1e-4) for name, rows in by_hooks().items())
    return Benchmark(
        f"All blocks of MiniLM, {N_TEXTS:,} texts",
        floor=("floor: PyTorch, a loop over batches of 32 with forward hooks", by_hooks),
        ours={"relcore.encode": (ours, 1.15)},
        peers={},
        rounds=3,
        note="Texts of 3 to 39 words, the longest first in both.",
    )


STEPS = {step.__name__: step for step in (projection, inversion, neighbours, cka, layers)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"only these, and write no file: {', '.join(STEPS)}"
    )
    chosen = parser.parse_args().names
    if unknown := set(chosen) - set(STEPS):
        parser.error(f"expected names among {', '.join(STEPS)}, got {', '.join(sorted(unknown))}")
    parts = [heading()]
    missed = []
    print(parts[0])
    for name in chosen or STEPS:
        benchmark = STEPS[name]()
        results = measure(benchmark)
        parts.append(table(benchmark, results))
        missed += [
            f"{result.name}: {result.ratio:.2f} × its floor, target {result.target}"
            for result in results
            if result.missed
        ]
        print(parts[-1], flush=True)
    if not chosen:
        RESULTS.write_text("\n".join(parts), encoding="utf-8")
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


def heading() -> str:
    """What was measured, how, and on what machine."""
    libraries = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "faiss-cpu", "torch")
    )
    return (
        f"# Benchmarks\n\n`make bench`, {date.today()}: n = {N:,} rows, width and anchors {D}, float32, a"
        " fixed seed. The floor is the matrix products that nothing can avoid. Floor, ours and peers take"
        " turns in one run; a ratio is the median over rounds of a call's time to the floor's of the same"
        f" round, its middle half in brackets.\n\n{processor()}, {os.cpu_count()} cores; {_threads()};"
        f" Python {platform.python_version()}, {libraries}.\n"
    )


def table(benchmark: Benchmark, results: list[Result]) -> str:
    """One benchmark as a Markdown table."""
    lines = [f"## {benchmark.title}\n", "| | seconds | ratio to the floor | target |", "|---|---:|---:|---:|"]
    for number, result in enumerate(results):
        if number == 0:
            ratio = "1"
        else:
            ratio = f"{result.ratio:.2f} ({result.low:.2f}–{result.high:.2f})"
        if result.target is None:
            target = ""
        else:
            target = f"≤ {result.target}{', missed' if result.missed else ''}"
        lines.append(f"| {result.name} | {result.seconds:.4f} | {ratio} | {target} |")
    note = f"{benchmark.note} {benchmark.rounds} rounds.".lstrip()
    return "\n".join([*lines, "", note, ""])


def processor() -> str:
    """The name of the processor."""
    information = Path("/proc/cpuinfo")
    lines = []
    if information.exists():
        lines = information.read_text().splitlines()
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine()
    )


def _threads() -> str:
    """Threads of NumPy, faiss and PyTorch; the comparison is fair only where they are equal."""
    import faiss
    import torch
    from threadpoolctl import threadpool_info

    numpy_threads = next(pool["num_threads"] for pool in threadpool_info() if "numpy" in pool["filepath"])
    counts = {
        "NumPy": numpy_threads,
        "faiss": faiss.omp_get_max_threads(),
        "PyTorch": torch.get_num_threads(),
    }
    if len(set(counts.values())) > 1:
        raise SystemExit(f"expected the same number of threads everywhere, got {counts}; set OMP_NUM_THREADS")
    return f"{numpy_threads} threads each for NumPy, faiss and PyTorch"


if __name__ == "__main__":
    sys.exit(main())
