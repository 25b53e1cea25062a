# SPDX-License-Identifier: Apache-2.0
"""gRPC over HTTP/2 (its PROTOCOL-HTTP2.md) as its core library speaks it: each frame of a connection and of a call.

What the standards leave open is what the library does: which headers it sends in which order, that it indexes them,
what it announces. It was measured with the two versions of `LIBRARIES`; there is no other source for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sundial.expect import http2
from sundial.expect.hpack import Field, Form, Header, Table, encode_field
from sundial.expect.http2 import Frame, Setting
from sundial.workloads import functions
from sundial.workloads.grpc.expect_languages import PYTHON, Language
from sundial.workloads.grpc.expect_protobuf import messages

PORT = 50051
SERVICE = "sundial.Functions"
PREFIX = 5
"""Octets before a message: whether it is compressed, and its length. So much a client lets a stream send, too, when
it begins to wait for a message."""
METHODS = {
    "void": "Void",
    "boolean": "Boolean",
    "int": "Int",
    "long": "Long",
    "string_32": "String32",
    "string_512": "String512",
    "string_1024": "String1024",
    "int_array": "IntArray",
    "float_array": "FloatArray",
    "string_array": "StringArray",
    "person": "Person",
    "distance": "Distance",
}
_PROBED_WINDOW = 4 * 1024 * 1024
"""With bandwidth probes gRPC begins with windows and frames of so many octets."""


@dataclass(frozen=True)
class Library:
    """A version of gRPC's core, as far as it shows."""

    version: str
    core: str
    """The number of the core itself, which user agents name beside the version."""
    header_list: int
    """Octets of headers that it takes."""
    message_always: bool
    """Its trailers have grpc-message, empty where all went well."""
    probed_less: int
    """So much less than 4 MiB are its windows with bandwidth probes."""


LIBRARIES = {
    each.version: each
    for each in (
        Library("1.51.1", "29.0.0", 8192, False, 1),
        Library("1.85.1", "58.0.0", 16384, True, 0),
    )
}
"""Those that were measured, by their version."""


def path_of(function: str) -> bytes:
    """What a request of a function calls."""
    return f"/{SERVICE}/{METHODS[function]}".encode()


FUNCTIONS = {path_of(name): name for name in functions.NAMES}
"""By path."""


def message(body: bytes) -> bytes:
    """A message that is not compressed."""
    return b"\0" + len(body).to_bytes(PREFIX - 1, "big") + body


def call_messages(function: str) -> tuple[bytes, bytes]:
    """What the DATA frames of request and reply carry."""
    request, reply = messages(function)
    return message(request), message(reply)


class Encoder:
    """gRPC's choices: what a table has is an index, all else a literal with its name that the table takes up."""

    def __init__(self) -> None:
        self.table = Table()

    def block(self, headers: Sequence[Header], *, plain: Sequence[Header] = ()) -> bytes:
        """A header block; `plain` are literals that no table takes up, at its end."""
        octets = bytearray()
        for header in headers:
            index = self.table.find(header)
            octets += encode_field(Field(Form.INDEXED if index else Form.INDEXING, index, header))
            if not index:
                self.table.add(header)
        return bytes(octets) + b"".join(encode_field(Field(Form.PLAIN, 0, header)) for header in plain)


_CONTENT_TYPE = (b"content-type", b"application/grpc")
_ENCODINGS = (b"grpc-accept-encoding", b"identity, deflate, gzip")


class Sender:
    """One end of a connection: the frames that it sends, in the order of its calls."""

    def __init__(self, library: Library, *, bdp_probe: bool = False) -> None:
        self.library = library
        self.bdp_probe = bdp_probe
        self.encoder = Encoder()

    def _settings(self, first: Sequence[tuple[int, int]]) -> Iterator[Frame]:
        window = _PROBED_WINDOW - self.library.probed_less if self.bdp_probe else http2.WINDOW
        yield http2.settings(
            [
                *first,
                (Setting.INITIAL_WINDOW_SIZE, window),
                *([(Setting.MAX_FRAME_SIZE, window)] if self.bdp_probe else []),
                (Setting.MAX_HEADER_LIST_SIZE, self.library.header_list),
                (Setting.GRPC_ALLOW_TRUE_BINARY_METADATA, 1),
            ]
        )
        if self.bdp_probe:
            yield http2.window_update(0, window - http2.WINDOW)


class Client(Sender):
    """A client of `authority`, whose library is bound to `language`."""

    def __init__(
        self, library: Library, authority: str, *, bdp_probe: bool = False, language: Language = PYTHON
    ) -> None:
        super().__init__(library, bdp_probe=bdp_probe)
        agent = f"grpc-{language.agent}/{library.version} grpc-c/{library.core} (linux; chttp2)"
        self._authority = (b":authority", authority.encode())
        self._agent = (b"user-agent", agent.encode())

    def opening(self) -> list[Frame]:
        """After the preface."""
        return list(self._settings([(Setting.ENABLE_PUSH, 0), (Setting.MAX_CONCURRENT_STREAMS, 0)]))

    def call(self, stream: int, function: str) -> list[Frame]:
        """The frames of a request on its stream."""
        block = self.encoder.block(
            [
                (b":path", path_of(function)),
                self._authority,
                (b":method", b"POST"),
                (b":scheme", b"http"),
                _CONTENT_TYPE,
                (b"te", b"trailers"),
                _ENCODINGS,
                self._agent,
            ]
        )
        return [
            http2.headers(stream, block, last=False),
            http2.window_update(stream, PREFIX),
            http2.data(stream, call_messages(function)[0], last=True),
        ]


class Server(Sender):
    """A server."""

    def opening(self) -> list[Frame]:
        """All it says before anyone calls."""
        return list(self._settings([]))

    def call(self, stream: int, function: str) -> list[Frame]:
        """The frames of a reply on its stream."""
        begin = self.encoder.block([(b":status", b"200"), _CONTENT_TYPE, _ENCODINGS])
        plain = [(b"grpc-message", b"")] if self.library.message_always else []
        end = self.encoder.block([(b"grpc-status", b"0")], plain=plain)
        return [
            http2.headers(stream, begin, last=False),
            http2.data(stream, call_messages(function)[1], last=False),
            http2.headers(stream, end, last=True),
        ]


def refusals(stream: int) -> list[Frame]:
    """What a server in C++ may answer on a stream that its client has given up: that it could not read the request, or
    that it has given it up, too. gRPC writes such headers, which are trailers as well, without the table."""
    said = ((b"13", b"Unable to parse request"), (b"1", b"CANCELLED"))
    blocks = (
        Encoder().block(
            [], plain=[(b":status", b"200"), _CONTENT_TYPE, (b"grpc-status", status), (b"grpc-message", text)]
        )
        for status, text in said
    )
    return [http2.headers(stream, block, last=True) for block in blocks]


def octets(frames: Sequence[Frame]) -> int:
    """On the wire."""
    return sum(len(frame.octets) for frame in frames)


CALL_UPDATE = octets([http2.window_update(0, 1)])
"""Octets of the window update of the connection that comes with each message."""


def call_octets(library: Library, function: str, calls_before: Sequence[str], authority: str) -> tuple[int, int]:
    """Octets of request and reply of a call in a connection that has made others before, window updates included."""
    ends = Client(library, authority), Server(library)
    for place, name in enumerate(calls_before):
        for end in ends:
            end.call(2 * place + 1, name)
    stream = 2 * len(calls_before) + 1
    request, reply = (octets(end.call(stream, function)) + CALL_UPDATE for end in ends)
    return request, reply
