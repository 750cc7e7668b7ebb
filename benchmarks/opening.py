"""``python -m benchmarks.opening``: seconds and memory of opening a million made-up rows of width 128, by
format, into benchmarks/opening.md.

Each opening is measured in a process of its own. The floor is one sum over the same values as a map.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.__main__ import _processor
from benchmarks.million import peak_bytes

RESULTS = Path(__file__).parent / "opening.md"
N, D = 1_000_000, 128
BLOCK = 1 << 16
LONG_AGO = 1_600_000_000  # of a file that was written just now nothing is kept


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.opening", description=__doc__)
    parser.add_argument("--rows", type=int, default=N)
    parser.add_argument("--folder", type=Path, help="where 3 kB per row fit; default: the temporary folder")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--dry", action="store_true", help="print the table and leave benchmarks/opening.md as it is"
    )
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(*options.one)))
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        lines = [
            line(name, write, Path(folder), options.rows, options.turns) for name, write in WRITERS.items()
        ]
    text = table(lines, options.rows, options.turns)
    if not options.dry:
        RESULTS.write_text(text, encoding="utf-8")
    print(text)
    return 0


def line(name: str, write: Callable[[Path, int], None], folder: Path, n: int, turns: int) -> str:
    """One line of the table: the best of some openings with an empty store, and of as many with what the
    first one kept.
    """
    path = folder / name
    write(path, n)
    os.utime(path, (LONG_AGO, LONG_AGO))
    size = path.stat().st_size
    floor = min(in_a_process("floor", path, folder / "none", n)["seconds"] for _ in range(turns))
    first = [in_a_process("open", path, folder / f"store {name} {turn}", n) for turn in range(turns)]
    again = [in_a_process("open", path, folder / f"store {name} 0", n) for _ in range(turns)]
    path.unlink()
    cells = [name, f"{size / 1e6:,.0f}", f"{floor:.3f}"]
    for found in (first, again):
        least = {key: min(one[key] for one in found) for key in found[0]}
        cells += [f"{least['seconds']:.2f}", f"{least['seconds'] / floor:.1f}", f"{least['digest']:.2f}"]
        cells += [f"{least['unshared'] / 1e6:,.0f}", f"{least['peak'] / 1e6:,.0f}"]
    print(*cells, flush=True)
    return f"| {' | '.join(cells)} |"


def in_a_process(what: str, path: Path, store: Path, n: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.opening", "--rows", str(n), "--one", what, str(path)]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "RELSCOPE_STORE": str(store)}
    )
    if ran.returncode:
        raise SystemExit(f"{path.name}: {ran.stderr}")
    return json.loads(ran.stdout)


def measured(what: str, path: str) -> dict[str, float]:
    """Seconds of the floor, or of opening and of the digest, and the memory of the process at its peak and
    at the end.
    """
    if what == "floor":
        content = np.memmap(path, np.uint8, "r")
        started = time.perf_counter()
        np.sum(content[: len(content) // 4 * 4].view(np.float32))
        return {"seconds": time.perf_counter() - started}
    from relcore.catalog.catalog import SpaceSpec, load

    spec = SpaceSpec("file", path)
    before = unshared_bytes()
    started = time.perf_counter()
    space = load(spec)
    opened = time.perf_counter()
    digest = space.digest
    ended = time.perf_counter()
    assert len(digest) == 32
    return {
        "seconds": opened - started,
        "digest": ended - opened,
        "unshared": unshared_bytes() - before,
        "peak": peak_bytes(),
    }


def unshared_bytes() -> int:
    """Memory that this process alone holds; pages of files, which the system takes back at need, do not
    count.
    """
    lines = dict(
        one.split(":", 1) for one in Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    )
    return 1024 * int(lines["RssAnon"].split()[0])


def blocks(n: int, kind: type) -> Iterator[np.ndarray]:
    """Made-up rows, the same every time; one block after the other has the same numbers, shifted."""
    rows = np.random.default_rng(0).standard_normal((BLOCK, D), dtype=np.float32)
    return (
        (rows[: min(BLOCK, n - first)] + np.float32(first / n)).astype(kind) for first in range(0, n, BLOCK)
    )


def npy(kind: type) -> Callable[[Path, int], None]:
    def write(path: Path, n: int) -> None:
        with path.open("wb") as stream:
            header = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": (n, D)}
            np.lib.format.write_array_header_1_0(stream, header)
            for block in blocks(n, kind):
                stream.write(block.data)

    return write


def safetensors(path: Path, n: int) -> None:
    header = json.dumps(
        {"vectors": {"dtype": "F32", "shape": [n, D], "data_offsets": [0, 4 * n * D]}}
    ).encode()
    header += b" " * (-(8 + len(header)) % 64)
    with path.open("wb") as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        for block in blocks(n, np.float32):
            stream.write(block.data)


def batches(n: int) -> Iterator[Any]:
    import pyarrow as pa

    for block in blocks(n, np.float32):
        yield pa.record_batch({"vector": pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), D)})


def arrow(path: Path, n: int) -> None:
    import pyarrow as pa

    schema = next(batches(1)).schema
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches(n):
            writer.write_batch(batch)


def parquet(path: Path, n: int) -> None:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetWriter(path, next(batches(1)).schema, use_dictionary=False) as writer:
        for batch in batches(n):
            writer.write_batch(batch)


WRITERS = {
    "rows.single.npy": npy(np.float32),
    "rows.half.npy": npy(np.float16),
    "rows.safetensors": safetensors,
    "rows.arrow": arrow,
    "rows.parquet": parquet,
}


def table(lines: list[str], n: int, turns: int) -> str:
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, OMP_NUM_THREADS={threads}"
    return "\n".join(
        [
            "# Opening a large file\n",
            (
                f"`python -m benchmarks.opening`, {date.today()}: {n:,} × {D} made-up rows in each format, in"
                f" the system's page cache, opened by `catalog.load` in a new process; the least of {turns}."
                " First: with an empty store. Again: with what the first opening kept. The floor is `np.sum`"
                " of the bytes of the file as float32, as a map. The digest is computed when it is first"
                " used. Own memory is what the process holds beside pages of the file after the digest, more"
                " than before the opening; the peak counts such pages, and all that Python has imported.\n"
            ),
            f"{_processor()}; at the end of the run {load}.\n",
            (
                "| file | MB | floor, s | first: open, s | ratio | digest, s | own memory, MB | peak, MB "
                "| again: open, s | ratio | digest, s | own memory, MB | peak, MB |"
            ),
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
