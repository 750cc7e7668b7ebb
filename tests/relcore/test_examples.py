"""Every name that a script uses has an example in its docstring, and every example in relcore comes out as
it is printed.
"""

import doctest
import importlib
from pathlib import Path

import pytest

import relcore

ROOT = Path(__file__).parents[2]
# A table, a module, and what functions return, which their own examples show.
RETURNED = (
    *(
        "BootstrapResult",
        "BundledResults",
        "ChanceLevel",
        "Checked",
        "Drift",
        "Exportable",
        "Inversion",
        "Linked",
    ),
    *("Match", "MigrationResult", "PassportChange", "Selection", "StitchResult"),
)
PUBLIC = [name for name in relcore.__all__ if name not in ("METRICS", "adapters", "nn", *RETURNED)]
WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "relcore").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_come_out_as_printed(module, capsys):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted
    assert not result.failed, capsys.readouterr().out


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name):
    assert doctest.DocTestParser().get_examples(getattr(relcore, name).__doc__)
