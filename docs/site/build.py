"""The documentation site: `make docs` runs this file, and the site is then in the folder site/.

It copies the pages to a folder, runs the examples of docs/gallery into it, writes the pages that come from
the program, lets Sphinx build them, and looks for links that lead nowhere.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import runpy
import shutil
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stdout
from html import unescape
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import relcore
from relcore.base.families import Named
from relcore.base.names import ADAPTERS, SIMILARITIES, STRATEGIES
from relcore.figures.style import DARK, LIGHT, Style
from relcore.studies.papers import load_rows

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SITE = ROOT / "site"
SOURCE = ROOT / ".venv" / "docs" / "source"
GALLERY = ROOT / "docs" / "gallery"
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


# Pages that are here already, at their paths in the repository, with the files that they link to.


def copy_pages(source: Path) -> None:
    waiting = [*HERE.glob("**/*.md"), *ROOT.glob("docs/*.md"), ROOT / "docs/plugin/README.md"]
    done: set[Path] = set()
    while waiting:
        page = waiting.pop()
        if page in done:
            continue
        done.add(page)
        text = page.read_text(encoding="utf-8")
        for target in {match[1] for match in LINK.finditer(text) if "://" not in match[1]}:
            path = (page.parent / target).resolve()
            if path.suffix == ".md" and path.is_file():
                waiting.append(path)
            elif path.is_dir():  # a site has no folders to look into
                text = re.sub(rf"\[([^\]]+)\]\({re.escape(target)}\)", r"\1", text)
            elif path.is_file():
                place = source / path.relative_to(ROOT)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place)
        place = source / (page.name if page == HERE / "index.md" else page.relative_to(ROOT))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    (source / "_static").mkdir()
    for path in (HERE / "style.css", ROOT / "assets" / "icon.svg"):
        shutil.copy(path, source / "_static")
    shutil.copy(HERE / "conf.py", source)


# The gallery: each example is run, and its page shows what it made, what it printed, and its code.


def run_example(script: Path, folder: Path) -> tuple[Any, str]:
    """Run a script in a folder, where it writes ``NAME.html``: its `figure`, and what it printed."""
    with chdir(folder), redirect_stdout(io.StringIO()) as printed:
        figure = runpy.run_path(str(script))["figure"]
    return figure, printed.getvalue().strip()


def missing_library(script: Path) -> str:
    """A library that a script imports and that is not installed; "" if there is none."""
    names = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
    return next((name for name in sorted(names) if not find_spec(name.partition(".")[0])), "")


def unrun_example(script: Path, source: Path, library: str) -> str:
    """Write the page of an example that is not run here; its card in the gallery."""
    pages = source / "docs" / "gallery"
    code = ast.parse(script.read_text(encoding="utf-8"))
    title, about = ast.get_docstring(code).split("\n\n", 1)
    shutil.copy(script, pages)
    told = f"It needs {library}, and was not run when this site was built; a test runs it."
    (pages / f"{script.stem}.md").write_text(
        f"# {title}\n\n{about}\n\n{told}\n\n"
        f"```{{literalinclude}} {script.name}\n:language: python\n:lines: {code.body[1].lineno}-\n```\n",
        encoding="utf-8",
    )
    return f":::{{grid-item-card}} {title}\n:link: {script.stem}\n:link-type: doc\n\n{about}\n:::\n"


def example(script: Path, source: Path) -> str:
    """Write the page of an example and its files; its card in the gallery."""
    if library := missing_library(script):
        return unrun_example(script, source, library)
    name = script.stem
    pages = source / "docs" / "gallery"
    exports = source / "extra" / "exports"
    figure, printed = run_example(script, exports)
    html = (exports / f"{name}.html").read_text(encoding="utf-8")
    alt = unescape(re.search(r'<main[^>]* aria-label="(.*?)"', html, re.DOTALL)[1])
    alt = " ".join(alt.split()).replace("[", "(").replace("]", ")")
    for theme in (LIGHT, DARK):
        style = Style(width=5.5, dpi=160, panel_letters=False, theme=theme)
        (pages / f"{name}-{theme.name}.png").write_bytes(figure.bytes("png", style))
    pictures = "\n".join(
        f"```{{image}} {name}-{theme}.png\n:alt: {alt}\n:class: only-{theme}\n```"
        for theme in ("light", "dark")
    )
    code = ast.parse(script.read_text(encoding="utf-8"))
    title, about = ast.get_docstring(code).split("\n\n", 1)
    shown = pictures
    if figure.page:  # the linked panes are small enough to be in the page, twice
        (exports / f"{name}-dark.html").write_bytes(figure.bytes("html", theme=DARK))
        shown = "".join(
            f'<iframe class="only-{theme}" src="../../exports/{file}.html" title="{title}" loading="lazy">'
            "</iframe>"
            for theme, file in (("light", name), ("dark", f"{name}-dark"))
        )
    shutil.copy(script, pages)
    told = ""
    if printed:
        told = f"It prints:\n\n```text\n{printed}\n```\n\n"
    (pages / f"{name}.md").write_text(
        f"# {title}\n\n{about}\n\n::::{{div}} example\n{shown}\n::::\n\n"
        f'<a href="../../exports/{name}.html">Open the interactive figure</a>, in one file.'
        "\n\n"
        f"```{{literalinclude}} {name}.py\n:language: python\n:lines: {code.body[1].lineno}-\n```\n\n{told}",
        encoding="utf-8",
    )
    return f":::{{grid-item-card}} {title}\n:link: {name}\n:link-type: doc\n\n{pictures}\n:::\n"


def write_gallery(source: Path) -> None:
    for folder in ("docs/gallery", "extra/exports"):
        (source / folder).mkdir(parents=True, exist_ok=True)
    scripts = sorted(GALLERY.glob("*.py"), key=lambda path: (path.stem != "two_word_models", path.stem))
    cards = "\n".join(example(script, source) for script in scripts)
    (source / "docs" / "gallery" / "index.md").write_text(
        "# Gallery\n\nEach example is a script on data that comes with Relscope, run when"
        " this site was built. A film shows what the app adds: [an anchor is dragged](../drag.md).\n\n"
        f"::::{{grid}} 1 2 3 3\n:gutter: 3\n:class-container: card-grid\n\n{cards}\n::::\n\n"
        "```{toctree}\n:hidden:\n\n../drag\n" + "\n".join(script.stem for script in scripts) + "\n```\n",
        encoding="utf-8",
    )


# What the program knows better than a page: marked places in pages are filled.


def api() -> str:
    parts = []
    for group, names in relcore.GROUPS.items():
        parts.append(f"## {group.capitalize()}\n")
        for name in names:
            public = getattr(relcore, name)
            if inspect.ismodule(public) or not callable(public):  # `adapters` and `METRICS`
                continue
            directive = "autofunction"
            if isinstance(public, type):
                directive = "autoclass"
            parts.append(f"### {name}\n\n```{{eval-rst}}\n.. {directive}:: relcore.{name}\n```\n")
    return "\n".join(parts)


def table(family: Mapping[str, Named]) -> str:
    """Name, title and the first words that its code says, or its help."""
    lines = ["| name | title | what it is |", "|---|---|---|"]
    for name, entry in family.items():
        said = entry.help or inspect.getdoc(entry.load()).split("\n\n")[0]
        lines.append(f"| `{name}` | {entry.title} | {' '.join(said.split())} |")
    return "\n".join(lines)


def differences() -> str:
    """Of each table and figure of the papers, what is not as published."""
    parts = []
    paper = None
    for row in load_rows():
        if row.paper != paper:
            paper = row.paper
            parts.append(f"### {paper.authors}: [{paper.title}]({paper.url})\n")
        parts.append(f"**{row.kind} {row.number}, {row.title}.** {row.differs or row.why_not}\n")
    return "\n".join(parts)


def fill(source: Path) -> None:
    made = {
        "adapters": table(ADAPTERS),
        "api": api(),
        "papers": differences(),
        "similarities": table(SIMILARITIES),
        "strategies": table(STRATEGIES),
    }
    for page in (source / "docs" / "site").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r"<!-- made: (\w+) -->", lambda found: made[found[1]], text), encoding="utf-8")


# Links of the built pages: files and places that are there, and nothing that a page loads from elsewhere.


class Links(HTMLParser):
    """The ids of a page, what it links to, and what it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: value or "" for name, value in attrs}
        self.ids |= {own[name] for name in ("id", "name") if own.get(name)}
        if tag == "a" and "href" in own:
            self.links.add(own["href"])
        elif tag == "link" and own.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.add(own.get("href", ""))
        elif "src" in own:
            self.loaded.add(own["src"])


def broken_links(site: Path) -> list[str]:
    """Links and sources that lead nowhere in the folder, and sources that a page loads from elsewhere."""
    others = {"_static", "exports"}  # templates, and files of their own
    pages = {page: Links(page) for page in site.rglob("*.html") if page.parent.name not in others}
    told = []
    for page, found in pages.items():
        for link in sorted(found.links | found.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in found.loaded and parts.scheme != "data":
                    told.append(f"{page.relative_to(site)}: loads {link}")
                continue
            target = page
            if parts.path:
                target = (page.parent / unquote(parts.path)).resolve()
            place = unquote(parts.fragment)
            if not target.is_file() or (place and target in pages and place not in pages[target].ids):
                told.append(f"{page.relative_to(site)}: {link} leads nowhere")
    return told


def main() -> int:
    from sphinx.cmd.build import build_main

    for folder in (SOURCE, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    copy_pages(SOURCE)
    write_gallery(SOURCE)
    fill(SOURCE)
    options = ["-q", "-W", "--keep-going", "-b", "html", "-d", f"{SOURCE}-read"]
    if build_main([*options, str(SOURCE), str(SITE)]):
        return 1
    told = broken_links(SITE)
    print("\n".join(told), end="\n" if told else "")
    print(f"{SITE}: {len(told)} broken links")
    return bool(told)


if __name__ == "__main__":
    sys.exit(main())
