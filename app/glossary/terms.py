"""The glossary, which explains every term. `term` and `term_html` turn a word into a link to its entry."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from math import atan2, cos, pi, radians, sin

WIDTH = 240
HEIGHT = 96
Place = tuple[float, float]
CLOUD = ((-26, 4), (-20, -16), (-8, 12), (-4, -8), (6, 22), (10, -20), (16, 4), (26, -6))


def picture(*parts: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>'


def dots(places: tuple[Place, ...], kind: str = "n", r: float = 4) -> str:
    return "".join(f'<circle class="{kind}" cx="{x:.0f}" cy="{y:.0f}" r="{r}"/>' for x, y in places)


def stars(*places: Place, kind: str = "c", r: float = 8) -> str:
    lengths = [r, 0.42 * r] * 5  # tips and inner corners by turns
    corners = [(length, pi * (i - 2.5) / 5) for i, length in enumerate(lengths)]
    drawn = [
        " ".join(f"{x + far * cos(a):.1f},{y + far * sin(a):.1f}" for far, a in corners) for x, y in places
    ]
    return "".join(f'<polygon class="{kind} star" points="{points}"/>' for points in drawn)


def lines(*ends: tuple[Place, Place], kind: str = "thin") -> str:
    return "".join(f'<path class="{kind}" d="M{x:.0f} {y:.0f}L{u:.0f} {v:.0f}"/>' for (x, y), (u, v) in ends)


def arrow(start: Place, end: Place, kind: str = "thin") -> str:
    (x, y) = end
    turn = atan2(end[1] - start[1], end[0] - start[0])
    head = [(x - 7 * cos(turn + side), y - 7 * sin(turn + side)) for side in (0.45, -0.45)]
    return lines((start, end), *((end, corner) for corner in head), kind=kind)


def bars(x: float, values: tuple[float, ...], kind: str = "c", floor: float = 84, width: float = 12) -> str:
    return "".join(
        f'<rect class="{kind}" x="{x + i * (width + 4):.0f}" y="{floor - 66 * value:.0f}" width="{width}"'
        f' height="{66 * value:.0f}"/>'
        for i, value in enumerate(values)
    )


def box(x: float, y: float, width: float, height: float, kind: str = "frame") -> str:
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>'


def ring(x: float, y: float, r: float, kind: str = "frame") -> str:
    return f'<circle class="{kind}" cx="{x}" cy="{y}" r="{r}"/>'


def word(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'


def cloud(x: float, y: float, turn: float = 0, size: float = 1) -> tuple[Place, ...]:
    """The places of eight points around (x, y), rotated by `turn` degrees and scaled by `size`."""
    c = size * cos(radians(turn))
    s = size * sin(radians(turn))
    return tuple((x + c * u - s * v, y + s * u + c * v) for u, v in CLOUD)


def rays(centre: Place, ends: tuple[Place, ...], kind: str = "thin") -> str:
    return lines(*((centre, end) for end in ends), kind=kind)


def matrix(x: float, y: float, cells: str, size: float = 11) -> str:
    """A grid of cells. `cells` has a word for each row, with "#" for a dark, "+" for a middle and "." for a
    pale cell."""
    kinds = {"#": "c", "+": "c half", ".": "c pale"}
    side = f'width="{size - 1}" height="{size - 1}"'
    return "".join(
        f'<rect class="{kinds[cell]}" x="{x + size * i}" y="{y + size * j}" {side}/>'
        for j, row in enumerate(cells.split())
        for i, cell in enumerate(row)
    )


_MOSCHELLA = "Moschella et al. 2023, Relative representations"
_MAIORCA = "Maiorca et al. 2024, Inverse relative projection"
_CANNISTRACI = "Cannistraci et al. 2023, Bootstrapping parallel anchors"


@dataclass(frozen=True)
class Term:
    """A term: its title, a pattern that finds its mentions, its meaning, a picture, and a source."""

    title: str
    words: str
    text: str
    picture: str
    source: str = ""


_A = cloud(60, 48)
_B = cloud(180, 48)
_ANCHORS = ((150, 24), (204, 44), (158, 80))


ENTRIES = {
    "space": Term(
        "Space",
        "",
        "All vectors that one model gives to a set of items, such as words or pictures. Each vector is a row,"
        " a point of the space.",
        picture(
            *(word(44, 28 + 25 * i, text) for i, text in enumerate(("brandy", "senate", "silver"))),
            arrow((78, 48), (112, 48)),
            dots(_B),
            *(dots((_B[i],), kind, 6) for i, kind in ((1, "a"), (6, "b"), (4, "c"))),
        ),
    ),
    "anchor": Term(
        "Anchor",
        "[Aa]nchors?|★",
        "An item that both models know, used as a point to measure from. Every other row is described by its"
        " similarities to the anchors. Shown as ★.",
        picture(
            dots(cloud(60, 48, 0, 1.5)[:5] + cloud(60, 48, 0, 1.5)[6:]),
            rays((180, 50), _ANCHORS, "dash"),
            dots(((180, 50),), "a", 6),
            stars((36, 30), (76, 74), (92, 36), *_ANCHORS),
        ),
        f"{_MOSCHELLA}, section 3",
    ),
    "relative": Term(
        "Relative to anchors",
        "[Ss]imilarities to|[Rr]elative",
        "A row described by its similarities to the anchors in place of its coordinates. Rotating, mirroring"
        " or scaling a space leaves these numbers unchanged, so two spaces can be compared.",
        picture(
            rays((50, 52), ((22, 24), (84, 40), (32, 84)), "dash"),
            dots(((50, 52),), "a", 6),
            stars((22, 24), (84, 40), (32, 84)),
            arrow((104, 52), (140, 52)),
            bars(160, (0.45, 0.95, 0.6)),
            lines(((152, 84), (216, 84))),
        ),
        f"{_MOSCHELLA}, equation 1",
    ),
    "absolute": Term(
        "Absolute, shared axes",
        "[Ss]hared axes|[Aa]bsolute",
        "The vectors as the model made them, both spaces drawn in the same coordinates. Models that were"
        " trained separately have different axes, so the same item lies in different places.",
        picture(
            arrow((40, 88), (214, 88)),
            arrow((40, 88), (40, 8)),
            dots(cloud(86, 56, 0, 0.9), "a"),
            dots(cloud(172, 40, 130, 0.9), "b"),
            lines((cloud(86, 56, 0, 0.9)[7], cloud(172, 40, 130, 0.9)[7]), kind="dash"),
        ),
    ),
    "own-axes": Term(
        "Own axes",
        "[Oo]wn axes",
        "Each space has a map of its own. The maps show shapes; positions in two maps cannot be compared.",
        picture(
            *(
                part
                for x, kind in ((20, "a"), (140, "b"))
                for part in (
                    arrow((x, 88), (x + 84, 88)),
                    arrow((x, 88), (x, 10)),
                    dots(cloud(x + 44, 50, 8 if kind == "b" else 0), kind),
                )
            )
        ),
    ),
    "cosine": Term(
        "Cosine",
        "[Cc]osines?",
        "The similarity of two vectors by their angle: 1 in the same direction, 0 at a right angle, −1 in"
        " opposite directions. As a score: the cosine of a row's vectors in both spaces, averaged over rows.",
        picture(
            arrow((80, 84), (188, 66), "line a"),
            arrow((80, 84), (142, 14), "line b"),
            '<path class="thin" d="M126 76A46 46 0 0 0 110 50"/>',
            word(142, 58, "angle"),
        ),
    ),
    "held-out": Term(
        "Held out",
        "[Hh]eld[ -]out",
        "Rows on which nothing was fitted: neither anchors nor training rows. Scores are computed on them"
        " only, because a row that was used scores too high.",
        picture(
            *(box(20 + 22 * i, 38, 18, 18, "c pale" if i < 6 else "frame") for i in range(9)),
            stars((29, 47), (51, 47), (73, 47), r=6),
            word(82, 78, "used"),
            word(182, 78, "held out"),
            '<path class="thin" d="M18 62v4h132v-4M152 62v4h64v-4"/>',
            box(152, 34, 64, 26, "frame strong"),
        ),
    ),
    "query": Term(
        "Query",
        "[Qq]uer(?:y|ies)",
        "A row whose nearest neighbours are searched for, here in the other space.",
        picture(
            dots(_A, "a"),
            dots((_A[3],), "a", 7),
            arrow((70, 40), (160, 42)),
            ring(176, 44, 22),
            dots(_B, "b"),
        ),
    ),
    "k": Term(
        "k",
        "",
        "The number of nearest neighbours that a score looks at.",
        picture(
            ring(96, 48, 36),
            dots(cloud(96, 48, 20)),
            dots(((96, 48),), "a", 6),
            dots(((148, 20), (160, 66), (44, 18), (180, 40))),
            word(204, 53, "k = 8"),
        ),
    ),
    "chance": Term(
        "Chance level",
        "[Cc]hance level|[Bb]y chance|[Cc]hance",
        "The score of rows that are paired at random, with the band that holds 95 % of such draws. A score"
        " within the band is no evidence that the spaces agree.",
        picture(
            box(30, 66, 180, 14, "band"),
            lines(((30, 73), (210, 73)), kind="dash"),
            bars(84, (0.95,), "a", 88, 22),
            bars(140, (0.2,), "b", 88, 22),
            lines(((30, 88), (210, 88))),
        ),
    ),
    "interval": Term(
        "± and intervals",
        "±|[Ii]ntervals?",
        "A score is measured on a sample of queries. In 95 % of such samples the interval contains the score"
        " of all rows. ± is half of its width.",
        picture(
            lines(((30, 80), (210, 80))),
            lines(((70, 46), (170, 46)), ((70, 38), (70, 54)), ((170, 38), (170, 54)), kind="line a"),
            dots(((120, 46),), "a", 6),
            word(120, 26, "± half"),
        ),
    ),
    "mrr": Term(
        "MRR, mean reciprocal rank",
        "[Mm]ean reciprocal rank|MRR|[Rr]eciprocal rank",
        "Each query searches for itself in the other space. 1 divided by the rank at which it is found, on"
        " average over the queries. 1: always first; .5: second; near 0: far down.",
        picture(
            *(box(70, 12 + 25 * i, 76, 20, "c pale" if i == 1 else "frame") for i in range(3)),
            *(word(56, 26 + 25 * i, str(i + 1)) for i in range(3)),
            dots(((84, 47),), "a", 5),
            word(112, 51, "itself"),
            word(188, 51, "1 / 2"),
        ),
        "Values and queries as in the code of Moschella et al. 2023",
    ),
    "jaccard": Term(
        "Jaccard",
        "Jaccard",
        "How much two lists of neighbours have in common: rows in both lists, divided by rows in at least one"
        " of them. 1 is the same list, 0 is none in common.",
        picture(ring(96, 48, 38, "a pale"), ring(144, 48, 38, "b pale"), word(120, 53, "both")),
    ),
    "convention": Term(
        "Paper convention",
        "paper convention",
        "Both lists of neighbours are searched among the rows of the second space, and a row's own partner"
        " may be in them, as in the paper's code. “Mutual”: each space has its own lists, without the row"
        " itself.",
        picture(
            dots(((60, 48),), "a", 6),
            dots(_B, "b pale"),
            *(arrow((70, 48), place) for place in (_B[0], _B[3], _B[5])),
        ),
        _MOSCHELLA,
    ),
    "cka": Term(
        "Linear CKA",
        "[Ll]inear CKA|CKA",
        "Compares how similar all rows are to each other within the two spaces: 0 to 1. It ignores rotation"
        " and scale, so it can be high where the coordinates have nothing in common.",
        picture(
            matrix(34, 16, "#+..+ +#+.. .+#+. ..+#+ +..+#", 13),
            word(120, 54, "≈"),
            matrix(142, 16, "#+..+ +#+.. .+#+. ..+#+ +..+#", 13),
        ),
        "Kornblith et al. 2019",
    ),
    "class-agreement": Term(
        "Class agreement",
        "[Cc]lass agreement",
        "The share of rows for which most nearest neighbours in the other space are of the row's class.",
        picture(
            ring(120, 48, 38),
            dots(((104, 32), (140, 40), (112, 68), (134, 66)), "a", 6),
            dots(((92, 54),), "b", 6),
            dots(((120, 50),), "a line", 8),
        ),
    ),
    "whitened": Term(
        "Whitened",
        "[Ww]hitened",
        "Similarities to anchors, decorrelated over the anchors, so that similar anchors do not count twice."
        " The similarities are multiplied by (K + λI)^−½; K holds the similarities between anchors.",
        picture(
            '<ellipse class="a pale" cx="66" cy="48" rx="52" ry="16" transform="rotate(-24 66 48)"/>',
            dots(tuple((66 + 1.6 * u, 48 - 0.7 * u + 0.3 * v) for u, v in ((x, y) for x, y in cloud(0, 0)))),
            arrow((126, 48), (148, 48)),
            ring(188, 48, 36, "a pale"),
            dots(cloud(188, 48)),
        ),
        "Ours, with the cosines between anchors; Svendsen et al. 2026 whiten by the covariance of all rows",
    ),
    "procrustes": Term(
        "Procrustes",
        "[Pp]rocrustes",
        "The rotation that brings one space as near to the other as possible, fitted on paired rows. It needs"
        " both spaces at once; a relative space is made from one space alone.",
        picture(
            dots(cloud(60, 48, 70), "b"),
            '<path class="thin" d="M96 26A44 44 0 0 1 132 26M132 26l-8 -4M132 26l-2 -8"/>',
            dots(cloud(176, 48), "a", 6),
            dots(cloud(178, 50), "b", 4),
        ),
        "Schönemann 1966",
    ),
    "example-words": Term(
        "Example words",
        "[Ee]xample words|[Ee]xamples",
        "Words, or other items, whose neighbourhoods are drawn, each in a colour. They change the picture"
        " only, never a score.",
        picture(
            *(
                dots(cloud(x, 50, turn, 0.8), kind)
                for x, turn, kind in ((46, 0, "a"), (120, 50, "b"), (194, 100, "c"))
            ),
            *(word(x, 16, text) for x, text in ((46, "wine"), (120, "anger"), (194, "silver"))),
        ),
    ),
    "reduction": Term(
        "PCA, UMAP and t-SNE",
        "PCA|UMAP|t-SNE",
        "Methods that draw vectors of many numbers as points of a plane. PCA shows the directions of largest"
        " variance; UMAP and t-SNE keep neighbours together, not distances. Scores never use the plane.",
        picture(
            matrix(24, 16, "#+.+#.+ +.#..+# .#++.#. +#..#+. #.+#..+", 13),
            arrow((128, 48), (150, 48)),
            dots(_B, "a"),
        ),
    ),
    "parallel": Term(
        "Parallel anchors",
        "[Pp]arallel anchors",
        "Anchors that come in pairs, one of each space, for the same thing: a word and its translation, a"
        " picture and its caption.",
        picture(
            stars((60, 22), (44, 50), (72, 78), kind="a"),
            stars((180, 18), (168, 52), (190, 76), kind="b"),
            lines(((70, 22), (170, 18)), ((54, 50), (158, 52)), ((82, 78), (180, 76)), kind="dash"),
        ),
        f"{_MOSCHELLA}, section 3",
    ),
    "seeds": Term(
        "Known pairs, seeds",
        "[Ss]eeds|[Ss]eed pairs|[Kk]nown pairs",
        "The few pairs that are known from the start, from which Link finds more. Papers call them seeds.",
        picture(
            dots(cloud(60, 48, 0, 1.3), "a pale"),
            dots(cloud(180, 48, 40, 1.3), "b pale"),
            *(
                stars(cloud(60, 48, 0, 1.3)[i], kind="a")
                + stars(cloud(180, 48, 40, 1.3)[i], kind="b")
                + lines((cloud(60, 48, 0, 1.3)[i], cloud(180, 48, 40, 1.3)[i]), kind="dash")
                for i in (2, 5)
            ),
        ),
        _CANNISTRACI,
    ),
    "bootstrap": Term(
        "Link",
        "[Bb]ootstrapp?(?:ed|ing|s)?|[Ll]inked rows?|[Tt]he links",
        "A link is a guess that two rows of two spaces are the same thing. From a few pairs, or none, a rough"
        " alignment gives more pairs, these a better alignment, and so on: bootstrapping.",
        picture(
            *(stars((30 + 12 * i, 48), r=6) for i in range(2)),
            arrow((58, 48), (82, 48)),
            *(stars((98 + 14 * (i % 2), 38 + 20 * (i // 2)), r=6) for i in range(4)),
            arrow((130, 48), (154, 48)),
            *(stars((170 + 14 * (i % 4), 28 + 20 * (i // 4)), r=6) for i in range(12)),
        ),
        _CANNISTRACI,
    ),
    "head": Term(
        "Classifier",
        "",
        "The last part of a model, its head: it turns a vector into a class. The part before it is the"
        " encoder.",
        picture(
            box(18, 34, 70, 28),
            word(53, 53, "encoder"),
            arrow((92, 48), (112, 48)),
            dots(((122, 48),), "a", 6),
            arrow((132, 48), (152, 48)),
            box(156, 34, 66, 28, "c pale"),
            word(189, 53, "classifier"),
        ),
    ),
    "stitch": Term(
        "Stitch",
        "[Ss]titch(?:ed|ing)?",
        "The encoder of one model with the classifier of another, without training in between.",
        picture(
            *(box(40, y, 66, 24, kind) for y, kind in ((14, "a pale"), (58, "b pale"))),
            *(word(73, y, "encoder") for y in (30, 74)),
            *(box(140, y, 60, 24, kind) for y, kind in ((14, "a pale"), (58, "b pale"))),
            *(word(170, y, "classifier") for y in (30, 74)),
            arrow((108, 26), (138, 68), "line c"),
        ),
        f"{_MOSCHELLA}, Table 5",
    ),
    "inverse": Term(
        "Inverse",
        "[Ii]nverses?",
        "Recovers a vector from its similarities to anchors. With the similarities from one model and the"
        " anchors of another, it translates rows between the models.",
        picture(
            bars(24, (0.45, 0.95, 0.6)),
            lines(((16, 84), (80, 84))),
            arrow((98, 52), (134, 52)),
            rays((186, 52), ((158, 24), (220, 40), (168, 84)), "dash"),
            dots(((186, 52),), "b", 6),
            stars((158, 24), (220, 40), (168, 84)),
        ),
        f"{_MAIORCA}, equations 2 and 5",
    ),
    "pruned": Term(
        "Pruned",
        "[Pp]runed",
        "An inverse for which anchors close to others are left out, since near-duplicates make it unstable.",
        picture(
            stars((40, 40), (96, 70), (150, 28), (204, 60)),
            stars((54, 50), (160, 40), (106, 58), kind="n"),
            lines(((46, 42), (62, 58)), ((62, 42), (46, 58)), ((152, 32), (168, 48)), ((168, 32), (152, 48))),
            lines(((98, 50), (114, 66)), ((114, 50), (98, 66))),
        ),
        _MAIORCA,
    ),
    "delta": Term(
        "Distance δ",
        "[Dd]istance δ|δ",
        "Pruning keeps an anchor only if it is at least this far from all anchors already kept.",
        picture(
            ring(96, 48, 34, "c pale"),
            lines(((96, 48), (130, 48))),
            stars((96, 48), (164, 40)),
            stars((112, 30), kind="n"),
            word(114, 64, "δ"),
        ),
        _MAIORCA,
    ),
    "omega": Term(
        "Prunings ω",
        "[Pp]runings ω|[Pp]runings|ω",
        "Pruning begins with an anchor drawn at random. ω prunings, each from another first anchor, are"
        " averaged.",
        picture(
            *(box(22 + 50 * i, 24, 42, 48) for i in range(3)),
            *(
                stars(*((22 + 50 * i + x, 24 + y) for x, y in places), r=5)
                for i, places in enumerate((((10, 12), (30, 30)), ((28, 12), (12, 34)), ((10, 34), (32, 22))))
            ),
            word(176, 54, "→"),
            word(208, 54, "mean"),
        ),
        _MAIORCA,
    ),
    "ridge": Term(
        "Ridge λ",
        "[Rr]idge|λ",
        "A number added to the diagonal of the matrix before it is inverted. It keeps the inverse stable; a"
        " larger λ shrinks the result.",
        picture(
            matrix(62, 20, "#+.. +#+. .+#+ ..+#", 14),
            word(136, 54, "+ λ"),
            matrix(160, 20, "#... .#.. ..#. ...#", 14),
        ),
    ),
    "csls": Term(
        "CSLS",
        "CSLS",
        "Twice the cosine of two rows, less the mean cosine of each with its k nearest rows of the other"
        " space. It is high for rows that are near each other and far from all others.",
        picture(
            dots(((70, 48),), "a", 6),
            dots(((170, 48),), "b", 6),
            lines(((78, 48), (162, 48)), kind="frame"),
            dots(((196, 22), (208, 60)), "b pale"),
            lines(((78, 46), (190, 24)), ((78, 50), (202, 60))),
        ),
        "Conneau et al. 2018",
    ),
    "adapter": Term(
        "Adapter",
        "[Aa]dapters?",
        "A map from a new model's queries to the vectors of the old one, fitted on pairs, so that an index"
        " need not be computed again.",
        picture(
            dots(((40, 48),), "b", 7),
            word(40, 74, "new query"),
            arrow((54, 48), (88, 48)),
            box(92, 34, 60, 28, "c pale"),
            word(122, 53, "adapter"),
            arrow((156, 48), (174, 48)),
            dots(cloud(206, 46, 0, 0.8), "a"),
            word(206, 84, "old rows"),
        ),
    ),
    "drift": Term(
        "Drift",
        "[Dd]rift",
        "What changed between two versions of a space, row by row, beyond a common rotation.",
        picture(
            dots(cloud(110, 48, 0, 1.4), "a pale"),
            dots(cloud(110, 48, 0, 1.4)[:6], "a"),
            arrow(cloud(110, 48, 0, 1.4)[7], (200, 22)),
            dots(((206, 20),), "b", 6),
        ),
    ),
}


def term(key: str, shown: str) -> str:
    """A Markdown link with the text `shown`, which opens the glossary entry of a term."""
    return f"[{shown}](#what-{_need_key(key)})"


def term_html(key: str, shown: str) -> str:
    """The same link as `term`, as HTML."""
    return f'<a href="#what-{_need_key(key)}">{escape(shown)}</a>'


def _need_key(key: str) -> str:
    if key not in ENTRIES and key != "all":
        raise KeyError(f"glossary: expected 'all' or one of {', '.join(ENTRIES)}, got {key!r}")
    return key


def with_links(text: str) -> str:
    """The text as Markdown. The first mention of each term becomes a link."""
    return _link_terms(text, r"`[^`]*`|!?\[[^\]]*\]\([^)]*\)|\\.", term)


def linked_html(fragment: str) -> str:
    """The HTML fragment. The first mention of each term becomes a link."""
    return _link_terms(fragment, r"<a\b.*?</a>|<[^>]*>|&#?\w+;", term_html)


def _link_terms(text: str, passed: str, link: Callable[[str, str], str]) -> str:
    seen: set[str] = set()

    def replaced(match: re.Match[str]) -> str:
        key = match.lastgroup and match.lastgroup.replace("_", "-")
        if key is None or key in seen:
            return match[0]
        seen.add(key)
        return link(key, match[0])

    return re.sub(f"{passed}|{_MENTIONS}", replaced, text, flags=re.DOTALL)


# Match longer terms first: "parallel anchors" has its own entry, so it is not a mention of "anchors". "Head"
# and "k" are no links, because our texts also use them with other meanings.
_MENTIONS = "|".join(
    rf"(?P<{key.replace('-', '_')}>(?<![\w-])(?:{entry.words})(?!\w))"
    for key, entry in sorted(ENTRIES.items(), key=lambda item: -len(item[1].words))
    if entry.words
)
