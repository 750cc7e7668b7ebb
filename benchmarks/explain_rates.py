"""``python -m benchmarks.explain_rates [DRAWS] [STATE]``: how often an explanation of two spaces finds what was planted,
how often it finds what is not there, and whether its reasons hold on other rows, with the target beside each figure.

Rows are random parts of the bundled words, of sentences and digits, each encoded here; captions are those of
Multi30k and digits by four networks those of MNIST, if the data folder has them. A draw is a random part, a random
level and a random choice of features; STATE changes all of them. It prints a table, and the false and missed reasons
to stderr. 200 draws of each case take about an hour and a half of one core.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from benchmarks.explained.controls import COARSE, CONTROLS, NOISES, coarse, equal_noise_of
from benchmarks.explained.planted import plant
from benchmarks.explained.repeats import PAIRS, families_of_half, repeats_of
from benchmarks.explained.rows import KINDS
from relcore.explain.result import Explanation

_FALSE = "≤ .05"
_FOUND = "≥ .95"


def controls(draws: int, state: int) -> None:
    for name, control in CONTROLS.items():
        _row(name, (bool(one.reasons) for one in _explanations(control, draws, state)), _FALSE)


def noises(draws: int, state: int) -> None:
    for noise in NOISES:
        found = _explanations(partial(equal_noise_of, noise), draws, state)
        _row(f"equal noise, {noise}", (bool(one.reasons) for one in found), _FALSE)


def coarser(draws: int, state: int) -> None:
    for how in COARSE:
        found = list(_explanations(partial(coarse, how), draws, state))
        _row(f"{how} in one model, said", [one.coarser is not None for one in found], "")
        _row(f"{how} in one model, other reasons", [bool(one.reasons) for one in found], _FALSE)


def planted(draws: int, state: int) -> None:
    for kind in KINDS:
        _row(f"planted in {kind}, named first", _named_first(kind, draws, state), _FOUND)


def _named_first(kind: str, draws: int, state: int) -> Iterator[bool]:
    for number in range(draws):
        one = plant(kind, np.random.default_rng([state, 77, number]))
        if one is None:
            continue
        if not one.first:
            titles = [reason.title for reason in one.found.reasons]
            _tell("missed:", one.title, f"{one.share:.3f} of the rows, {one.effect:.3f}", titles)
        yield one.first


def repeated(draws: int, state: int) -> None:
    """Whether reasons hold on a third of the rows that neither suggested nor tested them."""
    every = []
    for name, pair in PAIRS.items():
        repeats = []
        for number in range(draws):
            repeats += repeats_of(pair, np.random.default_rng([state, 55, number]))
        for one in repeats:
            if not one.holds:
                _tell("fell:", name, one.title, f"{one.difference:.3f}, then {one.again:.3f}")
        every += repeats
        if repeats:
            _row(f"{name}: same sign on other rows", [one.same_sign for one in repeats], "≥ .97")
            _row(f"{name}: half of the size or more", [one.holds for one in repeats], "≥ .90")
    _row("all pairs: same sign on other rows", [one.same_sign for one in every], "≥ .97")
    _row("all pairs: half of the size or more", [one.holds for one in every], "≥ .90")


def halves(draws: int, state: int) -> None:
    found = [families_of_half(np.random.default_rng([state, 11, number])) for number in range(draws)]
    firsts = ["".join(families[:1]) for families in found]
    _row("halves of the words: endings first", [one.startswith("ending") for one in firsts], "1")
    _row("halves of the words: frequency in the first five", ["frequency" in one for one in found], "1")


MEASURES: dict[str, Callable[[int, int], None]] = {
    "controls": controls,
    "noises": noises,
    "coarser": coarser,
    "planted": planted,
    "repeated": repeated,
    "halves": halves,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.explain_rates",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("draws", nargs="?", type=int, default=200, help="draws of each case")
    parser.add_argument("state", nargs="?", type=int, default=1, help="random state of all draws")
    parser.add_argument("--only", choices=MEASURES, action="append", help="a measure; all by default")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="Stochastic Optimizer")  # of networks, which train briefly
    print("| case | share | of draws | target |\n|---|--:|--:|--:|")
    for name in options.only or MEASURES:
        MEASURES[name](options.draws, options.state)


def _explanations(
    control: Callable[[str, np.random.Generator], Explanation], draws: int, state: int
) -> Iterator[Explanation]:
    for number in range(draws):
        kind = KINDS[number % len(KINDS)]
        found = control(kind, np.random.default_rng([state, number]))
        for one in found.reasons:
            _tell("false:", kind, one.title, f"{one.difference:.3f}, n = {one.n}")
        yield found


def _tell(*parts: object) -> None:
    print(*parts, file=sys.stderr, flush=True)


def _row(name: str, hits: Iterable[bool], target: str) -> None:
    listed = list(hits)
    share = float(np.mean(listed or [np.nan]))
    print(f"| {name} | {share:.3f} | {len(listed)} | {target} |", flush=True)


if __name__ == "__main__":
    main()
