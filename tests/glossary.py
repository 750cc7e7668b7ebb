"""Words that texts avoid, and what to write instead: `python tests/glossary.py [FILE …]`, part of `make lint`.

A text is a string literal, a docstring or a comment in Python or in a script of the panes, a paragraph of Markdown, or a
string of the papers' JSON; names in code are not. Strings of tests are no texts for users: many are scripts. Prints file, line, the words and what to write.
"""

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# everywhere, or only in what users read: not in docstrings and comments
ALL = False
USERS = True

# What to write, the words to avoid (a slash means "or"), and where.
WORDS = [
    ("method", "ways | each way | which way | way of stitching | way out | a way,", ALL),
    ("chance level", "null | nulls", USERS),
    ("held-out rows", "taken for one | nor were taken", ALL),
    (
        "queries",
        "rows asked | asked about | rows are/were asked | row is/was asked | all are/were asked | asked with | asks/ask/asked/asking in",
        ALL,
    ),
    ("evaluate", "ask/asks/asking the head | asked of", ALL),
    (
        "matched rows",
        "find/found/finds each other | find/finds itself | find themselves | find/finds their/its own | found their",
        ALL,
    ),
    ("optimistic", "flatter | flatters | flattered", ALL),
    ("resume, continue", "goes on | go on | going on | went on", ALL),
    ("again", "once more | anew | afresh", ALL),
    ("number of …, at most n", "so many | so much as", ALL),
    ("one per row", "one a | a line a | a row a | a value a | a number a | a column a | row a way", ALL),
    ("one more row", "a row more | row more | an encoder more | a cell more", ALL),
    ("invalid, not JSON, …", "that is none | what is none | which is none | is no JSON | that are none", ALL),
    ("on average", "in the mean", ALL),
    ("without the network", "here and now", ALL),
    (
        "for screen readers, for display only",
        "for ears | for the eye alone | before one's eyes | cannot see it",
        ALL,
    ),
    ("counts as much as", "weighs as | weigh as", ALL),
    ("zero", "naught", ALL),
    ("is reported, is known, is determined", "be/is/are/was/were told | is/are/be said", ALL),
    ("contains no information about", "say/says/said nothing | know/knows/knew nothing", ALL),
    ("decimals", "behind the point", ALL),
    ("compared with", "held against | holds us", ALL),
    (
        "translate",
        "carried over | carries over | carry over | carry a space | comes through | come through",
        ALL,
    ),
    ("Procrustes", "by/with/through/after/from/the procrustes", USERS),
]


def pattern(phrase: str, a_name: bool) -> re.Pattern:
    """Whole words, also across a line break, in any letter case unless it is a name's."""
    words = [f"(?:{'|'.join(map(re.escape, word.split('/')))})" for word in phrase.split()]
    return re.compile(r"(?<!\w)" + r"[\s#]+".join(words) + r"(?!\w)", 0 if a_name else re.IGNORECASE)


RULES = [
    (pattern(phrase, write.istitle() and write.lower() in phrase), write, users)
    for write, phrases, users in WORDS
    for phrase in phrases.split(" | ")
]


# A comment, or a string with a space, which is no key.
SCRIPT_TEXT = re.compile(r"""//[^\n]*|/\*.*?\*/|(?P<string>"[^"\n]* [^"\n]*"|'[^'\n]* [^'\n]*')""", re.DOTALL)


def texts(path: Path) -> Iterator[tuple[int, str, bool]]:
    """The line and words of each text of a file, and whether users read it."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield 1, re.sub(r"`[^`\n]+`|(?<=\w)\.\w+", "`…`", content), True
    elif path.suffix == ".json":
        for number, line in enumerate(content.splitlines(), 1):
            for found in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
                yield number, json.loads(f'"{found}"'), True
    elif path.suffix == ".js":
        for found in SCRIPT_TEXT.finditer(content):
            yield content.count("\n", 0, found.start()) + 1, found[0], found["string"] is not None
    else:
        of_users = "tests" not in path.relative_to(ROOT).parts
        for line, text, users in literals(ast.parse(content)):
            yield line, text, users and of_users
        for token in tokenize.generate_tokens(io.StringIO(content).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string, False


def literals(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """String literals and docstrings; a string that could be a name, such as a key, is not a text."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            joined = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(joined), True
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            name = re.fullmatch(r"[a-z0-9_.:/-]*|[A-Z]+", node.value)
            yield from () if name else [(node.lineno, node.value, id(node) not in docs)]


def files() -> list[Path]:
    folders = ("app", "pages", "relcore", "plugins", "benchmarks", "assets", "docs", "tests")
    python = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    python.remove(Path(__file__).resolve())  # it quotes the words
    scripts = [path for folder in ("relcore/panes", "app") for path in (ROOT / folder).rglob("*.js")]
    papers = (ROOT / "relcore/data/papers").glob("*.json")
    return sorted([*python, *scripts, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *papers])


def slips(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        for first, text, users in texts(path):
            for words, write, users_only in RULES:
                for match in words.finditer(text) if users or not users_only else ():
                    line = first + text.count("\n", 0, match.start())
                    yield f"{path.relative_to(ROOT)}:{line}: “{' '.join(match.group().split())}” → {write}"


if __name__ == "__main__":
    found = list(slips([Path(name).resolve() for name in sys.argv[1:]] or files()))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
