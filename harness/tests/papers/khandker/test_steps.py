# SPDX-License-Identifier: Apache-2.0
"""Pieces between stamps get the paper's names, by what came before them and what follows."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from sundial.papers.khandker.results import step_table
from sundial.papers.khandker.steps import IDLE_TICK, KEPT, KERNEL, TICK, Occurrence, kernel_threads, named, renamed
from sundial.papers.khandker.steps import pieces_of as pieces

CALLER, KERNELS = 6, 7
LISTENER, EXECUTOR = 8, 9
ARROW = " → "
Stamp = tuple[int, str]
"""Thread and label; each takes 10 ns until the next."""


def rows(node: str, stamps: Sequence[Stamp], *, start: int = 0, asleep: Sequence[int] = ()) -> pl.DataFrame:
    """As steps.parquet has them. After the stamps at `asleep` the machine sleeps for 1000 ns."""
    found = []
    now = start
    for place, (thread, label) in enumerate(stamps):
        follows = "idle" if place in asleep else stamps[place + 1][1] if place + 1 < len(stamps) else "return"
        found.append((node, thread, f"{label}{ARROW}{follows}", now, now + 10, True))
        now += 1010 if place in asleep else 10
    names = {"node": pl.String, "thread": pl.Int32, "step": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64,
             "on_path": pl.Boolean}  # fmt: skip
    return pl.DataFrame(found, schema=names, orient="row")


def steps(table: pl.DataFrame) -> list[Occurrence]:
    return named(pieces(table), "client", kernel_threads(table))


def order(table: pl.DataFrame) -> list[str]:
    return [each.step for each in steps(table)]


def caller(*labels: str) -> list[Stamp]:
    return [(CALLER, label) for label in labels]


def kernel(*labels: str) -> list[Stamp]:
    return [(KERNELS, label) for label in labels]


SENDING = caller("xmitq_send", "runtime_send", "__x64_sys_sendmsg", "ip_output", "start_xmit", "start_xmit end",
                 "udp_sendmsg end", "runtime_send end", "xmitq_send end")  # fmt: skip
ASLEEP = [*caller("runtime_wait", "do_sys_poll", "__schedule"), *kernel("__schedule end")]
WOKEN = [
    *kernel("asm_common_interrupt", "skb_recv_done", "virtnet_poll", "ip_list_rcv", "sock_def_readable",
            "irqentry_exit end", "__schedule"),
    *caller("__schedule end", "do_sys_poll end", "runtime_wait end", "runtime_receive", "udp_recvmsg",
            "runtime_receive end", "client_machine_packet"),
]  # fmt: skip
BEGIN = caller("call", "put_i", "dce_marshal", "dce_transmit", "dce_copy", "dce_copy end", "xmitq_append",
               "xmitq_append end")  # fmt: skip
NULL_CALL = [*BEGIN, *SENDING, *ASLEEP, *WOKEN, *caller("put_i end")]
SLEEPS = len(BEGIN) + len(SENDING) + len(ASLEEP) - 1


def test_a_call_has_the_papers_steps_in_their_order() -> None:
    table = rows("client", NULL_CALL, asleep=[SLEEPS])
    assert order(table) == [
        "C1", "C5", "C6", "C7", "C8'", "C8''", "C9", "C10", "C11", "C14", "C15", "C16", "C17", "C18", "C19",
    ]  # fmt: skip


def test_the_steps_join_and_are_all_of_the_time() -> None:
    found = steps(rows("client", NULL_CALL, asleep=[SLEEPS]))
    assert sum(each.work_ns for each in found) == 10 * len(NULL_CALL)
    assert all(each.path_ns == each.work_ns for each in found)


def test_a_fack_leads_to_the_next_burst() -> None:
    after = [*WOKEN, *SENDING, *ASLEEP]
    table = rows("client", [*NULL_CALL[: SLEEPS + 1], *after], asleep=[SLEEPS, SLEEPS + len(after)])
    assert order(table)[-9:] == ["C18", "C22", "C7", "C8'", "C8''", "C9", "C10", "C11", "C14"]


def test_copies_after_the_first_send_are_c10_or_lead_back_to_c7() -> None:
    ahead = caller("dce_copy", "dce_copy end", "xmitq_append", "xmitq_append end")
    waits = order(rows("client", [*BEGIN, *SENDING, *ahead, *ASLEEP]))
    assert waits[-4:] == ["C9", "C10", "C11", "C14"]
    sends = order(rows("client", [*BEGIN, *SENDING, *ahead, *SENDING, *ASLEEP]))
    assert [step for step in sends if step.startswith("C")].count("C7") == 2
    assert sends[sends.index("C9") + 1] == "C7"


def test_an_interrupt_is_taken_out_of_the_step_that_it_falls_into() -> None:
    at = [label for _, label in SENDING].index("ip_output") + 1
    tick = caller("asm_common_interrupt", "irqentry_exit end")
    sent = caller("asm_common_interrupt", "skb_xmit_done", "irqentry_exit end")
    found = steps(rows("client", [*BEGIN, *SENDING[:at], *tick, *SENDING[at : at + 1], *sent, *SENDING[at + 1 :]]))
    in_driver = next(each for each in found if each.step == "C8'")
    (clock,) = [each for each in found if each.step == TICK]
    (done,) = [each for each in found if each.step == "C12"]
    assert (in_driver.work_ns, in_driver.end_ns - in_driver.start_ns) == (50, 80)
    assert (clock.work_ns, done.work_ns) == (10, 20)


def test_who_is_woken_by_a_tick_is_no_part_of_a_step() -> None:
    tick = [
        *caller("asm_common_interrupt", "__schedule"), *kernel("__schedule end", "__schedule"),
        *caller("__schedule end", "irqentry_exit_to_user_mode end"),
    ]  # fmt: skip
    stamps = [*BEGIN, *tick, *SENDING, *ASLEEP]
    found = step_table([steps(rows("client", stamps, asleep=[len(stamps) - 1]))])
    assert found["client", TICK].work_us == pytest.approx(0.03)
    assert found["client", KERNEL].work_us == pytest.approx(0.02)
    assert found["client", "C6"].work_us == pytest.approx(0.04)


def test_ticks_while_idle_are_told_apart_and_what_comes_meanwhile_is_received() -> None:
    tick = kernel("asm_common_interrupt", "irqentry_exit end")
    meanwhile = kernel("asm_common_interrupt", "asm_common_interrupt", "skb_recv_done", "irqentry_exit end",
                       "virtnet_poll", "sock_def_readable", "irqentry_exit end", "__schedule")  # fmt: skip
    stamps = [*NULL_CALL[: SLEEPS + 1], *tick, *meanwhile, *WOKEN[7:], *caller("put_i end")]
    found = order(rows("client", stamps, asleep=[SLEEPS, SLEEPS + 2]))
    assert found.count(IDLE_TICK) == 2
    assert found[-5:] == ["C15", "C16", "C17", "C18", "C19"]


def test_a_piece_that_the_path_divides_is_one() -> None:
    table = rows("client", [*BEGIN, *caller("asm_common_interrupt", "irqentry_exit end"), *SENDING])
    at = table["step"].str.starts_with("asm_common").to_list().index(True)
    first, second = table[at], table[at]
    begin = first["start_ns"][0]
    divided = pl.concat([
        table[:at], first.with_columns(end_ns=pl.lit(begin + 4, pl.Int64), on_path=pl.lit(False)),
        second.with_columns(start_ns=pl.lit(begin + 4, pl.Int64)), table[at + 1 :],
    ])  # fmt: skip
    assert order(divided) == order(table)
    (clock,) = [each for each in steps(divided) if each.step == TICK]
    assert (clock.work_ns, clock.path_ns) == (10, 6)


ARRIVES = [
    *kernel("asm_common_interrupt", "skb_recv_done", "virtnet_poll", "sock_def_readable", "irqentry_exit end",
            "__schedule"),
    *[(LISTENER, label) for label in ("__schedule end", "do_sys_poll end", "runtime_wait end", "udp_recvmsg",
                                      "runtime_receive end", "server_machine_packet")],
]  # fmt: skip
ANSWERS = ("xmitq_send", "__x64_sys_sendmsg", "start_xmit", "start_xmit end", "runtime_send end", "xmitq_send end")
BACK = [*[(LISTENER, label) for label in ("do_sys_poll", "__schedule")], *kernel("__schedule end")]
SENT = ["S8", "S9'", "S9''", "S10", "S11"]


def listener(*labels: str) -> list[Stamp]:
    return [(LISTENER, label) for label in labels]


def test_the_server_serves() -> None:
    runs = [*listener("__schedule"), *[(EXECUTOR, label) for label in ("__schedule end", "dce_procedure_put end")]]
    stamps = [*ARRIVES, *runs, *[(EXECUTOR, label) for label in ANSWERS], *BACK]
    found = order(rows("server", stamps, asleep=[len(stamps) - 1]))
    assert found == ["S1", "S2", "S3", "S4", "S5", "S7", *SENT, "S12", "idle"]


def test_the_server_acknowledges() -> None:
    stamps = [*ARRIVES, *listener("recvq_fack", "recvq_fack end", *ANSWERS), *BACK]
    found = order(rows("server", stamps, asleep=[len(stamps) - 1]))
    assert found == ["S1", "S2", "S3", "S4", "S15", *SENT, "S12", "idle"]


def test_the_server_keeps_a_fragment_and_takes_the_next_without_sleep() -> None:
    again = listener("runtime_wait", "do_sys_poll", "do_sys_poll end", "runtime_wait end", "udp_recvmsg",
                     "runtime_receive end", "recvq_fack", *ANSWERS)  # fmt: skip
    stamps = [*ARRIVES, *again, *BACK]
    found = order(rows("server", stamps, asleep=[len(stamps) - 1]))
    assert found == ["S1", "S2", "S3", "S4", KEPT, "S16", "S4", "S15", *SENT, "S12", "idle"]


def test_a_packet_that_completes_nothing_wakes_nobody() -> None:
    part = kernel("asm_common_interrupt", "skb_recv_done", "virtnet_poll", "irqentry_exit end")
    found = order(rows("server", [*kernel("__schedule end"), *part], asleep=[0]))
    assert found == ["idle", "S1 without waking"]


def test_the_picture_has_the_same_names_and_times() -> None:
    table = rows("client", NULL_CALL, start=500, asleep=[SLEEPS])
    drawn = renamed(table, "client", kernel_threads(table), 500)
    assert drawn["step"].to_list() == order(table)
    assert (drawn["start_ns"][0], drawn["end_ns"][-1]) == (0, 10 * len(NULL_CALL) + 1000)
