# SPDX-License-Identifier: Apache-2.0
"""The report for those who see little, use no mouse, or listen to it (WCAG 2.2, AA)."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sundial.report import ladder_page, palette
from sundial.report.build import build_report
from sundial.report.registry import CLIENTS
from sundial.report.topology_view import Machine, Nic, Segment, Topology, in_words
from tests.report import synthetic
from tests.verify.bed import CLIENT, RPC_PORT, SERVER, Bed, rpc_call, rpc_reply

SCROLLS = "a part that scrolls has the focus of the keyboard, and a name"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = synthetic.make(tmp_path_factory.mktemp("report") / "run", synthetic.two_hosts(calls=3))
    return build_report(folder, png=False).html.read_text()


class Tags(HTMLParser):
    """The start tags of a page, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag == name]


def test_each_table_has_a_caption_and_headers_of_rows_and_columns(page: str) -> None:
    tables = re.findall(r"<table.*?</table>", page, re.DOTALL)
    assert len(tables) > 3
    for table in tables:
        assert re.search(r"<caption>\S.*</caption>", table), table[:200]
        tags = Tags(table)
        rows = len(re.findall(r"<tr", table.partition("<tbody>")[2]))
        scopes = [each.get("scope") for each in tags.of("th")]
        assert scopes.count("row") == rows
        assert scopes.count("col") + scopes.count("row") == len(scopes)


def test_what_scrolls_is_reached_by_the_keyboard_and_has_a_name(page: str) -> None:
    scrolling = [
        attributes
        for tag, attributes in Tags(page).found
        if tag in ("div", "pre") and {"scroll", "console"} & set((attributes.get("class") or "").split())
    ]
    scrolling += [each for each in Tags(page).of("div") if "Topology" in str(each.get("aria-label"))]
    assert len(scrolling) > 4
    for attributes in scrolling:
        assert attributes.get("tabindex") == "0", SCROLLS
        assert attributes.get("aria-label") or "console" in str(attributes.get("class")), SCROLLS


def test_the_first_link_skips_to_the_main_part(page: str) -> None:
    tags = Tags(page)
    first = tags.of("a")[0]
    (main,) = tags.of("main")
    assert (first["href"], first["class"]) == (f"#{main['id']}", "skip")


def test_each_drawing_is_said_in_words(page: str) -> None:
    for svg in Tags(page).of("svg"):
        assert svg.get("aria-hidden") == "true" or len(svg.get("aria-label") or "") > 20, svg
    labels = [str(svg.get("aria-label")) for svg in Tags(page).of("svg")]
    assert any("client" in label and "10.0.0.1/24" in label and "hub" in label for label in labels)


def test_a_topology_in_words() -> None:
    machine = Machine("a", (Nic("eth0", "lan", "10.0.0.1/24"),), "client")
    topology = Topology("pair", (machine, Machine("b")), (Segment("lan", ("hub", "10 Mb/s")),))
    assert in_words(topology) == (
        "Topology pair. a, client: eth0 10.0.0.1/24 on lan; b: no port. segment lan: hub, 10 Mb/s"
    )


GROUNDS = {"light": palette.PAPER, "dark": palette.NAMES[palette.PAPER][1]}
WORDS = {palette.INK, palette.MUTED, palette.ALARM, *palette.WORDS.values()}


@pytest.mark.parametrize("theme", GROUNDS)
def test_words_can_be_read_in_both_themes(theme: str) -> None:
    for colour in WORDS:
        name, dark = palette.NAMES[colour]
        shown = colour if theme == "light" else dark
        assert palette.contrast(shown, GROUNDS[theme]) >= palette.LEAST_CONTRAST, name


@pytest.mark.parametrize("theme", GROUNDS)
def test_axes_can_be_seen_in_both_themes(theme: str) -> None:
    for colour in (palette.AXIS, palette.WIRE):
        shown = colour if theme == "light" else palette.NAMES[colour][1]
        assert palette.contrast(shown, GROUNDS[theme]) >= palette.LEAST_CONTRAST_OF_LINES, palette.NAMES[colour][0]


def test_labels_of_curves_have_the_colours_for_words(page: str) -> None:
    """As they are drawn, not as they are meant."""
    by_name = {name: (light, dark) for light, (name, dark) in palette.NAMES.items()}
    texts = re.findall(r'<text[^>]*style="([^"]*)"', page)
    used = {name for style in texts for name in re.findall(r"(?:fill|color): var\(--([\w-]+)\)", style)}
    assert any(name.endswith("-words") for name in used)
    for name in used:
        light, dark = by_name[name]
        assert palette.contrast(light, GROUNDS["light"]) >= palette.LEAST_CONTRAST, name
        assert palette.contrast(dark, GROUNDS["dark"]) >= palette.LEAST_CONTRAST, name


def test_each_colour_has_a_name_of_its_own() -> None:
    """Two languages of gRPC once had one name, and so one colour."""
    names = [name for name, _ in palette.NAMES.values()]
    assert len(names) == len(set(names))
    lines = [line for client in CLIENTS.values() for line in client.lines.values()]
    assert len({line.paper for line in lines}) == len({line.name for line in lines}) == len(lines)
    assert len(palette.NAMES) == len({colour.lower() for colour in palette.NAMES})


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [
        ("#000000", "#ffffff", 21.0),
        ("#777777", "#ffffff", 4.48),
        ("#ffffff", "#ffffff", 1.0),
        ("#e39b06", "#fffffe", 2.35),
    ],
)
def test_contrast_is_that_of_the_standard(one: str, other: str, ratio: float) -> None:
    assert palette.contrast(one, other) == pytest.approx(ratio, abs=0.02)
    assert palette.contrast(one, other) == palette.contrast(other, one)


def test_a_drawing_in_the_page_is_shorter_and_the_same() -> None:
    svg = (
        '<svg viewBox="0 0 10 10"><g clip-path="url(#p)">\n'
        '<use href="#m" x="1.234567" y="2" style="fill: #0072b2"/>\n'
        '<use href="#m" x="3.999999" y="2" style="fill: #0072b2"/>\n'
        '</g><text x="1.5">1.234567</text><path d="M 0.100001 -2.987654"/></svg>'
    )
    shown = palette.themed(svg, "a", "words")
    assert '<use href="#a-m" x="1.23" y="2"/>' in shown
    assert '<use href="#a-m" x="4" y="2"/>' in shown
    assert shown.count("var(--rpc-udp)") == 1
    assert ">1.234567<" in shown
    assert 'd="M 0.1 -2.99"' in shown


# ---- ladders ----


def lossy(folder: Path) -> Path:
    """A run of two calls, the second of which lost its request."""
    bed = Bed(folder)
    bed.batch("echo-client", "udp", 64, RPC_PORT, 700)
    bed.udp_call(64, 0x11)
    start = bed.now
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(0x22, 64, number=1)), lose=(0,))
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(0x22, 64, number=1)))
    bed.send(SERVER, bed.datagram(SERVER, (RPC_PORT, 700), rpc_reply(0x22, 64, 1)))
    bed.sample(start, 0x22, retransmits=1)
    return bed.write()


def test_the_slowest_call_is_drawn_and_the_command_that_draws_it_is_named(tmp_path: Path) -> None:
    folder = lossy(tmp_path / "run")
    page = build_report(folder, png=False).html.read_text()
    assert 'id="ladder-slowest"' in page
    assert "show run --call 1" in page
    assert "lost: client:eth0 to server:eth0" in page
    assert (folder / "figures" / "ladder-slowest.svg").read_text().startswith("<svg ")
    (label,) = [str(svg["aria-label"]) for svg in Tags(page).of("svg") if "Ladder" in str(svg.get("aria-label"))]
    assert label.endswith("3 frames between client, server; 1 lost, 1 sent again")
    assert 'id="ladder-finding"' not in page
    assert "further rows" not in page


def test_the_call_of_the_first_mismatch_is_drawn(tmp_path: Path) -> None:
    folder = lossy(tmp_path / "run")
    call = {"client": "client", "batch": 0, "call": 0, "size": 64, "transport": "udp", "procedure": "echo", "xid": 17}
    problem = {
        "call": call,
        "capture": "wire/lan.pcapng",
        "frames": [1],
        "field": "x",
        "expected": 1,
        "seen": 2,
        "filter": "udp",
    }
    (folder / "verify.json").write_text(json.dumps({"verdict": "fail", "mismatches": 1, "problems": [problem]}))
    page = build_report(folder, png=False).html.read_text()
    assert page.index('href="#ladder-finding"') < page.index('id="ladder-finding"') < page.index('id="ladder-slowest"')
    assert "show run --call 0" in page


def test_a_long_ladder_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder_page, "MOST_ROWS", 2)
    page = build_report(lossy(tmp_path / "run"), png=False).html.read_text()
    assert "<p>3 further rows are left out here.</p>" in page


def test_without_captures_or_figures_there_is_no_ladder(tmp_path: Path) -> None:
    folder = lossy(tmp_path / "run")
    assert "ladder-slowest" not in build_report(folder, png=False, drawn=False).html.read_text()
    (folder / "wire" / "lan.pcapng").unlink()
    assert "ladder-slowest" not in build_report(folder, png=False).html.read_text()
