"""The corpus: every format's cases, and what becomes of them."""

import gc
import re
from importlib import import_module
from pathlib import Path

from tests.hostile.judge import judged

_OTHERS = {"__main__", "cases", "controls", "corpus", "judge", "json_values", "test_corpus"}
FORMATS = sorted({path.stem for path in Path(__file__).parent.glob("*.py")} - _OTHERS)


def preload():
    beside = ["app.workspace", "pyarrow.compute", "relcore.runs.jobs", "scipy.linalg", "sklearn.cluster"]
    for module in [f"tests.hostile.{name}" for name in FORMATS] + beside:
        import_module(module)
    gc.freeze()


# A sample has only some of the cases that are made by a rule (damage, other values, ids), that take seconds,
# or that have a twin in it.
BY_RULE = re.compile(
    r"(.*: )?(cut at|byte \d+ flipped|edit \d|drawn)|.* (is |lacks |has one more)|\S+\.\w+: [a-z ]+$|link:|[a-z]+ --?[\w-]+ '"
    r"|100 million |20,000 columns|200,000 chunks|one id of 1 MB|.*200,000 pairs|scheduler |.*, row 7: |name/a/b/c: |(head: )?a loop of "
)


def verdicts(name, every=1):
    """The verdicts on the cases of a format. With `every` = n, these are one in n of the cases that `BY_RULE`
    matches, and ten times as large a share of the others."""
    numbered = enumerate(import_module(f"tests.hostile.{name}").cases())
    return judged(case for number, case in numbered if number % _every(case, every) == 0)


def _every(case, every):
    if BY_RULE.match(case.name):
        return every
    return max(1, every // 10)
