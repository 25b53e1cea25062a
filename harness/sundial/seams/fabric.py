# SPDX-License-Identifier: Apache-2.0
"""`fabric.json`: the wires of one run, resolved, in integer base units. Read by sundial-fabric."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sundial.seams.form import Device, DevicePort, Form, Instant, Items, Mac, Natural, OpenForm

Clock = Literal["virtual", "real"]


class Adapter(Form):
    """Transmit side of every network adapter on a segment."""

    ring_frames: Annotated[int, Field(ge=1)]
    """Places in an adapter's transmit ring, in frames."""
    when_full: Literal["stop", "drop"]
    """Effect of a full ring: the machine must stop sending, or the frame is dropped."""


class MachinePort(Form):
    """Port of a machine."""

    machine: str
    nic: Natural
    """Index among the machine's network adapters."""
    interface: Device
    mac: Mac
    local: str | None = None
    """The fabric's datagram socket for this port. Real time only."""
    remote: str | None = None
    """QEMU's."""


class PortOfDevice(Form):
    """Port of a device."""

    device: str
    nic: Natural
    """Index among the device's ports."""
    interface: DevicePort
    mac: Mac


class Segment(OpenForm):
    """One segment. Its kind adds further fields (sundial/segments/KIND)."""

    name: str
    kind: str
    max_frame_bytes: Annotated[int, Field(ge=60, le=18188)]
    """Most bytes of a frame, from the destination address to the end of the payload, without FCS: 1514 for an MTU of
    1500."""
    adapter: Adapter
    ports: Items[MachinePort | PortOfDevice]


class Machine(Form):
    """A machine; its index in the list is its number in shared memory and in the order of events."""

    name: str
    nics: Natural
    off_ns: Instant | None = None
    """When its power is cut. Virtual time only; left out if it is not."""
    adapter_latency_ns: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """Time in ns from handing a frame to one of its adapters until that may begin to send it. Left out if 0."""


class Bridge(Form):
    """A device that forwards frames between segments; its index in the list is its number in the order of events."""

    name: str
    kind: Literal["bridge"]
    nics: Annotated[int, Field(ge=2)]
    forwarding_latency_ns: Instant
    """Time in ns from a frame's arrival until it is handed to the other segment."""
    queue_frames: Annotated[int, Field(ge=1)]
    """Places in the transmit ring at each of its ports, in frames; a full ring drops frames."""
    mac_table_entries: Annotated[int, Field(ge=1)]
    ageing_ns: Instant


class Fabric(Form):
    """The fabric's configuration for one run."""

    version: Literal[1]
    clock: Clock
    seed: Natural
    """Seed of the random streams, one for each port and direction of each segment."""
    capture_dir: str
    """Folder for SEGMENT.pcapng, for the captures of a kind (in a folder of its name) and for counters.json."""
    control: str
    """Unix socket for commands."""
    linger_ns: Instant
    """Time in ns that the run continues after the last of `done_machines` is done."""
    deadline_ns: Instant | None = None
    """Deadline of `done_machines`; the run ends `linger_ns` after it at the latest. Left out if there is none."""
    done_machines: Items[str]
    """Machines that must report done to end the run; empty: a command ends it."""
    machines: Items[Machine]
    devices: Items[Bridge] = ()
    """Devices; left out if there are none."""
    segments: Items[Segment]
    shm: str | None = None
    """Shared memory of the run. Virtual time only."""

    def document(self) -> dict[str, Any]:
        """The configuration with the fields that were given, in the order in which they are written."""
        return self.model_dump(mode="json", exclude_unset=True)
