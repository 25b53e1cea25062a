# SPDX-License-Identifier: Apache-2.0
"""Colours: one name a role, one value on paper, one on a dark screen.

Figures are drawn with the paper values. `themed` turns each of them into `var(--name)` for the copy inside the page, so
that one drawing serves both themes; files in figures/ keep the paper values.

The colours and markers of curves come from their kinds of workload; `SPARE` is for those that have none.
"""

from __future__ import annotations

import re

from sundial.report import registry
from sundial.report.registry import CLIENTS
from sundial.report.workload import Curve, Look

INK = "#1c2434"
MUTED = "#596477"
AXIS = "#8a93a5"
GRID = "#e3e7ee"
PAPER = "#fffffe"
CARD = "#f4f6f9"
EDGE = "#c3cad6"
WIRE = "#75808f"
ALARM = "#b0125b"
GOOD = "#0b7a53"

CLIENT = "#6a4c93"
CLIENT_BACK = "#a98fc6"
LINE_OUT = "#7d8fa8"
LINE_BACK = "#b4c0d0"
SERVER = "#1f9e8c"

SPARE = ("#00916e", "#a8518f", "#7a6a4f", "#444fa5", "#8a9a12", "#5f6b7a")
SPARE_MARKERS = ("v", "P", "X", "p", "h", "*")

LEAST_CONTRAST = 4.5
"""Between words and what they stand on (WCAG 2.2, 1.4.3, level AA)."""
LEAST_CONTRAST_OF_LINES = 3.0
"""Between lines that have a meaning and what they stand on (1.4.11)."""


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours (WCAG 2.2), from 1 to 21."""
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def legible(colour: str, ground: str) -> str:
    """The colour, made as much darker or brighter as words in it need on a ground."""
    towards = 0 if _luminance(ground) > _luminance(colour) else 255
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    for percent in range(101):
        mixed = [round(part + (towards - part) * percent / 100) for part in parts]
        found = "#" + "".join(f"{part:02x}" for part in mixed)
        if contrast(found, ground) >= LEAST_CONTRAST:
            return found
    return found


NAMES = {
    INK: ("ink", "#e7ebf2"),
    MUTED: ("muted", "#a3adbd"),
    AXIS: ("axis", "#6c7789"),
    GRID: ("grid", "#2b3443"),
    PAPER: ("paper", "#141a24"),
    CARD: ("card", "#1c2431"),
    EDGE: ("edge", "#3b4659"),
    WIRE: ("wire", "#8f9bad"),
    ALARM: ("alarm", "#ff6fa9"),
    GOOD: ("good", "#3fcf97"),
    CLIENT: ("stage-client", "#9a7bc8"),
    CLIENT_BACK: ("stage-client-back", "#6f5a91"),
    LINE_OUT: ("stage-wire", "#8497b2"),
    LINE_BACK: ("stage-wire-back", "#56647a"),
    SERVER: ("stage-server", "#34b8a4"),
    **{line.paper: (line.name, line.dark) for client in CLIENTS.values() for line in client.lines.values()},
    SPARE[0]: ("spare-1", "#35c79e"),
    SPARE[1]: ("spare-2", "#d98bc4"),
    SPARE[2]: ("spare-3", "#b5a381"),
    SPARE[3]: ("spare-4", "#8b95e8"),
    SPARE[4]: ("spare-5", "#c2d14a"),
    SPARE[5]: ("spare-6", "#9aa6b6"),
}
"""By the colour on paper: the name of its role, and its colour in the dark."""
_GROUND = NAMES[PAPER][1]
WORDS = {
    colour: legible(colour, PAPER)
    for colour in (*SPARE, *(line.paper for client in CLIENTS.values() for line in client.lines.values()))
}
"""By the colour of a curve on paper: that of words beside it."""
NAMES |= {
    words: (f"{NAMES[colour][0]}-words", legible(NAMES[colour][1], _GROUND))
    for colour, words in WORDS.items()
    if words not in NAMES
}


DASHES = ("-", "--", ":", "-.")


def looks(curves: list[Curve]) -> dict[Curve, Look]:
    """A look for each curve; procedures of one transport differ by dashes."""
    result: dict[Curve, Look] = {}
    drawn: list[tuple[str, str]] = []
    extra: list[tuple[str, str]] = []
    procedures = {procedure for _, _, procedure in curves}
    for app, transport, procedure in sorted(curves, key=curve_order):
        client = registry.client(app)
        line = client.lines.get(transport)
        dashes = DASHES[drawn.count((app, transport)) % len(DASHES)]
        drawn.append((app, transport))
        if line is None and (app, transport) not in extra:
            extra.append((app, transport))
        spare = 0 if line else extra.index((app, transport)) % len(SPARE)
        label = f"{client.label} / {transport.upper()}"
        result[app, transport, procedure] = Look(
            label=f"{label} {procedure}" if len(procedures) > 1 else label,
            colour=line.paper if line else SPARE[spare],
            marker=line.marker if line else SPARE_MARKERS[spare],
            dashes=dashes,
        )
    return result


def curve_order(curve: Curve) -> tuple[int, int, str, str, str]:
    """Kinds in their order, and their transports; then by name."""
    app, transport, procedure = curve
    return (*registry.order(app, transport), app, transport, procedure)


def css_variables(dark: bool) -> str:
    """The declarations of all roles for one theme."""
    return "".join(f"--{name}:{night if dark else day};" for day, (name, night) in NAMES.items())


_HEX = re.compile("|".join(NAMES), re.IGNORECASE)


_TAG = re.compile(r"<[^>]*>")
_NUMBER = re.compile(r"(?<![\w#.-])-?\d+\.\d{3,}(?![\w.-])")
_LIKE = re.compile(r"<g([^>]*)>\s*((?:<use [^>]*/>\s*){2,})</g>")
_STYLE = re.compile(r' style="([^"]*)"')


def _rounded(number: re.Match[str]) -> str:
    """A hundredth of a point is not seen, and the digits behind it are a third of a drawing."""
    return f"{float(number.group(0)):.2f}".rstrip("0").rstrip(".")


def _shared(group: re.Match[str]) -> str:
    """Markers of one style, with the style written once."""
    styles = set(_STYLE.findall(group.group(2)))
    if len(styles) != 1 or "style=" in group.group(1):
        return group.group(0)
    return f'<g{group.group(1)} style="{styles.pop()}">{_STYLE.sub("", group.group(2))}</g>'


LEAST_SCALE = 0.6
"""Of a drawing on a screen that is narrower than it; then it scrolls."""


def themed(svg: str, prefix: str, title: str, widest_px: int | None = None, least_scale: float = LEAST_SCALE) -> str:
    """An SVG document made ready to stand inside the page.

    Prolog, fixed size and fixed font go, colours become roles, and every id gets the prefix so that two drawings in one
    page cannot meet. `widest_px` keeps a small drawing from being blown up, and its letters legible on a small screen.
    """
    body = svg[svg.index("<svg") :]
    head, rest = body.split(">", 1)
    box = re.search(r'viewBox="([^"]+)"', head)
    rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
    rest = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', rest)
    rest = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', rest)
    rest = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", rest)
    rest = re.sub(r"'DejaVu Sans'(, '[^']+')*(, [a-z-]+)*", "inherit", rest)
    rest = _HEX.sub(lambda found: f"var(--{NAMES[found.group(0).lower()][0]})", rest)
    rest = _TAG.sub(lambda tag: _NUMBER.sub(_rounded, tag.group(0)), _LIKE.sub(_shared, rest))
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    view = box.group(1) if box else "0 0 100 100"
    # HTML implies the namespaces; without them the page holds nothing that looks like an address.
    rest = rest.replace("xlink:href", "href")
    limit = f' style="max-width:{widest_px}px;min-width:{least_scale * widest_px:.0f}px"' if widest_px else ""
    return f'<svg viewBox="{view}" role="img" aria-label="{label}"{limit}>{rest}'
