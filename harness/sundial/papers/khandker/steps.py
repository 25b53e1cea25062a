# SPDX-License-Identifier: Apache-2.0
"""What a traced call did, under the names that the paper's figures 1 and 2 have for it. Pure.

A machine's time in a call is cut at stamps (`steps.parquet`); here each piece gets the step that it is a part of, by
the stamps before it and the one that follows. An interrupt is a step of its own, taken out of the one that it falls
into. So the steps of a machine join without gap or overlap, as the pieces do.

Where Linux and our runtime do in one what the paper has as several, the first one's name stands for all: C1 for C1 to
C4 (binding, marshalling), C11 for C11 and C13 (one system call polls and sets the timer), C19 for C19 to C21, S12 for
S12 and S14. Text and figure 2 number the server's last steps differently; S16 is what table 2 counts by that name:
from a PDU on to the next one, which is there already, without sleep.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from sundial.observe.steps import ARROW, CALL, HANDED_IN, IDLE

INTERRUPT, INTERRUPT_ENDS = "asm_common_interrupt", ("irqentry_exit end", "irqentry_exit_to_user_mode end")
TICK, IDLE_TICK, KERNEL, OTHER = "tick", "tick when idle", "kernel threads", "other"
"""An interrupt of the clock, in a step or in none; threads of the kernel that have work of their own; what has no
name."""
KEPT = "kept"
"""A fragment that the server keeps, and that makes it send nothing: the paper has no name for it."""
CLIENT_STUBS = ("dce_null", "put_i")
PROCEDURES = ("dce_procedure_null", "dce_procedure_put")
CLIENT_STEPS = (
    "C1", "C5", "C6", "C7", "C8'", "C8''", "C9", "C10", "C11", "C12", "C14", "C15", "C15 without waking", "C16", "C17",
    "C18", "C19", "C22",
)  # fmt: skip
SERVER_STEPS = (
    "S1", "S1 without waking", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9'", "S9''", "S10", "S11", "S12", "S13",
    "S15", "S16", KEPT, "idle",
)  # fmt: skip


class Piece(NamedTuple):
    """A part of a call's time between two stamps."""

    node: str
    thread: int | None
    label: str
    """Of the stamp that it begins at."""
    follows: str
    start_ns: int
    end_ns: int
    on_path: bool


@dataclass(slots=True)
class Occurrence:
    """One time that a step was done."""

    node: str
    step: str
    start_ns: int
    end_ns: int
    work_ns: int = 0
    """Without the interrupts in it."""
    path_ns: int = 0
    """Of the work, what is on the path."""


@dataclass(frozen=True)
class Names:
    """Which names the steps of a machine have; the two differ in what is between receiving and sending."""

    receive: str
    wake: str
    woken: str
    take: str
    send: str
    system: str
    """With one stroke until the driver has the first frame, with two after that."""
    sent: str
    turn: str
    wait: str
    asleep: str
    transmitted: str


CLIENT = Names("C15", "C16", "C17", "C18", "C7", "C8", "C9", "C10", "C11", "C14", "C12")
SERVER = Names("S1", "S2", "S3", "S4", "S8", "S9", "S10", "S11", "S12", "idle", "S13")


def pieces_of(table: pl.DataFrame) -> list[Piece]:
    """Rows of steps.parquet of one call, in order of time."""
    rows = table.sort("start_ns", "end_ns", "node").select("node", "thread", "step", "start_ns", "end_ns", "on_path")
    found = []
    for node, thread, step, *rest in rows.iter_rows():
        label, _, follows = step.partition(ARROW)
        found.append(Piece(node, thread, label, follows, *rest))
    return found


def _continues(before: Piece, piece: Piece) -> bool:
    """Whether both are of one stamp: the path begins or ends between them."""
    same = (before.thread, before.label, before.follows, before.end_ns)
    return before.on_path != piece.on_path and same == (piece.thread, piece.label, piece.follows, piece.start_ns)


def kernel_threads(table: pl.DataFrame) -> frozenset[tuple[str, int]]:
    """Of rows of steps.parquet: contexts, with their machines, that are no program's. The idle one is; kernel threads
    are in the same."""
    idle = table.filter(pl.col("step").str.ends_with(f"{ARROW}{IDLE}")).select("node", "thread").unique()
    return frozenset(idle.iter_rows())


def named(pieces: Sequence[Piece], client: str, kernel: Collection[tuple[str, int]]) -> list[Occurrence]:
    """The steps of one call, of all its machines and wires, in order of time. `kernel`: of `kernel_threads`."""
    found: list[Occurrence] = []
    for node in dict.fromkeys(piece.node for piece in pieces):
        own = [piece for piece in pieces if piece.node == node]
        adapter = [piece for piece in own if piece.thread is None]
        found += [
            Occurrence(node, piece.label, piece.start_ns, piece.end_ns, *[piece.end_ns - piece.start_ns] * 2)
            for piece in adapter
        ]
        threads = {thread for name, thread in kernel if name == node}
        on_cpu = [piece for piece in own if piece.thread is not None]
        found += _Walk(on_cpu, CLIENT if node == client else SERVER, threads).occurrences(node)
    return sorted(found, key=lambda each: (each.start_ns, each.node))


def renamed(table: pl.DataFrame, client: str, kernel: Collection[tuple[str, int]], began_ns: int) -> pl.DataFrame:
    """Rows of steps.parquet of one call with the paper's names, since its beginning; what is one step, and on the path
    or not, is one row."""
    rows: list[tuple[str, str, int, int, bool]] = []
    pieces = pieces_of(table)
    for node in dict.fromkeys(piece.node for piece in pieces):
        own = [piece for piece in pieces if piece.node == node]
        threads = {thread for name, thread in kernel if name == node}
        on_cpu = [piece for piece in own if piece.thread is not None]
        names = [*(piece.label for piece in own if piece.thread is None)]
        listed = [*(piece for piece in own if piece.thread is None), *on_cpu]
        names += _Walk(on_cpu, CLIENT if node == client else SERVER, threads).names()
        for piece, name in sorted(zip(listed, names, strict=True), key=lambda each: each[0].start_ns):
            begin, end = piece.start_ns - began_ns, piece.end_ns - began_ns
            if rows and rows[-1][:2] == (node, name) and rows[-1][3:] == (begin, piece.on_path):
                rows[-1] = (node, name, rows[-1][2], end, piece.on_path)
            else:
                rows.append((node, name, begin, end, piece.on_path))
    names_of = {"node": pl.String, "step": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64, "on_path": pl.Boolean}
    return pl.DataFrame(rows, schema=names_of, orient="row").sort("start_ns", "node")


class _Walk:
    """One machine's pieces, from stamp to stamp."""

    def __init__(self, pieces: Sequence[Piece], names: Names, kernel: Collection[int]) -> None:
        self._pieces = pieces
        self._names = names
        self._kernel = kernel
        self._phase = OTHER if names is CLIENT else names.asleep
        self._interrupts: dict[int | None, list[str]] = {}
        """By thread: interrupts that it has not come back from, the innermost last."""
        self._has_sent = False

    def names(self) -> list[str]:
        """Of each piece, its step."""
        return [step for step, _ in self._levels()]

    def _levels(self) -> Iterator[tuple[str, tuple[int | None, int]]]:
        """Of each piece, its step, and what it belongs to: the runtime, the kernel's threads, or an interrupt."""
        before: Piece | None = None
        for place, piece in enumerate(self._pieces):
            if before is None or not _continues(before, piece):
                self._enter(place, piece)
            before = piece
            stack = self._interrupts.get(piece.thread, ())
            if stack:
                yield stack[-1], (piece.thread, len(stack))
            elif self._is_apart(piece):
                yield KERNEL, (None, 1)
            else:
                yield self._phase, (None, 0)

    def occurrences(self, node: str) -> list[Occurrence]:
        """Pieces of one step in a row are one; so are those that only interrupts are between."""
        last: dict[tuple[int | None, int], Occurrence] = {}
        done: list[Occurrence] = []
        before: Piece | None = None
        for piece, (step, level) in zip(self._pieces, self._levels(), strict=True):
            occurrence = last.get(level)
            begins = level[0] is not None and piece.label == INTERRUPT and not (before and _continues(before, piece))
            if occurrence is None or occurrence.step != step or begins:
                occurrence = Occurrence(node, step, piece.start_ns, piece.end_ns)
                last[level] = occurrence
                done.append(occurrence)
            before = piece
            occurrence.end_ns = piece.end_ns
            occurrence.work_ns += piece.end_ns - piece.start_ns
            occurrence.path_ns += piece.end_ns - piece.start_ns if piece.on_path else 0
        return done

    def _is_apart(self, piece: Piece) -> bool:
        """Whether a thread of the kernel has the processor for something that no step is made of."""
        if piece.thread not in self._kernel:
            return False
        if any(self._interrupts.values()):
            return True
        return piece.label == "__schedule end" and piece.follows not in (IDLE, "virtnet_poll")

    def _following(self, place: int, *labels: str) -> str:
        """The first of these labels behind a place."""
        for piece in self._pieces[place + 1 :]:
            if piece.label in labels:
                return piece.label
        return ""

    def _enter(self, place: int, piece: Piece) -> None:
        """What the machine does from this stamp on."""
        label, names = piece.label, self._names
        stack = self._interrupts.setdefault(piece.thread, [])
        if label == INTERRUPT:
            self._interrupted(place, stack)
        elif label in INTERRUPT_ENDS:
            del stack[-1:]
        elif stack:
            if label == "virtnet_poll":
                self._received_meanwhile(place, stack)
        elif label == "virtnet_poll":
            self._phase = self._receiving(place)
        elif label == "__schedule":
            self._switching()
        elif label == "__schedule end" and piece.follows == IDLE:
            self._phase = names.asleep
        elif label == "xmitq_send":
            self._phase = names.send
        elif label == "__x64_sys_sendmsg":
            self._phase = f"{names.system}'"
        elif label in ("start_xmit end", HANDED_IN):
            if self._phase == f"{names.system}'":
                self._phase = f"{names.system}''"
        elif label == "runtime_send end":
            self._phase, self._has_sent = names.sent, True
        elif label == "do_sys_poll":
            self._polling(place)
        elif label == "runtime_wait end" and self._phase == names.wake:
            self._phase = names.woken
        elif label == "udp_recvmsg":
            self._phase = names.take
        elif names is CLIENT:
            self._client(place, label)
        else:
            self._server(place, label)

    def _interrupted(self, place: int, stack: list[str]) -> None:
        kind = IDLE_TICK if self._phase == self._names.asleep else TICK
        for piece in self._pieces[place + 1 :]:
            if piece.label == "skb_xmit_done":
                kind = self._names.transmitted
            elif piece.label in ("skb_recv_done", "virtnet_poll"):
                kind = self._receiving(place)
            elif piece.label not in (*INTERRUPT_ENDS, INTERRUPT, "__schedule"):
                continue
            break
        if kind == self._names.receive and self._phase == self._names.asleep:
            self._phase = kind  # ends with the switch to whom it has woken, not with the interrupt
            if not stack:
                return
        stack.append(kind)

    def _received_meanwhile(self, place: int, stack: list[str]) -> None:
        """What has come during another interrupt is taken before that ends."""
        stack[-1] = self._receiving(place)
        if stack[-1] == self._names.receive and self._phase == self._names.asleep:
            self._phase = stack[-1]

    def _receiving(self, place: int) -> str:
        """Whether packets that are taken from the adapter complete a datagram that is waited for."""
        depth = 0
        for piece in self._pieces[place + 1 :]:
            depth += (piece.label == INTERRUPT) - (piece.label in INTERRUPT_ENDS)
            if piece.label == "sock_def_readable":
                return self._names.receive
            if depth < 0 or (depth == 0 and piece.label == "__schedule"):
                break
        return f"{self._names.receive} without waking"

    def _switching(self) -> None:
        names = self._names
        if self._phase == names.receive:
            self._phase = names.wake
        elif self._phase == names.wait or self._phase.endswith("without waking"):
            self._phase = names.asleep

    def _polling(self, place: int) -> None:
        """To sleep, or to what has come already."""
        depth = 0
        for piece in self._pieces[place + 1 :]:
            depth += (piece.label == INTERRUPT) - (piece.label in INTERRUPT_ENDS)
            if depth <= 0 and piece.label in ("__schedule", "do_sys_poll end"):
                if piece.label == "do_sys_poll end" and self._names is SERVER:
                    self._phase = "S16"
                    return
                break
        self._phase = self._names.wait

    def _client(self, place: int, label: str) -> None:
        if label in (CALL, *CLIENT_STUBS):
            self._phase = "C1"
        elif label in ("dce_copy", "dce_copy end", "xmitq_append") and not self._has_sent:
            self._phase = "C5" if label == "dce_copy" else "C6"
        elif label == "xmitq_send end":
            self._phase = "C9" if self._following(place, "xmitq_send", "do_sys_poll") == "xmitq_send" else "C10"
        elif label == "runtime_receive end":
            ends = [f"{name} end" for name in CLIENT_STUBS]
            self._phase = "C19" if self._following(place, "xmitq_send", "do_sys_poll", *ends) in ends else "C22"

    def _server(self, place: int, label: str) -> None:
        if label == "runtime_receive end":
            ran = [f"{name} end" for name in PROCEDURES]
            # Whether the receiving thread waits again before the procedure runs is the scheduler's choice.
            following = self._following(place, "recvq_fack", "runtime_receive", *ran)
            self._phase = "S15" if following == "recvq_fack" else "S5" if following in ran else KEPT
        elif label in PROCEDURES:
            self._phase = "S6"
        elif label in [f"{name} end" for name in PROCEDURES]:
            self._phase = "S7"
        elif label == "xmitq_send end":
            self._phase = "S11"
