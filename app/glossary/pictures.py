"""Small drawings of the glossary, as SVG.

Their colours are classes of `card.css`, for light and dark: a and b for two spaces, c for what is meant, n
for the rest.
"""

from __future__ import annotations

from math import atan2, cos, pi, radians, sin

WIDTH, HEIGHT = 240, 96
Place = tuple[float, float]
CLOUD = ((-26, 4), (-20, -16), (-8, 12), (-4, -8), (6, 22), (10, -20), (16, 4), (26, -6))


def picture(*parts: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>'


def dots(places: tuple[Place, ...], kind: str = "n", r: float = 4) -> str:
    return "".join(f'<circle class="{kind}" cx="{x:.0f}" cy="{y:.0f}" r="{r}"/>' for x, y in places)


def stars(*places: Place, kind: str = "c", r: float = 8) -> str:
    corners = [((r, 0.42 * r)[i % 2], pi * (i - 2.5) / 5) for i in range(10)]
    drawn = [
        " ".join(f"{x + far * cos(a):.1f},{y + far * sin(a):.1f}" for far, a in corners) for x, y in places
    ]
    return "".join(f'<polygon class="{kind} star" points="{points}"/>' for points in drawn)


def lines(*ends: tuple[Place, Place], kind: str = "thin") -> str:
    return "".join(f'<path class="{kind}" d="M{x:.0f} {y:.0f}L{u:.0f} {v:.0f}"/>' for (x, y), (u, v) in ends)


def arrow(start: Place, end: Place, kind: str = "thin") -> str:
    (x, y), turn = end, atan2(end[1] - start[1], end[0] - start[0])
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
    """The same eight places, turned by degrees about (x, y)."""
    c, s = size * cos(radians(turn)), size * sin(radians(turn))
    return tuple((x + c * u - s * v, y + s * u + c * v) for u, v in CLOUD)


def rays(centre: Place, ends: tuple[Place, ...], kind: str = "thin") -> str:
    return lines(*((centre, end) for end in ends), kind=kind)


def matrix(x: float, y: float, cells: str, size: float = 11) -> str:
    """A grid of cells, a row per word: "#" dark, "+" middle, "." pale."""
    kinds = {"#": "c", "+": "c half", ".": "c pale"}
    side = f'width="{size - 1}" height="{size - 1}"'
    return "".join(
        f'<rect class="{kinds[cell]}" x="{x + size * i}" y="{y + size * j}" {side}/>'
        for j, row in enumerate(cells.split())
        for i, cell in enumerate(row)
    )
