# SPDX-License-Identifier: Apache-2.0
"""Tables of the page of khandker: printed beside measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sundial.papers.khandker import predict_sum, table2
from sundial.papers.khandker.counts import Policy
from sundial.papers.khandker.results import NULL, Latency, Rate, Results
from sundial.papers.khandker.sizes import LARGE
from sundial.papers.khandker.steps import CLIENT_STEPS, SERVER_STEPS
from sundial.report.tables import DASH, Column, Table, decimal, numbers, whole, words
from sundial.reproduce.page import table_of_captures

ONE_PDU = (NULL, 1392, LARGE)
"""Calls whose steps figures 1 and 2 show."""
BESIDE = ("tick", "tick when idle", "kernel threads", "other")


def machine_table(results: Results) -> Table:
    """Every speed that was tried, with what it leaves."""
    rows = []
    for tried in results.tried:
        taken = " (taken)" if tried.mips == results.best.mips else ""
        cells = []
        for (_, size), us in sorted(tried.measured.items()):
            printed = results.paper.measured_us(size)
            cells += [whole(us), f"{100 * (us / printed - 1):+.1f} %"]
        rows.append((f"{tried.mips.normalize():f}{taken}", *cells, decimal(tried.distance, 3)))
    head = (
        *words("mips"), *numbers("null (us)", "beside 6169", "4016 B (us)", "beside 11414"),
        *numbers("distance"),
    )  # fmt: skip
    return Table("Speeds", head, tuple(rows))


def latency_table(results: Results) -> Table:
    """Figure 3 in numbers; what table 2 and the text print of it."""
    paper = results.paper
    printed = {**dict(zip(paper.sizes, paper.measured, strict=True)), paper.text.most_size: paper.text.most_us}
    rows = []
    for size, seen in sorted(results.of("window").sizes.items()):
        said = printed.get(0 if size == NULL else size) if size != 0 else None
        ratio = f"{seen.mean_us / said:.2f}" if said else DASH
        rows.append(
            (
                "null" if size == NULL else whole(size), whole(seen.packets[0]), " ".join(map(str, seen.bursts[0])),
                whole(results.first_us.get(size)), whole(seen.mean_us), whole(seen.median_us),
                whole(min(seen.times_us)), whole(max(seen.times_us)), whole(said), ratio,
            )
        )  # fmt: skip
    head = (
        *words("Size"), *numbers("Packets"), *words("PDUs by burst"), *numbers("First (us)", "Later, mean (us)"),
        *numbers("median", "least", "most", "Printed (us)", "Ratio"),
    )  # fmt: skip
    return Table("Round trips, policy window", head, tuple(rows))


def threads_table(results: Results) -> Table:
    """Table 1, for each wire."""
    printed = results.paper.threads
    wires = list(results.rate_runs)
    threads = sorted({number for _, _, number in results.rates})
    rows = []
    for number in threads:
        of_paper = number <= len(printed.null_s)
        row = [whole(number), decimal(printed.null_s[number - 1], 3) if of_paper else DASH]
        row += [_rate(results, (wire, "null", number), lambda rate: decimal(1000 / rate.per_s, 3)) for wire in wires]
        row.append(whole(printed.null_calls_per_s[number - 1]) if of_paper else DASH)
        row += [_rate(results, (wire, "null", number), lambda rate: whole(rate.per_s)) for wire in wires]
        row.append(decimal(printed.put_s[number - 1], 3) if of_paper else DASH)
        row += [_rate(results, (wire, "put", number), lambda rate: decimal(1000 / rate.per_s, 3)) for wire in wires]
        row.append(decimal(printed.put_mbps[number - 1], 3) if of_paper else DASH)
        row += [_rate(results, (wire, "put", number), lambda rate: decimal(rate.mbps(LARGE), 3)) for wire in wires]
        rows.append(tuple(row))
    short = ["hub" if "base-t" in wire else "link" for wire in wires]
    head = numbers(
        "Threads", "null, s printed", *(f"s, {name}" for name in short), "calls/s printed",
        *(f"calls/s, {name}" for name in short), "4016 B, s printed", *(f"s, {name}" for name in short), "Mb/s printed",
        *(f"Mb/s, {name}" for name in short),
    )  # fmt: skip
    return Table("Time of 1000 calls by threads", head, tuple(rows))


def _rate(results: Results, of: tuple[str, str, int], shown: Callable[[Rate], str]) -> str:
    return DASH if of not in results.rates else shown(results.rates[of])


def steps_table(results: Results, machine: str) -> Table:
    """Figure 1 or 2: what a step costs once, printed beside measured, at the sizes of one PDU."""
    latency = results.of("window")
    printed = {each.step: each for each in results.paper.steps}
    rows = []
    for step in (*(CLIENT_STEPS if machine == "client" else SERVER_STEPS), *BESIDE):
        found = [latency.steps.get(size, {}).get((machine, step)) for size in ONE_PDU]
        larger = _of_larger(latency, machine, step)
        of_print = printed.get(step)
        if all(each is None for each in found) and larger is None and of_print is None:
            continue
        cells: list[str] = []
        for size, seen in zip(ONE_PDU, found, strict=True):
            cells.append(decimal(of_print.at(max(size, 0)), 0) if of_print else DASH)
            cells.append(decimal(seen.once_us, 0) if seen else DASH)
        if larger is not None and all(each is None for each in found):
            cells[-1] = decimal(larger, 0)
        null = found[0]
        path = f"{100 * null.path_us / null.work_us:.0f} %" if null and null.work_us else DASH
        rows.append((step, *cells, decimal(null.times, 1) if null else DASH, path, of_print.note if of_print else ""))
    head = (
        *words("Step"), *numbers("null, printed", "measured", "1392, printed", "measured", "4016, printed", "measured"),
        *numbers("times in a null call", "of it on the path"), Column("", "prose"),
    )  # fmt: skip
    return Table(f"Steps of the {machine} (us, once)", head, tuple(rows))


def _of_larger(latency: Latency, machine: str, step: str) -> float | None:
    """Of a step that calls of one PDU do not have: at the least size that has it."""
    for size in sorted(latency.steps):
        if size > LARGE and (seen := latency.steps[size].get((machine, step))) is not None:
            return seen.once_us
    return None


def sum_table(results: Results, policy: Policy) -> Table:
    """Table 2 with our unit costs: how often, and what it comes to."""
    latency, costs = results.of(policy), results.unit_costs()
    sizes = [size for size in results.paper.sizes if size in latency.sizes]
    columns = [predict_sum.parts(costs, size, policy) for size in sizes]
    keys = list(dict.fromkeys((part.device, part.step) for parts in columns for part in parts))
    order = {"client": 0, "network": 1, "server": 2}
    rows = []
    for device, step in sorted(keys, key=lambda key: order[key[0]]):
        cells = []
        for parts in columns:
            chosen = [part for part in parts if (part.device, part.step) == (device, step)]
            cells.append(" + ".join(f"{_count(part.count)} x {part.cost_us:.0f}" for part in chosen) or DASH)
        rows.append((device, step, *cells))
    said = {each.size: each for each in results.predicted(policy)}
    listed = [said[size] for size in sizes]
    rows += [
        ("", "sum", *(whole(each.sum_us) for each in listed)),
        ("", "replay", *(whole(each.replay_us) for each in listed)),
        ("", "measured", *(whole(each.measured_us) for each in listed)),
        ("", "error of the sum", *(f"{each.sum_error:+.2f} %" for each in listed)),
        ("", "error of the replay", *(f"{each.replay_error:+.2f} %" for each in listed)),
        *_printed_rows(results, sizes),
    ]
    head = (*words("Device", "Step"), *numbers(*(whole(size) if size else "0" for size in sizes)))
    return Table(f"Policy {policy}: times x unit cost (us)", head, tuple(rows))


def _printed_rows(results: Results, sizes: Iterable[int]) -> Iterator[tuple[str, ...]]:
    paper = results.paper
    places = [paper.sizes.index(size) for size in sizes]
    yield "", "printed: sum", *(whole(paper.calculated[place]) for place in places)
    yield "", "printed: measured", *(whole(paper.measured[place]) for place in places)
    yield "", "printed: error", *(f"{paper.error_pct[place]:+.2f} %" for place in places)


def _count(value: float) -> str:
    return f"{value:g}" if value == int(value) else f"{value:.2f}"


def predictions_table(results: Results) -> Table:
    """Both predictors at sizes that no unit cost is of."""
    rows = []
    alarms = []
    for policy in results.latency:
        for each in results.predicted(policy):
            where = "out of sample" if each.out_of_sample else "in the sample"
            rows.append(
                (
                    policy, whole(each.size), where, whole(each.measured_us), whole(each.sum_us),
                    f"{each.sum_error:+.2f} %", whole(each.replay_us), f"{each.replay_error:+.2f} %",
                )
            )  # fmt: skip
            if each.out_of_sample and (abs(each.sum_error) > 8.43 or abs(each.replay_error) > 2):
                alarms.append(len(rows) - 1)
    head = (
        *words("Policy"), *numbers("Size"), *words(""), *numbers("Measured (us)", "Sum (us)", "Error", "Replay (us)"),
        *numbers("Error"),
    )  # fmt: skip
    return Table("Predicted round trips", head, tuple(rows), frozenset(alarms))


def print_table(results: Results) -> Table:
    """The faults of the print."""
    rows = tuple((fault.where, fault.printed, fault.follows) for fault in table2.faults(results.paper))
    return Table("", (*words("Where"), Column("Printed", "prose"), Column("What follows otherwise", "prose")), rows)


def captures_table(results: Results) -> Table:
    """The runs behind all."""
    rows = [(each.run, [f"calls by size, policy {policy}"], each.captures) for policy, each in results.latency.items()]
    rows += [(run, [f"calls by threads, {wire}"], captures) for wire, (run, captures) in results.rate_runs.items()]
    return table_of_captures(rows, "What")
