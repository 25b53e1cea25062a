# SPDX-License-Identifier: Apache-2.0
"""The law of an ATM segment against networks that were run cell by cell, and against damages to their captures."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sundial.segments.atm.model import Atm
from sundial.segments.atm.model_parts import Queue
from sundial.segments.atm.verify import KIND
from sundial.segments.atm.verify_fates import LOST
from sundial.segments.atm.verify_losses import _allowed
from sundial.segments.atm.verify_queue import Joining, conforming, discarded
from sundial.verify.law import Law
from sundial.verify.segment import contention_of_port
from tests.segments.atm_network import BROADCAST, IN, OUT, Network, Record, address, up
from tests.segments.wires import Frame, Tape

OC_3C = 331_250_000
STATIC = {"resolution": "static"}


def segment(ports: int, **fields: Any) -> Atm:
    return Atm.model_validate({"kind": "atm", "ports": [f"m{number}:eth0" for number in range(ports)], **fields})


def traffic(network: Network, seed: int, frames: int, apart_ns: int) -> Network:
    random = Random(seed)
    for _ in range(frames):
        port = random.randrange(network.service)
        others = [address(each) for each in range(network.service) if each != port]
        payload = random.randbytes(random.choice([14, 60, 100, 600, 1500]))
        frame = random.choice([*others, BROADCAST]) + address(port) + b"\x08\x00" + payload
        network.hand(random.randrange(apart_ns), port, frame)
    return network.run()


def law(network: Network, folder: Path) -> Law:
    found = KIND.check_times(network.written, network.write(folder))
    assert found is not None
    return found


def findings(network: Network, folder: Path) -> list[tuple[str, str, str]]:
    return law(network, folder).findings.select("field", "expected", "seen").rows()


POLICED = {"m0:eth0": {"rate": "20 Mbit/s", "tolerance": "20 us", "action": "drop"}}
TAGGED = {"m0:eth0": {"rate": "20 Mbit/s", "tolerance": "20 us", "action": "tag"}}
MIXED = {"m0:eth0": "oc-3c", "m1:eth0": "atm-25", "m2:eth0": "taxi-100"}
SEGMENTS: dict[str, dict[str, Any]] = {
    "lane": {"lane": STATIC},
    "lane, 25.6 Mb/s": {"lane": STATIC, "line": "atm-25"},
    "lane, epd": {"lane": STATIC, "queue": {"cells": 30, "discard": "epd", "epd_above": 10}},
    "bridged": {"encapsulation": "bridged"},
    "mixed lines, tail": {"encapsulation": "bridged", "line": MIXED, "queue": {"cells": 30}},
    "ppd": {"encapsulation": "bridged", "queue": {"cells": 20, "discard": "ppd"}},
    "epd, limits by channel": {
        "encapsulation": "bridged",
        "queue": {"cells": 40, "discard": "epd", "epd_above": 10, "vc_cells": 15},
    },
    "policed": {"encapsulation": "bridged", "contracts": POLICED},
    "tagged": {
        "encapsulation": "bridged",
        "contracts": TAGGED,
        "queue": {"cells": 40, "clp1_above": 5, "discard": "ppd"},
    },
    "shaped": {"encapsulation": "bridged", "shaping": "30 Mbit/s"},
    "loss behind the switch": {"encapsulation": "bridged", "impairments": {"to m1:eth0": {"cell_loss": "3 %"}}},
    "loss before the switch": {"encapsulation": "bridged", "impairments": {"from m1:eth0": {"cell_loss": "3 %"}}},
    "loss of a discarded PDU's end": {
        "encapsulation": "bridged",
        "line": {"m0:eth0": "atm-25", "m1:eth0": "oc-3c", "m2:eth0": "atm-25"},
        "queue": {"cells": 20, "discard": "ppd", "vc_cells": 3},
        "impairments": {"from m1:eth0": {"cell_loss": "30 %"}},
    },
    "payload bits": {"encapsulation": "bridged", "impairments": {"both": {"payload_bit": "1 %"}}},
    "all at once": {
        "encapsulation": "bridged",
        "queue": {"cells": 40},
        "impairments": {"both": {"payload_bit": "1 %", "cell_loss": "1 %"}},
    },
    "latencies": {
        "encapsulation": "bridged",
        "propagation": "3 us",
        "rx_latency": "7 us",
        "cell_latency": "1 us",
    },
    "cell delay variation": {"lane": STATIC, "cdv": "100 us"},
    "cell delay variation, bridged": {"encapsulation": "bridged", "cdv": "30 us"},
}


@pytest.mark.parametrize("name", SEGMENTS)
@pytest.mark.parametrize(("seed", "apart_ns"), [(1, 300_000), (2, 3_000_000)])
def test_a_network_that_keeps_the_rules_passes(name: str, seed: int, apart_ns: int, tmp_path: Path) -> None:
    network = traffic(Network(segment(3, **SEGMENTS[name]), seed=seed), seed, 40, apart_ns)
    assert findings(network, tmp_path) == []


def test_discards_happen_in_what_is_tried(tmp_path: Path) -> None:
    rules = set()
    for name in SEGMENTS:
        network = traffic(Network(segment(3, **SEGMENTS[name]), seed=1), 1, 40, 300_000)
        records = [json.loads(each.comment.partition(" | ")[2]) for each in network.pdus if each.comment]
        rules |= {record["rule"] for record in records}
    assert rules >= {"queue full", "early packet discard", "partial packet discard", "VC full", "CLP 1", "policed",
                     "cell loss", "wrong CRC", "joined to the PDU before"}  # fmt: skip


# ---- Counted cells of the queue, by hand ----


@pytest.mark.parametrize(
    ("discard", "early", "expected"),
    [("tail", None, [(0, 8), (192, 2)]), ("ppd", None, [(0, 8), (192, 2)]), ("epd", 16, [(128, 4), (128, 4)]),
     ("epd", 32, [(0, 8), (224, 1)])],
)  # fmt: skip
def test_two_inputs_of_eight_pdus_at_one_instant(discard: str, early: int | None, expected: list[Any]) -> None:
    queue = Queue.model_validate({"cells": 64, "discard": discard, "epd_above": early})
    number = np.repeat(np.arange(256), 2)
    channel, place = np.tile([0, 1], 256), number % 32
    cells = Joining(number * OC_3C, channel, place == 0, place == 31, np.zeros(512, np.bool_))
    lost = discarded(queue, OC_3C, cells) > 0
    by_input = [lost[channel == each].reshape(8, 32) for each in (0, 1)]
    assert [(int(each.sum()), int((~each).all(axis=1).sum())) for each in by_input] == expected


@pytest.mark.parametrize(
    ("rule", "least"), [("queue full", 30), ("early packet discard", 10), ("VC full", 15), ("CLP 1", 20)]
)
def test_a_pdu_is_discarded_by_a_rule_from_its_mark_on(rule: str, least: int) -> None:
    queue = {"cells": 30, "discard": "epd", "epd_above": 10, "vc_cells": 15, "clp1_above": 20}
    written = segment(2, queue=queue)
    fates: Any = SimpleNamespace(reason=[rule], towards=[True], kind=[LOST])
    assert [_allowed(written, fates, 0, 1, waiting, 0) for waiting in (least - 1, least)] == [False, True]


@pytest.mark.parametrize(("increment", "tolerance", "expected"), [(6, 8, "111001001001"), (9, 14, "111000010001")])
def test_cells_back_to_back_under_a_contract(increment: int, tolerance: int, expected: str) -> None:
    kept = conforming(np.arange(12) * 2, increment, tolerance)
    assert "".join(str(int(each)) for each in kept) == expected


@pytest.mark.parametrize("cells", [1, 2, 32, 190])
def test_a_lone_pdu_takes_a_cell_time_more_than_its_cells(cells: int, tmp_path: Path) -> None:
    network = Network(segment(2, encapsulation="routed", propagation="0 ns", cell_latency="0 ns"))
    network.hand(1000, 0, address(1) + address(0) + b"\x08\x00" + bytes(48 * cells - 16))
    network.run()
    came = next(record for record in network.pdus if record.direction == IN)
    assert came.at == 1000 + up((cells + 1) * OC_3C)
    assert findings(network, tmp_path) == []
    came.at += 1
    assert findings(network, tmp_path)


@pytest.mark.parametrize(("shaping", "cells_at_bps"), [(None, 149_760_000), ("5 Mbit/s", 5_000_000)])
def test_a_port_is_busy_while_its_channel_is_shaped(shaping: str | None, cells_at_bps: int) -> None:
    """1500 octets and the trailer of AAL5 take 32 cells of 424 bits; the next packet waits for them."""
    written = segment(2, **({} if shaping is None else {"shaping": shaping}))
    tape = Tape(written.ports)
    tape.add(1_000, 0, OUT, Frame(1_000, 0, 1514, 1))
    found = contention_of_port(written, "m0:eth0", tape.wire().frames)
    assert found is not None
    assert found.busy_ns(0, 10**9) == pytest.approx(32 * 424 * 1e9 / cells_at_bps, abs=2)


# ---- Damages ----


def small(**fields: Any) -> Network:
    """A call and its answer, and a broadcast."""
    network = Network(segment(2, **fields), seed=3)
    random = Random(1)
    network.hand(0, 0, BROADCAST + address(0) + b"\x08\x06" + random.randbytes(28))
    for at, port in ((100_000, 0), (200_000, 1), (201_000, 1)):
        network.hand(at, port, address(1 - port) + address(port) + b"\x08\x00" + random.randbytes(200))
    return network.run()


def pick(records: list[Record], direction: int, number: int = 0) -> Record:
    return sorted((each for each in records if each.direction == direction), key=lambda each: each.at)[number]


FATES = {
    "queue full": {
        "encapsulation": "bridged",
        "queue": {"cells": 1},
        "line": {"m0:eth0": "oc-3c", "m1:eth0": "atm-25"},
    },
    "cell loss": {"encapsulation": "bridged", "impairments": {"both": {"cell_loss": "20 %"}}},
    "wrong CRC": {"encapsulation": "bridged", "impairments": {"both": {"payload_bit": "20 %"}}},
}


@pytest.mark.parametrize("name", FATES)
def test_a_fate_that_is_changed_or_missing_is_found(name: str, tmp_path: Path) -> None:
    network = small(**FATES[name])
    assert findings(network, tmp_path) == []
    fate = next(each for each in network.pdus if name in (each.comment or ""))
    network.pdus.remove(fate)
    assert findings(network, tmp_path)
    network.pdus.append(fate)
    whole = fate.comment or ""
    for words in (whole.replace("m1:eth0", "m7:eth0").replace("m0:eth0", "m7:eth0"), whole.replace(name, "VC full"),
                  whole.replace(" 1 of", " 2 of").replace('"lost_cells":1', '"lost_cells":2')
                  .replace("wrong CRC", "joined to the PDU before")):  # fmt: skip
        if words != whole:
            fate.comment = words
            assert findings(network, tmp_path), words
    fate.comment = whole
    fate.at += 1_000_000
    assert findings(network, tmp_path)


@pytest.mark.parametrize(("words", "found"), [("VC full", False), ("queue full", True), ("CLP 1", True)])
def test_what_a_queue_discards_for_certain_may_be_all_that_a_faulty_line_lacks(
    words: str, found: bool, tmp_path: Path
) -> None:
    network = Network(
        segment(
            2,
            encapsulation="bridged",
            line={"m0:eth0": "oc-3c", "m1:eth0": "2 Mbit/s"},
            queue={"cells": 10, "vc_cells": 1},
            impairments={"to m1:eth0": {"cell_loss": "0.1 %"}},
        )
    )
    network.hand(0, 0, address(1) + address(0) + b"\x08\x06" + bytes(100))
    network.run()
    [fate] = (each for each in network.pdus if each.comment)
    assert "1 of 3 cells, VC full" in (fate.comment or "")
    fate.comment = (fate.comment or "").replace("VC full", words)
    assert bool(findings(network, tmp_path)) == found


@pytest.mark.parametrize("words", ["cell loss", "header error", "partial packet discard"])
def test_a_loss_without_its_fault_is_found(words: str, tmp_path: Path) -> None:
    network = small(**FATES["queue full"])
    for each in network.pdus:
        each.comment = each.comment and each.comment.replace("queue full", words)
    found = findings(network, tmp_path)
    due = "dropped: " if words == "partial packet discard" else "what this segment's lines and queues do"
    assert any(field.endswith(": fate") and expected.startswith(due) for field, expected, _ in found)


def test_cells_up_to_the_limit_are_enough(tmp_path: Path) -> None:
    network = small(lane=STATIC, capture={"cells": True, "cells_most": 10})
    network.cells = sorted(network.cells, key=lambda each: each.at)[:10]
    network.cells[-1].comment = "capture ends: records_most 10"
    assert findings(network, tmp_path) == []
    network.cells[-1].comment = None
    assert [field for field, *_ in findings(network, tmp_path)] == ["wire/atm/elan.cells.pcapng: comment"]


ALIKE = {
    "before the switch": {"encapsulation": "bridged", "impairments": {"from m0:eth0": {"cell_loss": "20 %"}}},
    "behind the switch": {"lane": STATIC, "impairments": {"both": {"cell_loss": "20 %"}}},
    "by the queue": {
        "encapsulation": "bridged",
        "queue": {"cells": 2},
        "line": {"m0:eth0": "oc-3c", "m1:eth0": "taxi-100", "m2:eth0": "taxi-100"},
    },
}


def alike(written: dict[str, Any]) -> Network:
    """Two send the same frame all the time: what of one is lost, the next may replace."""
    network, random = Network(segment(3, **written)), Random(1)
    for number in range(80):
        for port in (0, 2):
            network.hand(
                number * 4_000 + random.randrange(900), port, address(1) + address(port) + b"\x08\x06" + bytes(60)
            )
    return network.run()


@pytest.mark.parametrize("name", ALIKE)
def test_cells_of_the_one_before_may_complete_a_pdu(name: str, tmp_path: Path) -> None:
    network = alike(ALIKE[name])
    assert network.completions
    found = law(network, tmp_path)
    assert found.findings.is_empty()
    for number, port in enumerate(network.ports):
        least, most = found.counted[port, "rx_cells"]
        assert least <= sum((each.direction, each.interface) == (IN, number) for each in network.cells) <= most


@pytest.mark.parametrize("name", ALIKE)
def test_a_completed_pdu_has_all_its_cells_and_no_other(name: str, tmp_path: Path) -> None:
    network = alike(ALIKE[name])
    at, number = network.completions[0]
    cells = [each for each in network.cells if (each.direction, each.interface) == (IN, number) and each.at <= at]
    for damaged in cells[-2:]:
        whole = damaged.data
        damaged.data = bytes([whole[0] ^ 1]) + whole[1:]
        assert findings(network, tmp_path)
        damaged.data = whole
        network.cells.remove(damaged)
        assert findings(network, tmp_path)
        network.cells.append(damaged)
    arrival = next(each for each in network.pdus if (each.at, each.interface, each.direction) == (at, number, IN))
    network.pdus.remove(arrival)
    assert findings(network, tmp_path)


def test_without_cells_pdus_alone_are_held(tmp_path: Path) -> None:
    network = small(lane=STATIC, capture={"cells": False})
    network.cells = []
    assert findings(network, tmp_path) == []
    pick(network.pdus, IN).at -= 1
    assert findings(network, tmp_path)


def test_counters_are_those_of_the_capture(tmp_path: Path) -> None:
    network = traffic(Network(segment(3, **SEGMENTS["mixed lines, tail"]), seed=1), 1, 40, 300_000)
    found = law(network, tmp_path)
    for number, port in enumerate(network.ports):
        sent = [record for record in network.pdus if (record.direction, record.interface) == (OUT, number)]
        came = [record for record in network.cells if (record.direction, record.interface) == (IN, number)]
        assert found.counted[port, "tx_cells"] == (sum(len(each.data) // 48 for each in sent),) * 2
        assert found.counted[port, "tx_pdus"] == (len(sent),) * 2
        assert found.counted[port, "rx_cells"] == (len(came),) * 2
        for other in range(3):
            if other != number:
                own = [record for record in sent if record.vci == 100 + other]
                lost = sum(pdu.lost[to] for pdu in network.sent for to, _ in pdu.targets
                           if (pdu.sender, to) == (number, other))  # fmt: skip
                cells = sum(len(each.data) // 48 for each in own)
                channel = f"{port} 0.{100 + other}"
                assert found.channels[channel, "cells_in"] == (cells, cells)
                assert found.channels[channel, "cells_out"] == (cells - lost, cells - lost)
                assert found.channels[channel, "dropped queue full"] == (lost, lost)
