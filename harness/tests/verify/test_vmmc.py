# SPDX-License-Identifier: Apache-2.0
"""Imports over a backplane, and what protocols over it are given, on packets made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sundial.workloads.vmmc import verify, verify_evidence
from sundial.workloads.vmmc.verify_evidence import Evidence, Judgement
from tests.verify import vmmc_bed
from tests.verify.vmmc_bed import (
    ANSWER,
    AU,
    CLIENT,
    CONTROL,
    FLIGHT_NS,
    GONE,
    IMPORT,
    NACK,
    SERVER,
    STEP_NS,
    UNCOMBINED,
    UNIMPORT,
    VmmcBed,
    control,
)


class _Speaker:
    """Explains all that is written, and keeps what it was given."""

    def __init__(self) -> None:
        self.evidence: Evidence | None = None

    def speaks(self, transport: str) -> bool:
        return transport == "toy"

    def judge(self, evidence: Evidence) -> Judgement:
        self.evidence = evidence
        judgement = Judgement()
        for each in evidence.imports:
            if each.name == "known":
                judgement.attribute(evidence.stream(*each.stream)["row"], None)
        return judgement

    def display_filter(self, call: Any) -> str | None:
        return None


@pytest.fixture
def speaker(monkeypatch: pytest.MonkeyPatch) -> _Speaker:
    found = _Speaker()
    for module in (verify, verify_evidence):
        monkeypatch.setattr(module, "protocols", lambda: {"toy": found})
    return found


def fields(bed: VmmcBed) -> list[str]:
    return vmmc_bed.fields(vmmc_bed.settled(bed.write("toy-client")))


def test_what_protocols_are_given(tmp_path: Path, speaker: _Speaker) -> None:
    bed = VmmcBed(tmp_path / "run")
    there = bed.imported(CLIENT, "known", export=3, generation=7, pages=2, use=1, key=99)
    bed.refused(SERVER, "absent", 1)
    first = bed.now
    bed.store(there, 8, b"abcdefgh")
    bed.send(there, 4090, b"x" * 6, 0, last=False)
    bed.send(there, 4096, b"yy", 0, last=True)
    assert fields(bed) == []
    evidence = speaker.evidence
    assert evidence is not None
    granted, refused = evidence.imports
    assert (granted.importer, granted.exporter, granted.name, granted.key) == (CLIENT, SERVER, "known", 99)
    assert (granted.export, granted.generation, granted.pages, granted.use, granted.granted) == (3, 7, 2, 1, True)
    assert (granted.asked_ns, granted.answered_ns) == (1_000_000, 1_000_000 + STEP_NS + FLIGHT_NS)
    assert (refused.name, refused.status, refused.granted) == ("absent", 1, False)
    stream = evidence.stream(*there)
    assert stream["sent_ns"].to_list() == [first, first + STEP_NS, first + 2 * STEP_NS]
    assert stream["arrived_ns"].to_list() == [at + FLIGHT_NS for at in stream["sent_ns"]]
    assert stream["kind"].to_list() == [1, 2, 2]
    assert stream["reason"].to_list() == [UNCOMBINED, 0, 0]
    assert evidence.contents(stream) == b"abcdefgh" + b"x" * 6 + b"yy"
    assert evidence.data(stream["row"][2]) == b"yy"
    assert evidence.packets.height == 7
    assert evidence.backplane(CLIENT).combine_bytes == 1024


def test_what_nobody_explains_is_found(tmp_path: Path, speaker: _Speaker) -> None:
    bed = VmmcBed(tmp_path / "run")
    bed.store(bed.imported(CLIENT, "other", export=3, generation=7, pages=2), 8, b"abcdefgh")
    found = vmmc_bed.settled(bed.write("toy-client"))
    assert vmmc_bed.fields(found) == ["unexplained"]
    # Request, answer and store, each at both ends.
    assert found.classes["class"].to_list() == ["vmmc_control"] * 4 + ["unexplained"] * 2
    assert found.packets == 3


def test_a_packet_in_words() -> None:
    names = {"kind": 1, "sequence": 5, "length": 8, "offset": 16, "export": 3, "sender": 1, "receiver": 2}
    columns = {f"vmmc_{name}": [value, None] for name, value in names.items()}
    transport = verify.KIND.transport
    assert transport is not None
    words = "automatic update number 5, 8 bytes from offset 16 of export 3, from node 1 to 2"
    assert pl.DataFrame(columns).select(transport.describe()).to_series().to_list() == [words, None]


def test_a_packet_that_never_arrives_has_no_arrival(tmp_path: Path, speaker: _Speaker) -> None:
    bed = VmmcBed(tmp_path / "run")
    there = bed.imported(CLIENT, "known", export=3, generation=7, pages=2)
    bed.packet(AU, *there[:2], b"abcdefgh", reason=UNCOMBINED, export=3, generation=7, count=1, arrives=False)
    assert fields(bed) == []
    assert speaker.evidence is not None
    assert speaker.evidence.stream(*there)["arrived_ns"].to_list() == [None]


def _not_imported(bed: VmmcBed) -> None:
    bed.store((CLIENT, SERVER, 4, 7), 0, b"abcdefgh")


def _other_generation(bed: VmmcBed) -> None:
    bed.store((CLIENT, SERVER, 3, 8), 0, b"abcdefgh")


def _too_far(bed: VmmcBed) -> None:
    bed.store((CLIENT, SERVER, 3, 7), 8192, b"abcdefgh")


def _after_its_end(bed: VmmcBed) -> None:
    bed.packet(CONTROL, CLIENT, SERVER, control(UNIMPORT, export=3, generation=7))
    bed.store((CLIENT, SERVER, 3, 7), 0, b"abcdefgh")


def _ends_twice(bed: VmmcBed) -> None:
    for _ in range(2):
        bed.packet(CONTROL, CLIENT, SERVER, control(UNIMPORT, export=3, generation=7))


def _gone_for_nobody(bed: VmmcBed) -> None:
    bed.packet(CONTROL, SERVER, CLIENT, control(GONE, export=5, generation=7))


def _answered_twice(bed: VmmcBed) -> None:
    bed.packet(CONTROL, SERVER, CLIENT, control(ANSWER, 1, export=3, generation=7, pages=2))


def _same_number(bed: VmmcBed) -> None:
    bed.packet(CONTROL, CLIENT, SERVER, control(IMPORT, 1, "again"))


def _unknown_status(bed: VmmcBed) -> None:
    bed.packet(CONTROL, CLIENT, SERVER, control(IMPORT, 9, "again"))
    bed.packet(CONTROL, SERVER, CLIENT, control(ANSWER, 9, status=6))


def _refusal_with_pages(bed: VmmcBed) -> None:
    bed.packet(CONTROL, CLIENT, SERVER, control(IMPORT, 9, "again"))
    bed.packet(CONTROL, SERVER, CLIENT, control(ANSWER, 9, status=1, pages=3))


def _no_name(bed: VmmcBed) -> None:
    bed.packet(CONTROL, CLIENT, SERVER, control(IMPORT, 9))


def _unknown_type(bed: VmmcBed) -> None:
    bed.packet(CONTROL, CLIENT, SERVER, control(5))


def _short(bed: VmmcBed) -> None:
    bed.packet(CONTROL, CLIENT, SERVER, control(IMPORT, 9, "again")[:60])


def _header(bed: VmmcBed) -> None:
    bed.packet(CONTROL, CLIENT, SERVER, control(IMPORT, 9, "again"), export=3)


def _no_pages(bed: VmmcBed) -> None:
    bed.packet(CONTROL, CLIENT, SERVER, control(IMPORT, 9, "again"))
    bed.packet(CONTROL, SERVER, CLIENT, control(ANSWER, 9, export=4, generation=1))


def _refused_out_of_the_blue(bed: VmmcBed) -> None:
    bed.packet(NACK, SERVER, CLIENT, export=4, generation=7)


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (_not_imported, "vmmc.import"),
        (_other_generation, "vmmc.import"),
        (_too_far, "vmmc.offset"),
        (_after_its_end, "vmmc.import"),
        (_ends_twice, "vmmc.control.unimport"),
        (_gone_for_nobody, "vmmc.control.gone"),
        (_answered_twice, "vmmc.control.answer"),
        (_same_number, "vmmc.control.request"),
        (_unknown_status, "vmmc.control.status"),
        (_refusal_with_pages, "vmmc.control.pages"),
        (_no_name, "vmmc.control.name"),
        (_unknown_type, "vmmc.control.type"),
        (_short, "vmmc.control.length"),
        (_header, "vmmc.control.header"),
        (_no_pages, "vmmc.control.pages"),
        (_refused_out_of_the_blue, "vmmc.refused"),
    ],
)
def test_what_cannot_be_is_found(
    tmp_path: Path, speaker: _Speaker, damage: Callable[[VmmcBed], None], field: str
) -> None:
    bed = VmmcBed(tmp_path / "run")
    bed.imported(CLIENT, "known", export=3, generation=7, pages=2)
    damage(bed)
    found = fields(bed)
    assert field in found
    assert set(found) <= {field, "unexplained"}


def test_an_export_that_is_gone_may_still_be_written_and_refuses(tmp_path: Path, speaker: _Speaker) -> None:
    bed = VmmcBed(tmp_path / "run")
    there = bed.imported(CLIENT, "known", export=3, generation=7, pages=2)
    bed.packet(CONTROL, SERVER, CLIENT, control(GONE, export=3, generation=7))
    bed.store(there, 0, b"abcdefgh")
    bed.packet(NACK, SERVER, CLIENT, export=3, generation=7)
    assert fields(bed) == []
    assert speaker.evidence is not None
    assert speaker.evidence.imports[0].gone


@pytest.mark.parametrize(("later_ns", "found"), [(160_000, []), (160_001, ["vmmc.control.gone"])])
def test_a_kernel_at_work_has_not_heard_what_has_come(
    tmp_path: Path, speaker: _Speaker, monkeypatch: pytest.MonkeyPatch, later_ns: int, found: list[str]
) -> None:
    """10,000 instructions of 16 ns behind a farewell."""
    monkeypatch.setattr("sundial.workloads.vmmc.verify._mips", lambda run: {1: 62.5, 2: 62.5})
    bed = VmmcBed(tmp_path / "run")
    bed.imported(CLIENT, "known", export=3, generation=7, pages=2)
    begin = bed.now
    bed.packet(CONTROL, CLIENT, SERVER, control(UNIMPORT, export=3, generation=7))
    bed.now = begin + FLIGHT_NS + later_ns
    bed.packet(CONTROL, SERVER, CLIENT, control(GONE, export=3, generation=7))
    assert fields(bed) == found
