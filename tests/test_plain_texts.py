"""Places through which a text could become code, read from the source: raw HTML, messages, and the
components' scripts.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pandas as pd
import pytest

from app.tables import short_numbers

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for folder in ("app", "pages") for path in (ROOT / folder).rglob("*.py"))
SCRIPTS = sorted(path for folder in ("app", "relcore") for path in (ROOT / folder).rglob("*.js"))
MESSAGES = {"error", "warning", "success", "toast", "info", "exception"}
RAW = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|\.html\(|setHTML"
)


def raw_html(tree: ast.AST) -> list[int]:
    """Lines that let Streamlit render HTML or run scripts: all but `st.html`, whose texts are escaped by
    `plain_html`.
    """
    return [
        node.value.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and "unsafe" in (node.arg or "")
    ]


def own_messages(tree: ast.AST) -> list[int]:
    """Lines where a message is no constant and does not come from `app.messages`, which shows it as it is."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MESSAGES:
            of_streamlit = isinstance(node.func.value, ast.Name) and node.func.value.id == "st"
            body = ""
            if node.args:
                body = ast.unparse(node.args[0])
            constant = bool(node.args) and (
                isinstance(node.args[0], ast.Constant) or re.fullmatch(r"(\w+\.)?[A-Z_]+", body)
            )
            found += [node.lineno] * (of_streamlit and not constant)
    return found


@pytest.mark.parametrize("rule", [raw_html, own_messages])
def test_no_page_renders_a_text_by_itself(rule):
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES if path.name != "messages.py"
    }
    assert len(trees) > 50
    assert [f"{path.relative_to(ROOT)}:{line}" for path, tree in trees.items() for line in rule(tree)] == []


def test_no_component_makes_html_of_a_text():
    assert len(SCRIPTS) >= 20
    lines = {path: path.read_text(encoding="utf-8").splitlines() for path in SCRIPTS}
    assert [
        f"{path.name}:{n}"
        for path in lines
        for n, line in enumerate(lines[path], start=1)
        if RAW.search(line)
    ] == []


def test_there_is_one_sign_for_minus_on_the_screen():
    table = short_numbers(pd.DataFrame({"name": ["a-b"], "score": [-0.0214], "n": [-3]}))
    assert re.findall(r"<td[^>]*>(.*?)</td>", table.to_html()) == ["a-b", "−.021", "−3"]
    other = re.compile(r"MINUS, ?['\"]-|dataframe\(.*\.round\(")
    lines = [(path, line) for path in SOURCES for line in path.read_text(encoding="utf-8").splitlines()]
    assert [f"{path.name}: {line.strip()}" for path, line in lines if other.search(line)] == []
