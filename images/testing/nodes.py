# SPDX-License-Identifier: Apache-2.0
"""Machines that are nodes of memory-based communication."""

from pathlib import Path

from testing.guest import ICOUNT, Guest, interface, job


def node_job(number: int, peer: int, **fields: object) -> dict:
    mac = interface(peer, ())["mac"]
    others = [{"node": peer, "machine": f"n{peer}", "mac": mac}]
    return job(f"n{number}", [interface(number, (peer,))], node=number, epoch=100 + number, nodes=others, **fields)


def run_to_done(folder: Path, image: Path, what: dict, extra: tuple[str, ...] = ICOUNT) -> Guest:
    with Guest(folder, image, what, extra) as guest:
        guest.start((folder / "a", folder / "b"))
        guest.wait_for("done")
        capture = folder / "wire.pcap"  # the frame is sent behind the record
        guest.wait_until(lambda: b"sundial-done" in capture.read_bytes(), "done is not on the wire")
    return guest
