# SPDX-License-Identifier: Apache-2.0
"""gRPC in scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from sundial.errors import BadInput
from sundial.model.fields import Flag, Marker, Whole, written
from sundial.model.finding import Finding, Path
from sundial.model.images import ImageKind
from sundial.model.lists import CALLS_MOST
from sundial.model.network import Network
from sundial.model.workload import Ends, Millis, Transport, Warmup, WorkloadBase, WorkloadKind
from sundial.workloads import functions, sockets
from sundial.workloads.grpc.expect import LIBRARIES, PORT

HTTP2 = Transport("grpc", ("at_most_once",))
PACKAGE = "grpc"
"""Images with Python say which version of it they have."""
_ALL = "all"
DEFAULT_PORT = PORT


class _Functions(Marker):
    """The twelve functions: `all`, their names, or their numbers; the value is a tuple of names, each once."""

    ALLOWED = f"all, or one or more of {', '.join(functions.NAMES)}, or their numbers from 1 to {len(functions.NAMES)}"

    def parse(self, value: object) -> tuple[str, ...]:
        parts = value.split(",") if isinstance(value, str) else value
        items = parts if isinstance(parts, list | tuple) else [parts]
        names = [self._name(item.strip() if isinstance(item, str) else item) for item in items]
        if not names:
            raise BadInput("the list is empty", allowed=self.ALLOWED)
        return functions.NAMES if _ALL in names else tuple(dict.fromkeys(names))

    def _name(self, item: object) -> str:
        if isinstance(item, str) and item.isdecimal():
            item = int(item)
        if isinstance(item, int) and not isinstance(item, bool) and 1 <= item <= len(functions.NAMES):
            return functions.NAMES[item - 1]
        if isinstance(item, str) and (item == _ALL or item in functions.BY_NAME):
            return item
        raise BadInput(f"{item!r} is not known", allowed=self.ALLOWED)

    def show(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def schema(self) -> dict[str, Any]:
        named = {"enum": list(functions.NAMES)}
        numbered = {"type": "integer", "minimum": 1, "maximum": len(functions.NAMES)}
        one = {"anyOf": [named, numbered]}
        many = {"type": "array", "items": one, "minItems": 1}
        return {"anyOf": [{"const": _ALL}, {"type": "string"}, one, many], "x-allowed": self.ALLOWED}


class Grpc(WorkloadBase):
    """Twelve functions over gRPC, from nothing to arrays and an object, as santos18 called them."""

    app: Literal["grpc"]
    """gRPC calls."""
    functions: Annotated[tuple[str, ...], _Functions()] = written(_ALL)
    """One after another over one connection."""
    port: Annotated[int, Whole(1024, 65535)] = PORT
    """The server's. Workloads whose server has other settings need ports of their own."""
    calls: Annotated[int, Whole(1, CALLS_MOST)] = 10
    """Measured calls of each function."""
    warmup: Warmup = 1
    """Calls of each function before those measured; the very first opens the connection."""
    max_workers: Annotated[int, Whole(1, 64)] = 1
    """Threads of the server that execute calls."""
    bdp_probe: Annotated[bool, Flag()] = False
    """gRPC estimates the bandwidth by PINGs that it sends when it sees fit."""
    control_frames: Literal["none", "counted"] = "none"
    """PING, RST_STREAM and GOAWAY. None: each is a mismatch, unless a connection broke or a call had had its time.
    Counted: they may be there, and window updates need only sum to what came."""
    total_timeout: Millis = written("25 s")
    """A call without a reply fails after this."""

    @property
    def transports(self) -> tuple[str, ...]:
        return (HTTP2.name,)


def version_of(image: ImageKind) -> str | None:
    """Of gRPC in an image; None: it has none."""
    return None if image.python is None else image.python.get(PACKAGE)


class GrpcKind:
    """gRPC, as the model asks for it."""

    order = 6
    model = Grpc
    transports = (HTTP2,)

    def runs_on(self, image: ImageKind) -> bool:
        return image.platform == sockets.LINUX and version_of(image) is not None

    def check(self, workload: Grpc, ends: Ends, path: Path) -> Iterator[Finding]:
        if workload.bdp_probe and workload.control_frames == "none":
            what = "bdp_probe with control_frames none: its PINGs would all be mismatches"
            yield Finding((*path, "bdp_probe"), what, "control_frames: counted")
        for name, image in ends.images.items():
            version = version_of(image)
            if version not in LIBRARIES:
                what = f"gRPC {version} on {name!r}, which boots {image.name}: its frames were not measured"
                yield Finding((*path, "app"), what, f"an image with gRPC {' or '.join(LIBRARIES)}")
        least = min((mtu for client in ends.clients for mtu in ends.mtus(client)), default=sockets.TCP_MTU_LEAST)
        if least < sockets.TCP_MTU_LEAST:
            what = f"gRPC over an MTU of {least} bytes: TCP's segments would have to be fragments"
            yield Finding((*path, "app"), what, f"an MTU of {sockets.TCP_MTU_LEAST} or more")

    def resolve(self, workload: Grpc, ends: Ends, path: Path) -> tuple[Grpc, list[Finding]]:
        return workload, []

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Finding]:
        served: dict[tuple[str, int], tuple[str, object]] = {}
        for number, workload in enumerate(workloads):
            port = getattr(workload, "port", None)
            if port is None or "udp" in workload.transports:
                continue
            settings = (workload.max_workers, workload.bdp_probe) if isinstance(workload, Grpc) else None
            known = served.setdefault((workload.server, port), (workload.app, settings))
            if isinstance(workload, Grpc) and known != (workload.app, settings):
                what = f"port {port} of {workload.server!r} is another workload's, whose server differs"
                yield Finding(("workloads", number, "port"), what, "a port of its own, or the same settings")


KIND: WorkloadKind[Grpc] = GrpcKind()
