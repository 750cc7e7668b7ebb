"""The corpus: every format's cases, and those that hypothesis draws."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.hostile.cases import Case
from tests.hostile.judge import Verdict, judged

FORMATS = [
    "npy",
    "npz",
    "safetensors",
    "parquet",
    "delimited",
    "word2vec_text",
    "word2vec_binary",
    "side_files",
    "item_tables",
    "picture_bytes",
    "picture_folders",
    "session_files",
    "recipes",
    "specs",
    "lists_of_ids",
    "command_lines",
    "damaged_stores",
    "model_folders",
    "faiss_index",
    "arrow",
    "torch_file",
    "adapters",
    "round_trips",
]
DRAWN = 12


def preload() -> None:
    import gc

    ours = "files.reading encoders.datasets migrate.adapters catalog.task cli figures.export runs.jobs"
    others = "pyarrow.parquet pyarrow.csv pyarrow.compute safetensors.numpy PIL.Image PIL.ImageOps msgspec"
    more = "app.workspace app.anchors.lists scipy.linalg sklearn.cluster"
    for module in (*others.split(), *(f"relcore.{one}" for one in ours.split()), *more.split()):
        import_module(module)
    gc.freeze()


def verdicts(name: str, n_drawn: int = 0, state: int | None = None, every: int = 1) -> list[Verdict]:
    """Of a format's cases and a few drawn ones, the same each time; or of `n_drawn` cases, by this state
    or others. With `every`, of the controls and of every so many-th other case, and none that is drawn.
    """
    module = import_module(f"tests.hostile.{name}")
    cases = [] if n_drawn else module.cases()
    if every > 1:
        numbered = enumerate(cases)
        cases = (case for number, case in numbered if number % every == 0 or case.name.startswith("control"))
    found = judged(cases)
    if hasattr(module, "drawn") and every == 1:
        drawn_by = random.getrandbits(32) if n_drawn and state is None else state or 0
        found += _judged(module.drawn(), n_drawn or DRAWN, drawn_by)
    return found


def _judged(cases: st.SearchStrategy[Case], n: int, state: int) -> list[Verdict]:
    """Verdicts of cases that hypothesis draws; of those that fail, the smallest that it finds."""
    cases_drawn: list[Case] = []
    _draw(cases, n, state, (Phase.generate,), cases_drawn.append)
    found = judged(cases_drawn)
    if all(one.right for one in found):
        return found
    alone: list[Verdict] = []

    def judge(case: Case) -> None:
        alone.extend(judged([case]))
        assert alone[-1].right

    with suppress(AssertionError):
        _draw(cases, n, state, (Phase.generate, Phase.shrink), judge)
    wrong = [one for one in alone if not one.right]
    return [one for one in found if one.right] + (wrong[-1:] or [one for one in found if not one.right])


def _draw(
    cases: st.SearchStrategy[Case], n: int, state: int, phases: tuple[Phase, ...], use: Callable[[Case], None]
) -> None:
    health = list(HealthCheck)

    @seed(state)
    @settings(
        max_examples=n,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=health,
        print_blob=False,
    )
    @given(cases)
    def run(case: Case) -> None:
        use(case)

    run()


def changes(content: bytes, make: Callable[[str, bytes], Case], most: int = 3) -> st.SearchStrategy[Case]:
    """Cases of a file in which hypothesis cuts, flips, inserts, repeats and overwrites bytes."""
    size = len(content)
    at = st.integers(0, size - 1)
    telling = st.sampled_from(
        [b"\0", b"\xff" * 4, b"\xff" * 8, b"\x7f", b"\n", b" ", b"9", b"-", b"\xef\xbb\xbf", b"\x80"]
    )
    step = st.one_of(
        st.tuples(st.just("flip"), at, st.integers(1, 255)),
        st.tuples(st.just("cut"), at, st.just(0)),
        st.tuples(st.just("insert"), at, telling | st.binary(min_size=1, max_size=8)),
        st.tuples(st.just("overwrite"), at, telling | st.binary(min_size=1, max_size=8)),
        st.tuples(st.just("remove"), at, st.integers(1, 16)),
        st.tuples(st.just("repeat"), at, st.integers(1, 64)),
    )
    return st.lists(step, min_size=1, max_size=most).map(
        lambda steps: make(f"drawn: {steps}", _changed(content, steps))
    )


def _changed(content: bytes, steps: list[tuple]) -> bytes:
    for what, at, value in steps:
        before, after = content[:at], content[at:]
        match what:
            case "flip":
                content = before + bytes([after[0] ^ value]) + after[1:] if after else before
            case "cut":
                content = before
            case "insert":
                content = before + value + after
            case "overwrite":
                content = before + value + after[len(value) :]
            case "remove":
                content = before + after[value:]
            case "repeat":
                content = before + after[:value] + after
    return content
