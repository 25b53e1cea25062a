# SPDX-License-Identifier: Apache-2.0
"""K1 to K13: what the paper says, and whether it is so here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean

from sundial.papers.khandker.counts import bursts, pdus
from sundial.papers.khandker.results import NULL, POLICIES, Rate, Results
from sundial.papers.khandker.sizes import HUB, LARGE, LINK
from sundial.papers.khandker.steps import IDLE_TICK, SERVER
from sundial.reproduce.verdicts import UNDECIDABLE, Judged, Statement, Undecidable, listed

SUM_PCT = 8.43
"""The paper's worst error."""
REPLAY_PCT = 2.0
FIRST_WITHIN = 1 / 3
"""Part of the printed ratio of first by later calls."""
SATURATED = 0.97
"""Part of the greatest rate."""
FLAT = 0.95
GAIN_WITHIN = 0.1
WAITS = (4017, 12049, 28113, 60241)
"""Sizes with which a wait for a fack begins."""
OTHER_JUMPS = (8033, 16065, 20081, 24097, 32129, 48193, 64257)
"""A PDU more and no wait more."""
OF_PATH = 0.02
"""Of a step that hides at most so much is on the path."""
SERVED_US = ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9'", "S9''", "S10", "S11", "S12", "S13", "S14")
"""What a null call takes of the paper's server."""


def _null(results: Results) -> Judged:
    seen = results.of("window").seen(NULL)
    printed = results.paper.text.null_us
    least, most = min(printed) / 1e3, max(printed) / 1e3
    reason = f"printed {least:g} to {most:g} ms; the machines' speed is fitted to it, so it is not a test"
    return Judged(UNDECIDABLE, f"{seen.mean_us / 1e3:.2f} ms", reason)


def _first(results: Results) -> Judged:
    seen = results.of("window").seen(NULL)
    first_us = results.first_us.get(NULL)
    if first_us is None:
        raise Undecidable("no first null call of an activity was measured")
    text = results.paper.text
    printed = text.first_null_us / text.null_us[1]
    ratio = first_us / seen.mean_us
    reason = f"{first_us / 1e3:.2f} ms by {seen.mean_us / 1e3:.2f}; the server asks who_are_you in between"
    good = printed * (1 - FIRST_WITHIN) <= ratio <= printed * (1 + FIRST_WITHIN)
    return Judged.of(good, f"{ratio:.2f} times", reason)


def _largest(results: Results) -> Judged:
    text = results.paper.text
    seen = results.of("window").seen(text.most_size)
    off = 100 * (seen.mean_us / text.most_us - 1)
    exact = seen.packets == (text.most_packets,)
    mbps = 8 * text.most_size / seen.mean_us
    what = f"{listed(map(str, seen.packets))} packets, {seen.mean_us / 1e3:.2f} ms, {mbps:.2f} Mb/s"
    reason = f"packets {'as printed' if exact else f'not {text.most_packets}'}, time {off:+.1f} %"
    server = _server_us(results, text.most_size)
    reason += f"; the server works for {server / 1e3:.1f} ms of it, its clock's interrupts included"
    return Judged.of(exact and abs(off) <= SUM_PCT, what, reason)


def _jumps(results: Results) -> Judged:
    latency = results.of("window")
    wrong, steps = [], []
    for size in results.paper.text.jumps:
        before, after = latency.seen(size - 1), latency.seen(size)
        rise = after.mean_us - before.mean_us
        steps.append(rise)
        more = [late - early for early in before.packets for late in after.packets]
        if set(more) != {1}:
            wrong.append(f"{size}: {listed(map(str, sorted(set(more))))} packets more")
        if rise <= 0:
            wrong.append(f"{size}: {rise / 1e3:+.2f} ms")
    what = f"{len(steps)} jumps, {min(steps) / 1e3:+.2f} to {max(steps) / 1e3:+.2f} ms"
    reason = f"wrong: {listed(wrong)}" if wrong else "each is one packet more in the capture, and takes longer"
    return Judged.of(not wrong, what, reason)


def _waits(results: Results) -> Judged:
    latency = results.of("window")

    def rise(size: int) -> float:
        return (latency.seen(size).mean_us - latency.seen(size - 1).mean_us) / 1e3

    waits, others = {size: rise(size) for size in WAITS}, {size: rise(size) for size in OTHER_JUMPS}
    least, most = min(waits, key=lambda size: waits[size]), max(others, key=lambda size: others[size])
    more = all(len(bursts(pdus(size), "window")) > len(bursts(pdus(size - 1), "window")) for size in WAITS)
    captured = all(len(latency.seen(size).bursts[0]) > len(latency.seen(size - 1).bursts[0]) for size in WAITS)
    what = f"at least {waits[least]:+.2f} ms (at {least}) against at most {others[most]:+.2f} ms (at {most})"
    seen = "a burst more begins in the capture" if captured else "the capture has no burst more at one of them"
    return Judged.of(waits[least] > others[most] and more and captured, what, seen)


def _packets(results: Results) -> Judged:
    latency = results.of("window")
    expected: Mapping[int, tuple[int, ...]] = {1392: (1392,), LARGE: (1392, 1480, 1144)}
    wrong = [f"{size}: {latency.seen(size).data}" for size, data in expected.items() if latency.seen(size).data != data]
    small = latency.seen(6000).packets
    if small != (results.paper.text.packets_of_6000,):
        wrong.append(f"6000: {listed(map(str, small))} packets")
    sends = latency.seen(LARGE).bursts
    if sends != ((1,),):
        wrong.append(f"{LARGE}: {listed(map(str, sends))} PDUs")
    what = f"{LARGE}: {' / '.join(map(str, latency.seen(LARGE).data))}; 6000: {listed(map(str, small))} packets"
    return Judged.of(not wrong, what, f"wrong: {listed(wrong)}" if wrong else "as captured, each call")


def _window(results: Results) -> Judged:
    sizes = results.of("window").sizes
    wrong = [
        f"{size}: {listed(map(str, seen.bursts))}"
        for size, seen in sorted(sizes.items())
        if seen.bursts != (bursts(pdus(max(size, 0)), "window"),)
    ]
    largest = max(sizes)
    what = f"{' '.join(map(str, sizes[largest].bursts[0]))} PDUs at {largest} bytes"
    return Judged.of(not wrong, what, f"wrong: {listed(wrong)}" if wrong else f"{len(sizes)} sizes, each call")


def _model(results: Results) -> Judged:
    said, good = [], True
    for policy in POLICIES:
        predicted = [each for each in results.predicted(policy) if each.out_of_sample]
        if not predicted:
            raise Undecidable(f"no size that is predicted was measured with {policy}")
        sums = max(predicted, key=lambda each: abs(each.sum_error))
        replays = max(predicted, key=lambda each: abs(each.replay_error))
        good = good and abs(sums.sum_error) <= SUM_PCT and abs(replays.replay_error) <= REPLAY_PCT
        said.append(
            f"{policy}: sum {sums.sum_error:+.2f} % (at {sums.size}), replay {replays.replay_error:+.2f} % "
            f"(at {replays.size})"
        )
    reason = "worst errors of sizes that no unit cost is of; those of others are in table 2"
    return Judged.of(good, "; ".join(said), reason)


def saturated_at(rates: Mapping[int, Rate]) -> int:
    """The least number of threads that is as good as any."""
    most = max(rate.per_s for rate in rates.values())
    return min(threads for threads, rate in rates.items() if rate.per_s >= SATURATED * most)


def _server_us(results: Results, size: int) -> float:
    """What a call takes of the server's processor; falling asleep, and ticks meanwhile, are not of the call."""
    table = results.of("window").steps[size]
    idle = (SERVER.asleep, IDLE_TICK)
    return sum(seen.work_us for (node, step), seen in table.items() if node == "server" and step not in idle)


def _threads(results: Results) -> Judged:
    printed = results.paper.threads
    good, said, reasons = True, [], []
    for procedure, size, seconds, at in (("null", NULL, printed.null_s, 3), ("put", LARGE, printed.put_s, 4)):
        rates = results.series(HUB, procedure)
        best = max(rate.per_s for rate in rates.values())
        gain, last = best / rates[1].per_s, rates[max(rates)].per_s / best
        expected = max(seconds[0] / each for each in seconds)
        place = saturated_at(rates)
        good = good and place == at and abs(gain / expected - 1) <= GAIN_WITHIN and last >= FLAT
        said.append(f"{procedure}: at {place} threads, {gain:.2f} times, then {100 * (last - 1):+.0f} %")
        served, trip = _server_us(results, size), results.of("window").seen(size).mean_us
        reasons.append(
            f"the server works {served:.0f} of {trip:.0f} us of a call of {procedure}, {trip / served:.2f}, and "
            f"without pause needs {1e6 / best:.0f}"
        )
    served = sum(step.printed or 0 for step in results.paper.steps if step.step in SERVED_US)
    null = results.paper.measured_us(0)
    reasons.append(f"the paper's, a faster machine than its client, {served:.0f} of {null}: {null / served:.2f}")
    return Judged.of(good, "; ".join(said), "; ".join(reasons))


def _one_beats_four(results: Results) -> Judged:
    size = results.paper.text.most_size
    one = 8 * size / results.of("window").seen(size).mean_us
    rates = results.series(HUB, "put")
    most = max(rates, key=lambda threads: rates[threads].per_s)
    four = rates[most].mbps(LARGE)
    reason = f"{size} bytes by one thread against {LARGE} by {most}, of all the fastest"
    if any(wire == LINK for wire, _, _ in results.rates):
        link = max(rate.mbps(LARGE) for rate in results.series(LINK, "put").values())
        reason += f"; on a full-duplex link {link:.2f}"
    return Judged.of(
        one > four, f"{one:.2f} > {four:.2f} Mb/s" if one > four else f"{one:.2f}, {four:.2f} Mb/s", reason
    )


def _slack(results: Results) -> Judged:
    slack = results.of("window").slack_us
    if not slack:
        raise Undecidable("no null call was traced")
    late = sum(each <= 0 for each in slack)
    what = f"{min(slack):.0f} to {max(slack):.0f} us"
    reason = f"{len(slack)} null calls, {late} of which had the response before the client was idle"
    return Judged.of(not late, what, reason)


def _hidden(results: Results) -> Judged:
    latency = results.of("window")
    sizes = [size for size in sorted(latency.steps) if size > LARGE and pdus(size) > 1]
    one = latency.steps.get(LARGE, {}).get(("client", "C10"))
    several = [seen for size in sizes if (seen := latency.steps[size].get(("client", "C10"))) is not None]
    if one is None or not several:
        raise Undecidable("C10 was not seen at sizes of one and of several PDUs")
    longest = max(seen.work_us / len(bursts(pdus(size), "window")) for size, seen in zip(sizes, several, strict=False))
    shown = sum(seen.path_us for seen in several) / max(1.0, sum(seen.work_us for seen in several))
    what = f"C10 {one.once_us:.0f} us at {LARGE}, up to {longest:.0f} us a burst; {100 * shown:.1f} % of it on the path"
    reason = f"calls of {len(several)} sizes with several PDUs, {mean(s.work_us for s in several):.0f} us a call"
    return Judged.of(longest > 1.2 * one.once_us and shown <= OF_PATH, what, reason)


def _free(results: Results) -> Judged:
    twins = results.twins
    if twins is None or not twins.compared:
        raise Undecidable("the traced twin of the fitted run was not made")
    what = f"{twins.compared - len(twins.differ)} of {twins.compared} files are the same"
    reason = f"differ: {listed(twins.differ)}" if twins.differ else f"{twins.runs[1]} against {twins.runs[0]}"
    exact = [(each.exact, each.calls) for each in results.latency.values()]
    whole = all(one == every for one, every in exact)
    said = ", ".join(f"{one} of {every}" for one, every in exact)
    return Judged.of(not twins.differ and whole, what, f"{reason}; steps that sum to the round trip: {said} calls")


STATEMENTS: tuple[Statement[Results], ...] = (
    Statement("K1", "3", "a later null call takes 6.17 ms (or 6.19, 6.169, 6.262)", "fitted: no test", _null),
    Statement("K2", "3", "the first null call takes 18.63 ms, three times a later one",
              "the ratio, within a third of 3.0", _first),
    Statement("K3", "3", "64256 bytes are 48 packets and take 81.82 ms, 6.28 Mb/s",
              f"packets exactly, time within {SUM_PCT} %", _largest),
    Statement("K4", "3", "at ten sizes one byte more takes one packet more, and longer",
              "packets exactly; the mean round trip is longer", _jumps),
    Statement("K5", "3", "some jumps need one more wait for an acknowledgement",
              "those (4017, 12049, 28113, 60241) exceed those of a PDU more", _waits),
    Statement("K6", "", "1392 bytes fit in one packet, 4016 in one send as 1392, 1480, 1144; 6000 take five packets",
              "exactly, in the capture", _packets),
    Statement("K7", "", "the window begins with 4 KB, doubles with each acknowledgement, and ends at 32 KB",
              "bursts of 1, 2, 4, 8, 8 PDUs, in the capture", _window),
    Statement("K8", "table 2", "the calculated round trips are within 8.43 % of the measured ones",
              f"the sum within {SUM_PCT} %, the replay within {REPLAY_PCT:g} %", _model),
    Statement("K9", "4", "null calls saturate at three threads, 4016 bytes at four; then nothing changes",
              f"the same numbers, gains of 1.96 and 2.01 within {100 * GAIN_WITHIN:.0f} %, then down to {FLAT:.0%}",
              _threads),
    Statement("K10", "4", "one thread with 64256 bytes a call is faster than four with 4016", "so, on the hub",
              _one_beats_four),
    Statement("K11", "5", "C9 to C14 are not on the path of a null call",
              "the client sleeps when the response comes, in each call", _slack),
    Statement("K12", "", "copying beyond the first window makes C10 longer, not the call",
              f"C10 grows, and at most {OF_PATH:.0%} of it is on the path", _hidden),
    Statement("K13", "", "the instruments cost 0.44 us a reading, 4 us an event of the kernel", "here nothing", _free),
)  # fmt: skip
