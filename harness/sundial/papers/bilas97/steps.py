# SPDX-License-Identifier: Apache-2.0
"""The steps of a null call as a trace has them, under the names of what is done in them; pure.

A step is what is between two stamps, the beginning and end of a call, the store that a message ends with, and its
arrival. What has no name here keeps the functions between which it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sundial.observe.steps import ARROW, CALL, HANDED_IN, RECEIVE, RETURN, SEND, WIRE
from sundial.papers.bilas97.results import CLIENT, HARDWARE, SERVER, Divided, Part

REMAINDER = "in no step"

_END = " end"
_ADAPTER: Mapping[str, str] = {
    SEND: "adapter: the line is taken by what was stored before",
    WIRE: "wire, and the other end's memory",
}
_VRPC: Mapping[str, Mapping[str, str]] = {
    CLIENT: {
        f"{CALL}{ARROW}client_call": "the program: arguments of the call",
        f"client_call{ARROW}vrpc_line_begin": "prepare: a call among those under way, xid, length",
        f"vrpc_line_begin{ARROW}vrpc_line_begin{_END}": "prepare: room in the server's ring",
        f"vrpc_line_begin{_END}{ARROW}rpc_call_encode": "prepare: a stream of XDR there",
        f"rpc_call_encode{ARROW}{HANDED_IN}": "send: header and arguments in XDR, the ring's tail",
        RECEIVE: "receive: see the tail, take the record",
        f"rpc_call_reply{ARROW}rpc_call_reply{_END}": "return: header and results",
        f"rpc_call_reply{_END}{ARROW}finish{_END}": "return: give the record back, end the call",
        f"finish{_END}{ARROW}client_call{_END}": "return: from the library",
        f"client_call{_END}{ARROW}{RETURN}": "return: the program reads the clock",
    },
    SERVER: {
        RECEIVE: "receive: see the tail, take the record",
        f"svc_getreq_transport{ARROW}xdr_callmsg": "receive: a stream of XDR there",
        f"xdr_callmsg{ARROW}xdr_callmsg{_END}": "receive: header",
        f"xdr_callmsg{_END}{ARROW}echo_service_dispatch": "dispatch: credential, program and version",
        f"echo_service_dispatch{ARROW}serve_echo": "dispatch: the program",
        f"serve_echo{ARROW}transport_measure_reply": "procedure: arguments, the procedure itself",
        f"transport_measure_reply{ARROW}transport_measure_reply{_END}": "reply: its length",
        f"transport_measure_reply{_END}{ARROW}vrpc_line_begin": "reply: that it may be sent",
        f"vrpc_line_begin{ARROW}vrpc_line_begin{_END}": "reply: room in the client's ring",
        f"vrpc_line_begin{_END}{ARROW}transport_encode_reply": "reply: a stream of XDR there",
        f"transport_encode_reply{ARROW}vrpc_line_end": "reply: header and results in XDR",
        f"vrpc_line_end{ARROW}{HANDED_IN}": "reply: the ring's tail",
    },
}
_ENTRANCE = "shrimp_enter_echo_null"
_SHRIMPRPC: Mapping[str, Mapping[str, str]] = {
    CLIENT: {
        f"{CALL}{ARROW}{HANDED_IN}": "send: the stub, the flag with sequence and procedure",
        RECEIVE: "return: see the flag; the program reads the clock",
    },
    SERVER: {
        RECEIVE: "receive: see the flag; dispatch by the table",
        f"{_ENTRANCE}{ARROW}{_ENTRANCE}{_END}": "procedure: its entrance, the procedure itself",
        f"{_ENTRANCE}{_END}{ARROW}{HANDED_IN}": "reply: the flag with sequence and status",
    },
}
_NAMES = {"vrpc": _VRPC, "shrimprpc": _SHRIMPRPC}


def divided(system: str, steps: pl.DataFrame, machines: Mapping[str, str], call: tuple[int, float, float]) -> Divided:
    """One call. `steps`: its rows of steps.parquet; `machines`: client and server, by their names; `call`: its round
    trip in ns, and ns of an instruction of client and server."""
    rtt_ns, *instruction_ns = call
    per_instruction = dict(zip((CLIENT, SERVER), instruction_ns, strict=True))
    parts = []
    for node, step, begin_ns, end_ns in (
        steps.filter("on_path").sort("start_ns").select("node", "step", "start_ns", "end_ns").iter_rows()
    ):
        of = HARDWARE if step in _ADAPTER else machines[node]
        name = _ADAPTER.get(step) or _NAMES.get(system, {}).get(of, {}).get(step, "")
        took = end_ns - begin_ns
        parts.append(Part(name, of, took, None if of == HARDWARE else took / per_instruction[of], step))
    remainder = rtt_ns - sum(part.ns for part in parts)
    if remainder:
        parts.append(Part(REMAINDER, "", remainder, None))
    return Divided(tuple(parts), rtt_ns)
