# SPDX-License-Identifier: Apache-2.0
"""What RPyC's messages must say: versions, references, and what is not known before a side has said it.

A message is expected as a value with some `Unknown` in it: ids that a reply introduces, and texts that name an address.
`resolve` puts in what was said, if that can be.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sundial.workloads import functions
from sundial.workloads.rpyc.expect_brine import Kind, Label, Message, pack

SERVICE, PERSON, METHOD = "sundial.Functions", "sundial.Person", "builtins.method"
LIST, LIST_ITERATOR = "builtins.list", "builtins.list_iterator"
BUILTIN = frozenset({METHOD, LIST, LIST_ITERATOR})
"""Classes that every side knows by name; it asks for the methods of others."""
VARIANTS = ("numpy", "zip")
"""How the server computes a distance."""
EXPOSED = (
    *(f"exposed_{each.name}" for each in functions.FUNCTIONS if each.name != "distance"),
    *(f"exposed_distance_{variant}" for variant in reversed(VARIANTS)),
)
"""In the order of the server's class."""


@dataclass(frozen=True)
class Version:
    """What differs between versions of RPyC."""

    name: str

    @property
    def major(self) -> int:
        return int(self.name.split(".")[0])

    @property
    def bare_kind(self) -> bool:
        """A message's kind is a byte before the brine."""
        return self.major >= 6

    @property
    def bare_ids(self) -> bool:
        """An object is named by its id alone, not by its class, that class's id and its own."""
        return self.major < 5

    @property
    def knows_classes(self) -> bool:
        """A side asks once for the methods of a class, not for each reference to an object of it."""
        return self.major < 5

    @property
    def awaits_close(self) -> bool:
        """A client waits for the server to have closed."""
        return self.major >= 6

    @property
    def tells_version(self) -> bool:
        """Exceptions say which version has raised them."""
        return self.major >= 5

    def pack(self, message: Message) -> bytes:
        """The data of a message."""
        return pack(message, bare_kind=self.bare_kind)


MAJORS = (4, 5, 6)


def version(name: str) -> Version:
    """Raises ValueError for one whose messages are not known."""
    found = Version(name)
    if found.major not in MAJORS:
        raise ValueError(f"RPyC {name}: known are {', '.join(map(str, MAJORS))}")
    return found


@dataclass(frozen=True)
class Reference:
    """How the wire names an object."""

    class_name: str
    class_id: int
    """Left out by RPyC 4: 0."""
    object_id: int

    def introduced(self, version: Version) -> tuple[Any, ...]:
        """As its side passes it."""
        if not version.bare_ids:
            return (self.class_name, self.class_id, self.object_id)
        module, _, name = self.class_name.rpartition(".")
        return (self.object_id, name, module)

    def named(self, version: Version) -> Any:
        """As it is named afterwards."""
        return self.object_id if version.bare_ids else self.introduced(version)


def introduced(pack: Any, class_name: str, version: Version) -> Reference | None:
    """The reference of an object of a class as its side passed it; None where it passed none."""
    if not isinstance(pack, tuple) or len(pack) != 3:
        return None
    of_class, of_object = (0, pack[0]) if version.bare_ids else (pack[1], pack[2])
    if type(of_class) is not int or type(of_object) is not int or min(of_class, of_object - 1) < 0:
        return None
    found = Reference(class_name, of_class, of_object)
    return found if found.introduced(version) == pack else None


class Unlike(Exception):
    """What was said cannot be."""

    def __init__(self, field: str, expected: str, seen: str) -> None:
        super().__init__(field, expected, seen)
        self.field, self.expected, self.seen = field, expected, seen


@dataclass(frozen=True)
class Unknown:
    """A part of a message that its side alone knows."""

    settle: Callable[[Any], Any]
    """What it must be, where some value stands in its place. Raises Unlike where that cannot be."""


def resolve(expected: Any, seen: Any) -> Any:
    """An expected value without unknowns. Raises Unlike."""
    if isinstance(expected, Unknown):
        return expected.settle(seen)
    if not isinstance(expected, tuple):
        return expected
    seen = seen if isinstance(seen, tuple) and len(seen) == len(expected) else (None,) * len(expected)
    return tuple(resolve(one, other) for one, other in zip(expected, seen, strict=True))


# ---- values and references in their boxes ----


def plain(value: Any) -> bool:
    """Whether a value crosses by itself: an immutable one, and tuples of such."""
    if isinstance(value, tuple):
        return all(map(plain, value))
    return value is None or isinstance(value, bool | int | float | str | bytes)


def box(value: Any, boxed: Callable[[Any], Any]) -> tuple[Any, ...]:
    """A value in its box; `boxed`: the box of what does not cross by itself."""
    if plain(value):
        return (int(Label.VALUE), value)
    if isinstance(value, tuple):
        return (int(Label.TUPLE), tuple(box(each, boxed) for each in value))
    return tuple(boxed(value))


# ---- what a side says of its classes ----

_OBJECT = (
    ("__getstate__", "Helper for pickle."),
    (
        "__subclasshook__",
        "Abstract classes can override this to customize issubclass().\n\nThis is invoked early on by "
        "abc.ABCMeta.__subclasscheck__().\nIt should return True, False or NotImplemented.  If it returns\n"
        "NotImplemented, the normal algorithm is used.  Otherwise, it\noverrides the normal algorithm (and the outcome "
        "is cached).",
    ),
    (
        "__init_subclass__",
        "This method is called when a class is subclassed.\n\nThe default implementation does nothing. It may be\n"
        "overridden to extend subclasses.",
    ),
    ("__format__", "Default object formatter."),
    ("__sizeof__", "Size of object in memory, in bytes."),
)
"""What Python 3.11 says of `object`."""
_COMPARED = (
    ("__hash__", "Return hash(self)."),
    *(
        (f"__{name}__", f"Return self{sign}value.")
        for name, sign in (("lt", "<"), ("le", "<="), ("eq", "=="), ("ne", "!="), ("gt", ">"), ("ge", ">="))
    ),
)
"""Of it, too; from RPyC 5 on a reference has these by itself."""
_REFERENCED = (
    "\n\nObjects referenced over the connection are either local or remote. This class retains a strong reference to\n"
    "local objects that is deleted when the reference count is zero. Remote/proxied objects have a life-cycle\n"
    "controlled by a different address space. Since garbage collection is handled on the remote end, a weak reference\n"
    "is used for netrefs."
)
_PROTOCOL = (
    "The RPyC *connection* (AKA *protocol*).{}\n\n:param root: the :class:`~rpyc.core.service.Service` object to "
    "expose\n:param channel: the :class:`~rpyc.core.channel.Channel` over which messages are passed\n:param config: "
    "the connection's configuration dict (overriding parameters\n               from the :data:`default configuration "
    "<DEFAULT_CONFIG>`)"
)
_CONNECTED = (
    ("on_connect", "called when the connection is established"),
    (
        "on_disconnect",
        "called when the connection had already terminated for cleanup\n(must not perform any IO on the connection)",
    ),
    ("_rpyc_delattr", None),
    ("_rpyc_setattr", None),
)
_NAMED = (
    ("get_service_aliases", "returns a list of the aliases of this service"),
    ("get_service_name", "returns the canonical name of the service (which is its first\nalias)"),
)
_OWN = (*EXPOSED, "_echo", "_distance")


def methods(class_name: str, version: Version) -> tuple[tuple[str, str | None], ...]:
    """What a side answers that is asked for the methods of a class of ours: names, and what they say of themselves."""
    of_object = _OBJECT if version.major >= 5 else (*_COMPARED, *_OBJECT)
    if class_name != SERVICE:
        return of_object
    # What is callable but no function counts as a method before RPyC 6; its class methods do not.
    if version.major < 6:
        protocol = _PROTOCOL.format(_REFERENCED if version.major == 5 else "")
        of_service: tuple[tuple[str, str | None], ...] = (("_protocol", protocol), *_CONNECTED)
    else:
        of_service = (*_CONNECTED, *_NAMED, *((f"exposed_{name}", text) for name, text in _NAMED))
    return (*of_object, *of_service, *((name, None) for name in _OWN))


# ---- exceptions ----

_NOTE = re.compile(r"<built-in method add_note of AttributeError object at 0x[0-9a-f]+>")
_TRACE_BEGINS = "Traceback (most recent call last):\n"


def _note(seen: Any) -> Any:
    if not isinstance(seen, str) or not _NOTE.fullmatch(seen):
        raise Unlike("exception.add_note", "the name of a method and its address", repr(seen))
    return seen


def no_access(name: str, version: Version, text: Callable[[str], str | None]) -> tuple[Any, ...]:
    """The exception where an attribute is not there to be had. `text`: what must be its traceback, by what was said;
    None: the first one."""
    words = f"cannot access {name!r}"

    def trace(seen: Any) -> Any:
        ends = f"AttributeError: {words}\n"
        if not isinstance(seen, str) or not seen.startswith(_TRACE_BEGINS) or not seen.endswith(ends):
            raise Unlike("exception.traceback", f"{_TRACE_BEGINS!r} ... {ends!r}", repr(seen)[:120])
        before = text(seen)
        return seen if before is None else before

    attributes = (("add_note", Unknown(_note)), ("name", None), ("obj", None))
    if version.tells_version:
        attributes += (("_remote_version", version.name),)  # type: ignore[assignment]
    return (("builtins", "AttributeError"), (words,), attributes, Unknown(trace))


def words(message: Message) -> str:
    """A message in few words, for findings."""
    kind = {Kind.REQUEST: "request", Kind.REPLY: "reply", Kind.EXCEPTION: "exception"}.get(message.kind)  # type: ignore[call-overload]
    body = repr(message.body)
    return f"{kind or message.kind} {message.number} {body if len(body) <= 160 else body[:157] + '...'}"
