# SPDX-License-Identifier: Apache-2.0
"""B1 to B7: what the paper's abstract says, and whether it is so here. Pure."""

from __future__ import annotations

from sundial.papers.bilas97.results import FLOOR, Results
from sundial.reproduce.verdicts import Judged, Statement, Undecidable, listed

NULL_WITHIN = 0.1
"""Part of a printed time."""
RATIO_WITHIN = 0.25
"""Part of a printed ratio: the machines' speed is a power of two, theirs is not."""
SEVERAL = 3.0
OF_DMA = 0.95
LARGE = 65536


def _vrpc(results: Results) -> Judged:
    us, printed = results.null_us("vrpc"), results.paper.null_us.vrpc
    reason = f"printed {printed:g} us; {_software(results, 'vrpc')}"
    return Judged.of(abs(us - printed) <= NULL_WITHIN * printed, f"{us:.1f} us", reason)


def _shrimprpc(results: Results) -> Judged:
    us, printed = results.null_us("shrimprpc"), results.paper.null_us.shrimprpc
    reason = f"printed {printed:g} us; {_software(results, 'shrimprpc')}"
    return Judged.of(abs(us - printed) <= NULL_WITHIN * printed, f"{us:.2f} us", reason)


def _software(results: Results, system: str) -> str:
    parts = results.null[system].parts
    if parts is None:
        return "its parts were not measured"
    return f"{parts.wire_ns / 1e3:.2f} us of it are the hardware's, {parts.software_ns / 1e3:.2f} us software"


def _above(results: Results) -> Judged:
    floor = results.null.get(FLOOR)
    if floor is None or floor.parts is None:
        raise Undecidable("no word there and back was measured")
    least_us, printed = floor.parts.wire_ns / 1e3, results.paper.above_hardware_us
    above = results.null_us("shrimprpc") - least_us
    reason = f"of a word there and back the hardware takes {least_us:.2f} us; printed about {printed:g} us above"
    return Judged.of(0 <= above <= printed, f"{above:.2f} us above", reason)


def _several(results: Results) -> Judged:
    ratios = {name: results.null_us(key) / results.null_us("vrpc") for key, name in _KERNELS.items()}
    measured = ", ".join(f"{ratio:.1f} times ({name})" for name, ratio in ratios.items())
    reason = "over UDP and a 100 Mbit/s Ethernet, by a kernel; the paper says several, here that is 3 and more"
    return Judged.of(min(ratios.values()) >= SEVERAL, measured, reason)


_KERNELS = {"udp": "SSS-CORE", "linux-udp": "Linux"}


def _better(results: Results) -> Judged:
    ratio = results.null_us("vrpc") / results.null_us("shrimprpc")
    printed = results.paper.null_us.vrpc / results.paper.null_us.shrimprpc
    reason = f"printed {printed:.2f}"
    return Judged.of(abs(ratio - printed) <= RATIO_WITHIN * printed, f"{ratio:.2f} times", reason)


def _compatible(results: Results) -> Judged:
    if not results.compared:
        raise Undecidable("no run with vRPC has ended")
    calls = sum(each.calls for each in results.compared.values())
    mismatches = {run: each.mismatches for run, each in results.compared.items() if each.mismatches}
    reason = "each record must have the bytes that a datagram of Sun RPC over UDP has, as verification computes them"
    if mismatches:
        reason += f"; mismatches, of all systems of a run: {listed(f'{run} {n}' for run, n in mismatches.items())}"
    return Judged.of(not mismatches, f"{calls} calls, {sum(mismatches.values())} mismatches", reason)


def _bandwidth(results: Results) -> Judged:
    if results.dma_rate_bps is None:
        raise Undecidable("no run says at which rate memory takes what arrives")
    rate, most = results.stream("du", LARGE), results.dma_rate_bps / 8e6
    reason = f"the rate of memory is set to {most:g} MB/s, as printed; what is left is software and headers"
    return Judged.of(rate >= OF_DMA * most, f"{rate:.2f} MB/s, {rate / most:.1%}", reason)


STATEMENTS = (
    Statement("B1", "abstract", "A null call of vRPC takes about 33 us.", "within 10 %", _vrpc),
    Statement("B2", "abstract", "A null call of ShrimpRPC takes 9.5 us.", "within 10 %", _shrimprpc),
    Statement("B3", "abstract", "That is about 1 us above the hardware's minimum.", "at most 1 us above", _above),
    Statement("B4", "abstract", "vRPC is several times faster than other SunRPCs.", "3 times and more", _several),
    Statement("B5", "abstract", "ShrimpRPC performs much better than vRPC.", "3.47 times, within 25 %", _better),
    Statement("B6", "abstract", "vRPC is compatible with SunRPC.", "equal messages", _compatible),
    Statement("B7", "project", "Bandwidth is close to the hardware's peak.", "95 % of it, 64 KiB", _bandwidth),
)
