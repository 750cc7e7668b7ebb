"""``python -m benchmarks.load``: many browser sessions on one app at once, then many changes of anchors in
one session.

Each of the sessions uploads spaces of its own, whose ids bear its mark, and then draws lassos, changes
anchors and opens pages at random. Every message that the server sends it is searched for the marks of the
others. What is measured, and the memory of the server's processes every two seconds, goes to
benchmarks/load.md. Needs Playwright and a Chromium (RELSCOPE_CHROMIUM).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.app_in_chromium import FLAGS, find_chromium, serve
from benchmarks.browser_sessions import DIMENSION, ROWS, Measured, many_anchors, many_sessions

RESULTS = Path(__file__).parent / "load.md"
EVERY = 2.0  # seconds between two looks at the memory
WARM_UP = 60.0  # seconds of a phase until its caches are filled


async def watched(pid: int, measured: Measured, work: Awaitable) -> None:
    """Do the work, and look at the memory of the server and its children meanwhile."""
    began = time.monotonic()

    async def look() -> None:
        while True:
            measured.memory.append((time.monotonic() - began, resident(pid)))
            await asyncio.sleep(EVERY)

    looking = asyncio.create_task(look())
    try:
        await work
    finally:
        looking.cancel()


def resident(pid: int) -> float:
    """Megabytes that a process and its descendants have in memory."""
    children: dict[int, list[int]] = defaultdict(list)
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children[parent].append(int(status.parent.name))
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        waiting += children[one]
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue
    return total / 1e6


async def phase(url: str, pid: int, work: Callable[[Any, str, Measured], Awaitable]) -> Measured:
    """What one phase measures, in a Chromium of its own."""
    from playwright.async_api import async_playwright

    measured = Measured()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        await watched(pid, measured, work(browser, url, measured))
        await browser.close()
    return measured


def report(title: str, measured: Measured) -> str:
    """A phase in Markdown: latencies, memory after the warm-up, faults."""
    lines = [f"## {title}\n", "| action | times | median, s | 95 %, s |", "|---|---:|---:|---:|"]
    for kind, seconds in sorted(measured.seconds.items()):
        median, high = np.quantile(seconds, [0.5, 0.95])
        lines.append(f"| {kind} | {len(seconds)} | {median:.2f} | {high:.2f} |")
    times, memory = np.array(measured.memory).T
    lines += [
        "",
        "| seconds | " + " | ".join(f"{time:.0f}" for time in np.linspace(times[0], times[-1], 9)) + " |",
    ]
    lines += ["|---|" + "---:|" * 9]
    curve = np.interp(np.linspace(times[0], times[-1], 9), times, memory)
    lines += ["| server, MB | " + " | ".join(f"{value:,.0f}" for value in curve) + " |", ""]
    warm = times - times[0] >= min(WARM_UP, (times[-1] - times[0]) / 2)
    slope = np.polyfit(times[warm] / 60, memory[warm], 1)[0]
    lines.append(
        f"After the warm-up the server's memory changes by {slope:+.1f} MB a minute, from"
        f" {memory[warm][0]:,.0f} to {memory[-1]:,.0f} MB. Faults: {len(measured.faults)}."
    )
    lines += [f"- {fault}" for fault in dict.fromkeys(measured.faults)]
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--changes", type=int, default=300, help="of anchors, in one session; 0 for none")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    parts = [
        f"# Load\n\n`python -m benchmarks.load`, {date.today()}, {os.cpu_count()} cores for server and"
        " browsers together.\n"
    ]
    faults = []
    with tempfile.TemporaryDirectory() as store:
        process, url = serve(store)
        try:
            n, minutes, changes = options.sessions, options.minutes, options.changes
            several = asyncio.run(
                phase(url, process.pid, lambda *given: many_sessions(*given, n, minutes * 60))
            )
            parts.append(
                report(f"{n} sessions for {minutes:g} minutes, {ROWS:,} × {DIMENSION} rows each", several)
            )
            faults += several.faults
            if changes:
                one = asyncio.run(phase(url, process.pid, lambda *given: many_anchors(*given, changes)))
                parts.append(report(f"{changes} changes of anchors in one session, 20,000 × 300 words", one))
                faults += one.faults
        finally:
            process.terminate()
            process.wait(30)
    print("\n".join(parts))
    if options.save:
        RESULTS.write_text("\n".join(parts), encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
