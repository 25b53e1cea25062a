# SPDX-License-Identifier: Apache-2.0
"""What machines booted that was not just their image, in the report's tables."""

from __future__ import annotations

from sundial.report.tables_run import facts, hashes

KERNEL, INITRD, FILE = (letter * 64 for letter in "abc")
BOOT = {
    "kernel": KERNEL,
    "initrd": INITRD,
    "cmdline": "quiet loglevel=7",
    "kernel_release": None,
    "files": {"/etc/motd": {"sha256": FILE, "mode": "0644", "bytes": 6}},
}


def test_digests_and_command_line_of_a_machine_are_shown() -> None:
    record = {"boots": {"client": BOOT}, "images": {"linux": {"sha256": {"kernel": KERNEL}}}}
    assert hashes(record).rows == (
        ("image linux: kernel", KERNEL),
        ("client: kernel", KERNEL),
        ("client: initrd", INITRD),
        ("client: /etc/motd (0644)", FILE),
    )
    assert facts(record).rows[-1] == ("client: command line", "quiet loglevel=7")


def test_old_runs_and_junk_have_none() -> None:
    for boots in (None, {}, {"client": 5}, {"client": {"files": 5}}, {"client": {"files": {"/x": 5}}}):
        rows = [*hashes({"boots": boots}).rows, *facts({"boots": boots}).rows]
        assert all(isinstance(cell, str) for row in rows for cell in row)
