"""Check texts against CONTRIBUTING's glossary: `python tests/glossary.py [FILE …]`, part of `make lint`.

The glossary's table is the only list. A text is a string literal, a docstring or a comment in Python, a line
of Markdown, or a string of the papers' JSON; names in code (`null_low`) are not. Prints file, line, the words
and what to write instead.
"""

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "CONTRIBUTING.md"
HEADING = "## Glossary"


@dataclass(frozen=True)
class Rule:
    """Words not to use, and what to write; `shown` says that it applies to what users read, not to
    docstrings and comments.
    """

    words: re.Pattern
    write: str
    shown: bool


@dataclass(frozen=True)
class Text:
    line: int
    text: str
    shown: bool


def rules(markdown: str) -> list[Rule]:
    """A rule for each backticked phrase in the third column of the glossary; "texts" in the fourth: only
    what users read.
    """
    found = []
    for line in glossary(markdown).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and "`" in cells[2]:
            for phrase in re.findall(r"`([^`]+)`", cells[2]):
                a_name = cells[0].istitle() and cells[0].lower() in phrase
                found.append(Rule(pattern(phrase, a_name), cells[0], cells[3] == "texts"))
    return found


def glossary(markdown: str) -> str:
    return markdown.partition(HEADING)[2].partition("\n## ")[0]


def pattern(phrase: str, a_name: bool = False) -> re.Pattern:
    """Whole words, also across a line break, in any letter case unless it is a name's; a slash between
    words means "or".
    """
    words = [f"(?:{'|'.join(map(re.escape, word.split('/')))})" for word in phrase.split()]
    return re.compile(r"(?<!\w)" + r"[\s#]+".join(words) + r"(?!\w)", 0 if a_name else re.IGNORECASE)


def texts(path: Path) -> Iterator[Text]:
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        if path == GLOSSARY:
            content = content.replace(glossary(content), "\n" * glossary(content).count("\n"))
        yield Text(1, re.sub(r"`[^`\n]+`|(?<=\w)\.\w+", "`…`", content), True)
    elif path.suffix == ".json":
        for number, line in enumerate(content.splitlines(), 1):
            yield from (
                Text(number, json.loads(f'"{found}"'), True)
                for found in re.findall(r'"((?:[^"\\]|\\.)*)"', line)
            )
    else:
        yield from literals(ast.parse(content))
        for token in tokenize.generate_tokens(io.StringIO(content).readline):
            if token.type == tokenize.COMMENT:
                yield Text(token.start[0], token.string, False)


def literals(tree: ast.AST) -> Iterator[Text]:
    """String literals and docstrings; a string that could be a name, such as a key, is not a text."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            joined = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield Text(node.lineno, "".join(joined), True)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            name = re.fullmatch(r"[a-z0-9_.:/-]*|[A-Z]+", node.value)
            yield from () if name else [Text(node.lineno, node.value, id(node) not in docs)]


def files() -> list[Path]:
    python = [
        path
        for root in ("app", "pages", "relcore", "benchmarks", "assets")
        for path in (ROOT / root).rglob("*.py")
    ]
    return sorted([*python, *ROOT.glob("*.md"), *(ROOT / "relcore/data/papers").glob("*.json")])


def slips(paths: list[Path]) -> Iterator[str]:
    known = rules(GLOSSARY.read_text(encoding="utf-8"))
    for path in paths:
        for one in texts(path):
            for rule in known:
                for match in rule.words.finditer(one.text) if one.shown or not rule.shown else ():
                    line = one.line + one.text.count("\n", 0, match.start())
                    yield (
                        f"{path.relative_to(ROOT)}:{line}: “{' '.join(match.group().split())}” → {rule.write}"
                    )


if __name__ == "__main__":
    found = list(slips([Path(name).resolve() for name in sys.argv[1:]] or files()))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
