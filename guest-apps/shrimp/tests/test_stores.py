# SPDX-License-Identifier: Apache-2.0
"""What the adapter of a backplane is given: every store that compiled stubs make, one by one."""

from __future__ import annotations

import struct
import subprocess

import pytest
from every import BYTE, UNSIGNED
from reference import Many, flag, passed
from rig import SHRIMP, compiled, shrimpgen

DATA = Many(BYTE, 16384, True)
FIXED = Many(BYTE, 64, False)
NUMBERS = {"null": 0, "in": 1, "out": 2, "inout": 3, "in_64": 4, "out_64": 5, "inout_64": 6}
BUDGETS = {"null": 60, "in_64": 100, "inout_64": 120, "in": 120, "inout": 200}
"""Instructions of both ends, with 64 bytes; where these are counted, there are loops."""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    out = tmp_path_factory.mktemp("stores")
    done = shrimpgen(SHRIMP / "echo.x", out)
    assert (done.returncode, done.stderr) == (0, "")
    # As tasks of SSS-CORE are compiled.
    flags = ("-mgeneral-regs-only", "-fcf-protection=none", "-fno-stack-protector", "-fno-pie", "-no-pie")
    program = compiled(out, "stores", SHRIMP / "tests" / "stores.c", *out.glob("echo_shrimp_*.c"), flags=flags)
    ran = subprocess.run([program], capture_output=True, text=True, timeout=6000, check=False)
    assert ran.returncode == 0
    return [line.split() for line in ran.stdout.splitlines()]


def test_a_call_is_one_run_of_words_upwards_to_the_page_s_end(lines: list[list[str]]) -> None:
    calls: dict[tuple[str, int, int], dict[str, list[tuple[int, int, int]]]] = {}
    sequence = 0
    before = "reply"
    for word, name, size, *rest in lines:
        if word != "store":
            continue
        side, *numbers = rest
        # A new call begins with the first store to the call's buffer after a reply.
        sequence += (before, side) == ("reply", "call")
        before = side
        offset, width, value = map(int, numbers)
        sides = calls.setdefault((name, int(size), sequence), {"call": [], "reply": []})
        sides[side].append((offset, width, value))
    assert len(calls) == len(NUMBERS) * 12 == sequence
    for (name, length, number), both in calls.items():
        payload = [(i * 7 + (i >> 8) + 1) & 0xFF for i in range(length)]
        fixed = [(i * 7 + 1) & 0xFF for i in range(64)]
        data = passed((FIXED, fixed)) if name.endswith("64") else passed((DATA, payload))
        there = {"null": b"", "out": passed((UNSIGNED, 7), (UNSIGNED, length)), "out_64": b""}.get(name, data)
        back = data if "out" in name else b""
        for end, body, low in (("call", there, NUMBERS[name]), ("reply", back, 0)):
            expected = body + flag(number, low)
            places = list(range(len(expected), 0, -8))
            assert [place for place, _, _ in both[end]] == places, (name, length, end)
            assert {wide for _, wide, _ in both[end]} == {8}, (name, length, end)
            assert b"".join(struct.pack("<Q", stored) for _, _, stored in both[end]) == expected, (name, length, end)


def test_both_ends_keep_the_budgets(lines: list[list[str]]) -> None:
    counted = {name: (int(rest[0]), int(rest[1])) for word, name, _, *rest in lines if word == "instructions"}
    assert set(counted) == set(NUMBERS)
    over = {name: counted[name] for name, most in BUDGETS.items() if sum(counted[name]) > most}
    assert not over, counted
