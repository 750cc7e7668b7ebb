"""No test passes or fails by the speed of the machine: tests count work, or wait for events with
`tests.waiting.until`.
"""

import ast
from pathlib import Path

TESTS = Path(__file__).parent
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time"}
WAIT = "wait_for_timeout"


def timed(tree):
    """Lines with an assertion that reads a clock, or a wait in the browser for a time."""
    for node in ast.walk(tree):
        names = {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
        if isinstance(node, ast.Assert) and names & CLOCKS:
            yield node.lineno
        if isinstance(node, ast.Attribute) and node.attr == WAIT:
            yield node.lineno


def test_no_test_depends_on_the_speed_of_the_machine():
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))}
    named = {path: text for path, text in texts.items() if any(name in text for name in (*CLOCKS, WAIT))}
    found = {str(path.relative_to(TESTS)): list(timed(ast.parse(text))) for path, text in named.items()}
    assert {name: lines for name, lines in found.items() if lines and name != "waiting.py"} == {}
