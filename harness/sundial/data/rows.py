# SPDX-License-Identifier: Apache-2.0
"""What the columns of each table mean. A name that ends in a unit has it: `_ns`, `_bytes`."""

from __future__ import annotations

from sundial.described import Described


class Sample(Described):
    """One call, as its client recorded it."""

    scenario: str
    """Name of the scenario."""
    series: int
    """Repetition, from 0."""
    client: str
    """Machine that called."""
    server: str
    """Machine that was called."""
    transport: str
    """`udp`, `tcp`, or another one of the workload."""
    app: str
    """Program of the client."""
    procedure: str
    """What was called."""
    size: int
    """Bytes of argument."""
    thread: int
    """Thread of the client, from 0."""
    call: int
    """Number of the call within its batch, from 0."""
    warmup: bool
    """True for a call before the measured ones."""
    start_ns: int
    """When the call began, since zero of the run."""
    end_ns: int
    """When it ended."""
    rtt_ns: int
    """`end_ns` less `start_ns`."""
    xid: int | None
    """Number of the call in its messages; null if the protocol has none."""
    ok: bool
    """True if the right reply came."""
    retransmits: int
    """Times that the client sent the call again."""
    error: str | None
    """Why the call failed."""
    client_address: str
    """Address that called; over MBCF a node's number."""
    server_address: str
    """Address that was called, in the same way."""
    client_port: int
    """Port of the client; over MBCF its task."""
    server_port: int
    """Port of the server, in the same way."""
    batch: int
    """Batch of the client: calls of one kind, size, series and thread."""
    node_step: int
    """Step of the client's job, from 0."""


class Frame(Described):
    """One frame at one port; a frame occurs once for each port that saw it."""

    segment: str
    """Segment, which names the capture."""
    port: str
    """`MACHINE:INTERFACE`, or `SEGMENT:fate` for what the wire did to a frame."""
    frame: int
    """Number in the capture, from 1, as Wireshark shows it."""
    time_ns: int
    """Start of the transmission at the sending port, end of the last bit at a receiving one; since zero of the run."""
    direction: str | None
    """`out` or `in` of the port; null for what the wire did."""
    frame_bytes: int
    """Length without FCS."""
    ethertype: str | None
    """Type of the frame, in hexadecimal."""
    source: str | None
    """IP address of the sender."""
    target: str | None
    """IP address of the receiver."""
    protocol: int | None
    """Protocol above IP: 1 ICMP, 6 TCP, 17 UDP."""
    source_port: int | None
    """Null in fragments after the first."""
    target_port: int | None
    """Null in fragments after the first."""
    ip_id: int | None
    """Identification of the IP packet, which its fragments share."""
    fragment_bytes: int | None
    """Offset of the fragment in its packet."""
    more: bool | None
    """True if more fragments follow."""
    udp_bytes: int | None
    """Length field of UDP."""
    tcp_seq: int | None
    """Sequence number, as on the wire."""
    tcp_bytes: int | None
    """Payload of the segment."""
    tcp_flags: int | None
    """Flags, as a number."""
    fate: str | None
    """What the wire did: lost, corrupted, duplicated, collision, dropped."""
    comment: str | None
    """The packet comment: the fate in words and as a record."""


class Finding(Described):
    """One difference between the run and what is expected (verify.json has the first 1000)."""

    field: str
    """What differs."""
    expected: str
    """What is expected, as text."""
    seen: str
    """What was observed, as text."""
    capture: str | None
    """Capture of the frames."""
    frames: list[int]
    """Numbers of frames in that capture; in CSV with blanks between."""
    filter: str
    """Wireshark display filter that shows them."""
    client: str | None
    """Machine that called; null, like the next ones, if the finding belongs to no call."""
    server: str | None
    """Machine that was called."""
    app: str | None
    """Program of the client."""
    transport: str | None
    """Transport of the call."""
    procedure: str | None
    """What was called."""
    size: int | None
    """Bytes of argument."""
    series: int | None
    """Repetition."""
    thread: int | None
    """Thread of the client."""
    batch: int | None
    """Batch of the client."""
    call: int | None
    """Number of the call within its batch."""
    xid: int | None
    """Number of the call in its messages."""


class Step(Described):
    """One step of a traced call (`sundial run --trace steps`)."""

    call: int
    """Row of the table of samples, from 0."""
    node: str
    """Machine; empty on the wire."""
    thread: int | None
    """Thread of the machine's program, from 0."""
    step: str
    """Function, or what the step is on the wire."""
    occurrence: int
    """How often that step of the call came before, from 0."""
    start_ns: int
    """When it began, since zero of the run."""
    end_ns: int
    """When it ended."""
    on_path: bool
    """True on the critical path: those steps join without gaps and sum to the round trip."""
