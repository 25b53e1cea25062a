# SPDX-License-Identifier: Apache-2.0
"""`fabric.json`: the wires of one run, resolved, in integer base units. Read by sundial-fabric."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sundial.seams.form import Device, DevicePort, Form, Instant, Items, Mac, Natural, OpenForm

Clock = Literal["virtual", "real"]


class Adapter(Form):
    """The transmit side of every network adapter on a segment."""

    ring_frames: Annotated[int, Field(ge=1)]
    """Frames that an adapter holds until they have left."""
    when_full: Literal["stop", "drop"]
    """Whether a machine must stop sending when the ring is full, or loses the frame."""


class MachinePort(Form):
    """Where a machine is plugged in."""

    machine: str
    nic: Natural
    """Its place among the machine's network adapters."""
    interface: Device
    mac: Mac
    local: str | None = None
    """The fabric's datagram socket for this port. Real time only."""
    remote: str | None = None
    """QEMU's."""


class PortOfDevice(Form):
    """Where a device is plugged in."""

    device: str
    nic: Natural
    """Its place among the device's ports."""
    interface: DevicePort
    mac: Mac


class Segment(OpenForm):
    """One segment. Its kind adds fields of its own (sundial/segments/KIND)."""

    name: str
    kind: str
    max_frame_bytes: Annotated[int, Field(ge=60, le=18188)]
    """From the destination address to the end of the payload, without FCS: 1514 for an MTU of 1500."""
    adapter: Adapter
    ports: Items[MachinePort | PortOfDevice]


class Machine(Form):
    """A machine; its place in the list is its number in shared memory and in the order of events."""

    name: str
    nics: Natural
    adapter_latency_ns: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """From handing a frame to one of its adapters until that may begin to send it. Left out where there is none."""


class Bridge(Form):
    """A device that forwards frames between segments; its place in the list is its number in the order of events."""

    name: str
    kind: Literal["bridge"]
    nics: Annotated[int, Field(ge=2)]
    forwarding_latency_ns: Instant
    """From a frame's arrival to its handing over to the other segment."""
    queue_frames: Annotated[int, Field(ge=1)]
    """Places of the transmit ring at each of its ports; a full ring drops."""
    mac_table_entries: Annotated[int, Field(ge=1)]
    ageing_ns: Instant


class Fabric(Form):
    """The fabric's configuration for one run."""

    version: Literal[1]
    clock: Clock
    seed: Natural
    """Of the random streams, one for each port and direction of each segment."""
    capture_dir: str
    """Where SEGMENT.pcapng, captures of a kind in a folder of its name, and counters.json are written."""
    control: str
    """The unix socket on which commands are taken."""
    linger_ns: Instant
    """How long the run goes on once the last of `done_machines` is done."""
    deadline_ns: Instant | None = None
    """When each of `done_machines` must be done; the run ends `linger_ns` after it at the latest. Left out where there
    is none."""
    done_machines: Items[str]
    """The run ends when each of them has said done; empty: when it is stopped."""
    machines: Items[Machine]
    devices: Items[Bridge] = ()
    """Left out where there are none."""
    segments: Items[Segment]
    shm: str | None = None
    """The shared memory of the run. Virtual time only."""

    def document(self) -> dict[str, Any]:
        """The configuration with the fields that were given, in the order in which they are written."""
        return self.model_dump(mode="json", exclude_unset=True)
