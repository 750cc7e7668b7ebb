"""How folded the lines of the tree are, and the ceilings that may only fall: `python tests/folds.py`, part of `make lint`.

A reader meets lines, so a line does one thing. Each rule has a message that says what to write instead.
"""

import ast
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TREES = ("relcore", "app", "pages", "plugins", "tests", "benchmarks", "assets")


class Rule(NamedTuple):
    name: str
    remedy: str


PARALLEL = Rule("parallel assignment", "write one assignment a line; only swaps and returned pairs stay")
CHOICE = Rule(
    "choice `a if c else b`", "use an if statement, or a function; only two short values stay on one line"
)
NESTED = Rule("choice inside a choice", "use if statements, or a function that returns early")
PRODUCT = Rule("product of text and condition", 'start with text = "", and set it in an if statement')
HIDDEN = Rule(
    "choice hidden inside another expression",
    "name the value in an if statement above, or write a function that returns early, before it is looped over,"
    " unpacked (`*`, `**`), called, combined, or passed on with long sides",
)

# The most cases of each rule per 1,000 lines; 0 means none at all. They may only fall.
MOST = {
    "relcore": {PARALLEL: 1, CHOICE: 12, NESTED: 0, PRODUCT: 0},
    "app": {PARALLEL: 1, CHOICE: 12, NESTED: 0, PRODUCT: 0},
    "pages": {PARALLEL: 3, CHOICE: 3, NESTED: 0, PRODUCT: 0},
    "plugins": {PARALLEL: 1, CHOICE: 8, NESTED: 0, PRODUCT: 0},
    "tests": {PARALLEL: 1, CHOICE: 6, NESTED: 1, PRODUCT: 0},
    "benchmarks": {PARALLEL: 2, CHOICE: 8, NESTED: 0, PRODUCT: 0},
    "assets": {PARALLEL: 5, CHOICE: 12, NESTED: 0, PRODUCT: 0},
}
# The most hidden choices in all files of a folder. They may only fall.
MOST_HIDDEN = {
    "relcore": 0,
    "app": 0,
    "pages": 0,
    "plugins": 0,
    "tests": 128,
    "benchmarks": 18,
    "assets": 5,
}
# The greatest length of a choice that is an argument, an element or an entry.
LONGEST_ARGUMENT = 50
# Where a choice may stand, and where only a short one may.
STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.Return, ast.Yield, ast.Lambda)
PLACES = (
    ast.Call,
    ast.keyword,
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.FormattedValue,
    ast.arguments,
)
# The most files of relcore and app with more than 600 lines, and the largest median of relcore. A longer file
# has more than one topic.
LONG_FILE = 600
MOST_LONG_FILES = 0
MOST_MEDIAN = 300


def is_parallel(node: ast.AST) -> bool:
    """Whether a statement assigns several values at once that are not a swap of the same names."""
    if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)):
        return False
    if not isinstance(node.value, ast.Tuple):
        return False
    targets = {ast.unparse(one) for one in node.targets[0].elts}
    return targets != {ast.unparse(one) for one in node.value.elts}


def is_product(node: ast.AST) -> bool:
    """Whether a text is multiplied by a condition: a call of bool, a comparison, or a negation."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    sides = {node.left: node.right, node.right: node.left}
    for side, other in sides.items():
        text = isinstance(side, ast.JoinedStr) or (
            isinstance(side, ast.Constant) and isinstance(side.value, str)
        )
        called = isinstance(other, ast.Call) and getattr(other.func, "id", "") == "bool"
        negated = isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not)
        if text and (called or negated or isinstance(other, ast.Compare | ast.BoolOp)):
            return True
    return False


def is_comparison(node: ast.AST) -> bool:
    """Whether an expression is true or false by its form: a call of bool, a comparison, or a negation."""
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") == "bool"
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    return isinstance(node, ast.Compare)


def is_condition(node: ast.AST) -> bool:
    return is_comparison(node) or isinstance(node, ast.BoolOp)


def is_literal(node: ast.AST) -> bool:
    """Whether an expression spells out a text, a number or a collection."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, bool)
    return isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set | ast.JoinedStr)


def is_long(node: ast.AST) -> bool:
    return len(ast.unparse(node)) > LONGEST_ARGUMENT


def hides_choice(parent: ast.AST, node: ast.IfExp) -> bool:
    """Whether a choice is hidden inside an expression that looks like one value."""
    if isinstance(parent, STATEMENTS):
        return False
    if isinstance(parent, ast.keyword) and parent.arg is None:  # f(**(a if c else b))
        return True
    if isinstance(parent, ast.Dict) and None in parent.keys:  # {**(a if c else b)}
        return any(
            key is None and value is node for key, value in zip(parent.keys, parent.values, strict=True)
        )
    if isinstance(parent, ast.Call) and parent.func is node:  # (a if c else b)(x)
        return True
    if isinstance(parent, PLACES):
        return is_long(node)
    return True


def hides_product(parent: ast.AST, node: ast.BinOp) -> bool:
    """Whether a condition multiplies a list, a text, or a value that is then unpacked."""
    if not isinstance(node.op, ast.Mult):
        return False
    for condition, other in ((node.left, node.right), (node.right, node.left)):
        if is_condition(condition) and (is_literal(other) or isinstance(parent, ast.Starred)):
            return True
    return False


def hides_look_up(node: ast.Subscript) -> bool:
    """Whether one of the values that a list or a dictionary spells out is taken by a condition."""
    if isinstance(node.value, ast.List | ast.Tuple):
        return not isinstance(node.slice, ast.Slice)
    if not isinstance(node.value, ast.Dict):
        return False
    keys = [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
    return any(key is None or isinstance(key, bool) for key in keys)


def is_hidden(parent: ast.AST, node: ast.AST) -> bool:
    """Whether an expression is a choice that does not look like one."""
    if isinstance(node, ast.IfExp):
        return hides_choice(parent, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):  # n - (x == y)
        return is_comparison(node.left) or is_comparison(node.right)
    if isinstance(node, ast.BinOp):  # [x] * bool(c)
        return hides_product(parent, node)
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):  # n += x == y
        return is_comparison(node.value)
    if isinstance(node, ast.BoolOp):  # c and {…}
        return isinstance(node.op, ast.And) and is_literal(node.values[-1])
    if isinstance(node, ast.Subscript):  # [b, a][c]
        return hides_look_up(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # {k: a}.get(x, b)
        return node.func.attr == "get" and isinstance(node.func.value, ast.Dict)
    return False


def folds(tree: ast.AST) -> Iterator[tuple[Rule, int]]:
    """Each fold of a file: the rule and the line."""
    for node in ast.walk(tree):
        if is_parallel(node):
            yield PARALLEL, node.lineno
        if is_product(node):
            yield PRODUCT, node.lineno
        if isinstance(node, ast.IfExp):
            yield CHOICE, node.lineno
            if any(isinstance(part, ast.IfExp) for part in (node.body, node.orelse, node.test)):
                yield NESTED, node.lineno
        for part in ast.iter_child_nodes(node):
            if is_hidden(node, part):
                yield HIDDEN, part.lineno


def broken(root: Path = ROOT) -> Iterator[str]:
    """A line for each rule that a folder breaks, with its places, and one for files that are too long."""
    sizes = {}
    for name, most in MOST.items():
        found: dict[Rule, list[str]] = {rule: [] for rule in (*most, HIDDEN)}
        for path in sorted((root / name).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            sizes[path] = text.count("\n")
            for rule, line in folds(ast.parse(text)):
                found[rule].append(f"{path.relative_to(root)}:{line}")
        lines = sum(size for path, size in sizes.items() if path.is_relative_to(root / name))
        hidden = found.pop(HIDDEN)
        if len(hidden) > MOST_HIDDEN[name]:
            shown = "\n  ".join(hidden)
            yield f"{name}: {len(hidden)} of “{HIDDEN.name}”, at most {MOST_HIDDEN[name]}; {HIDDEN.remedy}\n  {shown}"
        for rule, places in found.items():
            if 1000 * len(places) > most[rule] * lines:
                shown = "\n  ".join(places[-40:])
                yield (
                    f"{name}: {len(places)} of “{rule.name}” in {lines:,} lines, at most {most[rule]} per"
                    f" 1,000; {rule.remedy}\n  {shown}"
                )
    core = [size for path, size in sizes.items() if path.is_relative_to(root / "relcore")]
    long = [
        f"{path.relative_to(root)}: {size} lines"
        for path, size in sizes.items()
        if size > LONG_FILE and path.relative_to(root).parts[0] in ("relcore", "app")
    ]
    if len(long) > MOST_LONG_FILES:
        shown = "\n  ".join(long)
        yield (
            f"{len(long)} files have more than {LONG_FILE} lines, at most {MOST_LONG_FILES}; split one by"
            f" topic\n  {shown}"
        )
    if core and statistics.median(core) > MOST_MEDIAN:
        yield f"the median file of relcore has {statistics.median(core):.0f} lines, at most {MOST_MEDIAN}"


if __name__ == "__main__":
    found = list(broken())
    for line in found:
        print(line)
    sys.exit(bool(found))
