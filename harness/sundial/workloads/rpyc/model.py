# SPDX-License-Identifier: Apache-2.0
"""RPyC in scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from sundial.errors import BadInput
from sundial.model.fields import Flag, Marker, Whole, written
from sundial.model.images import ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.lists import CALLS_MOST, Words
from sundial.model.network import Network
from sundial.model.workload import Ends, Millis, Transport, Warmup, WorkloadBase, WorkloadKind
from sundial.workloads import function_words, functions, sockets
from sundial.workloads.rpyc.expect import MAJORS, VARIANTS
from sundial.workloads.server_death import ServerDeath

RPYC = Transport("rpyc", ("at_most_once",))
CONTAINERS = ("list", "tuple")
PORT = 18861
"""Of the library's servers."""
PACKAGE = "rpyc"


class _Flags(Marker):
    """true, false, or both in a list; the value is a tuple, each once."""

    ALLOWED = "true, false, or a list of both"
    _ONE = Flag()

    def parse(self, value: object) -> tuple[bool, ...]:
        items = value if isinstance(value, list | tuple) else [value]
        if not items or not all(isinstance(item, bool) for item in items):
            raise BadInput(f"{value!r} is neither true nor false", allowed=self.ALLOWED)
        return tuple(dict.fromkeys(items))

    def show(self, value: tuple[bool, ...]) -> list[bool]:
        return list(value)

    def schema(self) -> dict[str, Any]:
        one = self._ONE.schema()
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}], "x-allowed": self.ALLOWED}


class Rpyc(WorkloadBase):
    """Twelve functions over RPyC, from nothing to arrays and an object, as santos18 called them."""

    app: Literal["rpyc"]
    """RPyC calls."""
    functions: Annotated[tuple[str, ...], function_words.FunctionWords()] = written(function_words.ALL)
    """Functions, in sequence over one connection."""
    containers: Annotated[tuple[str, ...], Words(*CONTAINERS)] = written("list")
    """Containers of arrays: a list is sent as a reference, a tuple by value. Functions without arrays are called only
    with the first."""
    distance: Annotated[tuple[str, ...], Words(*VARIANTS)] = written("numpy")
    """Method of function 12 at the server: numpy.array of both arguments, or zip; each element of a list is a call
    back."""
    tcp_nodelay: Annotated[tuple[bool, ...], _Flags()] = (False,)
    """TCP_NODELAY on both ends; RPyC itself does not set it. Both values run in sequence, the second on the next
    port."""
    port: Annotated[int, Whole(1024, 65534)] = PORT
    """Port of the server; the second value of tcp_nodelay uses the next port."""
    calls: Annotated[int, Whole(1, CALLS_MOST)] = 10
    """Measured calls of each function."""
    warmup: Warmup = 1
    """Calls of each function before the measured ones."""
    die: ServerDeath | None = None
    """Kill the server. Steps that begin later find none: their calls fail."""
    total_timeout: Millis = written("25 s")
    """Time after which a request without answer fails, and its call; the rest of its connection is not verified."""

    @property
    def transports(self) -> tuple[str, ...]:
        return (RPYC.name,)

    @property
    def ports(self) -> dict[bool, int]:
        """Ports of its servers, by TCP_NODELAY."""
        return {nodelay: self.port + place for place, nodelay in enumerate(self.tcp_nodelay)}

    @property
    def tcp_ports(self) -> dict[int, object]:
        # One that is killed is its workload's own: an object is equal to itself alone.
        own = None if self.die is None else object()
        return {port: (self.app, nodelay, own) for nodelay, port in self.ports.items()}

    @property
    def turns(self) -> Iterator[tuple[str, str, list[str]]]:
        """Containers and ways to compute, and the functions for which each makes a difference."""
        for first, container in enumerate(self.containers):
            for second, variant in enumerate(self.distance):
                names = [name for name in self.functions if not first or functions.BY_NAME[name].contains]
                chosen = [name for name in names if not second or name == "distance"]
                if chosen:
                    yield container, variant, chosen


def packages(image: ImageKind) -> Mapping[str, str]:
    """The versions of Python's packages in an image."""
    return image.python or {}


class RpycKind:
    """RPyC, as the model asks for it."""

    order = 7
    model = Rpyc
    transports = (RPYC,)

    def runs_on(self, image: ImageKind) -> bool:
        return image.platform == sockets.LINUX and PACKAGE in packages(image)

    def check(self, workload: Rpyc, ends: Ends, path: Path) -> Iterator[Invalid]:
        server = packages(ends.image(ends.server))
        if "numpy" in workload.distance and "distance" in workload.functions and "numpy" not in server:
            what = f"{ends.server!r} boots {ends.image(ends.server).name}, which has no numpy"
            yield Invalid((*path, "distance"), what, "zip, or an image with numpy")
        for name, image in ends.images.items():
            version = packages(image)[PACKAGE]
            if int(version.split(".")[0]) not in MAJORS:
                what = f"{name!r} boots {image.name} with RPyC {version}, which is not supported"
                yield Invalid((*path, "app"), what, f"an image with RPyC {', '.join(map(str, MAJORS))}")
            elif version != server[PACKAGE]:
                what = f"RPyC {version} on {name!r} differs from {server[PACKAGE]} on {ends.server!r}"
                yield Invalid((*path, "clients"), what, "images with one version")
        yield from sockets.check_stream_mtu("RPyC", ends, path)

    def resolve(self, workload: Rpyc, ends: Ends, path: Path) -> tuple[Rpyc, list[Invalid]]:
        return workload, []

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        return iter(())


KIND: WorkloadKind[Rpyc] = RpycKind()
