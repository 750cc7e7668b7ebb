"""Runner: where the passes of an operation run, and what they took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from relcore.progress import Report, silent
from relcore.sharded.shard_pass import PassResult, ShardPass, Shards, ShardWork
from relcore.store import Store

if TYPE_CHECKING:
    from relcore.engine import Engine


@dataclass
class Runner:
    """Runs passes on an engine's workers, or in this process without one, and keeps their measurements.

    Parameters
    ----------
    store : Store
        That of the engine, where there is one.
    """

    store: Store
    engine: Engine | None = None
    report: Report = silent
    done: list[tuple[str, PassResult]] = field(default_factory=list)

    def run(self, work: ShardWork, parts: Sequence[Shards], title: str) -> PassResult:
        """One pass; errors as `ShardPass.run`."""
        found = ShardPass(work, parts, self.store, self.engine, self.report, title).run()
        self.done.append((title, found))
        return found

    @property
    def peaks(self) -> dict[str, float]:
        """Worker → the most memory that it ever had, in MB, over all passes, by ``ru_maxrss``."""
        found: dict[str, float] = {}
        for _, one in self.done:
            for worker, peak in one.peaks.items():
                found[worker] = max(found.get(worker, 0.0), peak)
        return found

    def told(self) -> list[str]:
        """A line for each pass, and one for the memory."""
        lines = []
        for title, one in self.done:
            rows, seconds = sum(ran.rows for ran in one.ran), sum(ran.seconds for ran in one.ran)
            resumed = f", {len(one.ran) - one.computed:,} of them found in the store" if one.computed < len(one.ran) else ""
            pace = f"{rows / max(seconds, 1e-9):,.0f} rows a second and worker"
            lines.append(f"{title}: {len(one.ran):,} shards{resumed}, {one.seconds:.1f} s, {pace}")
        if self.peaks:
            lines.append(f"Most memory of a worker: {max(self.peaks.values()):,.0f} MB, of {len(self.peaks):,} processes")
        return lines
