# SPDX-License-Identifier: Apache-2.0
"""Frames of HTTP/2 and the windows of flow control."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.expect import http2
from sundial.expect.http2 import Flag, Frame, Http2Error, Setting, Type, Windows

_FRAMES = st.builds(Frame, st.integers(0, 255), st.integers(0, 255), st.integers(0, 2**31 - 1), st.binary(max_size=70))


@given(st.lists(_FRAMES, max_size=8), st.integers(0, 40))
def test_frames_there_and_back(written: list[Frame], cut: int) -> None:
    octets = b"".join(frame.octets for frame in written)
    read = list(http2.frames(octets))
    assert [frame for _, frame in read] == written
    assert [end for end, _ in read] == [
        sum(len(frame.octets) for frame in written[: place + 1]) for place in range(len(written))
    ]
    # What has not come whole is not a frame yet.
    cut = min(cut, len(octets))
    whole = [frame for end, frame in read if end <= len(octets) - cut]
    assert [frame for _, frame in http2.frames(octets[: len(octets) - cut])] == whole


@pytest.mark.parametrize(
    ("frame", "octets"),
    [
        (http2.settings([(Setting.ENABLE_PUSH, 0), (0xFE03, 1)]), "00000c 04 00 00000000 000200000000 fe0300000001"),
        (http2.SETTINGS_ACK, "000000 04 01 00000000"),
        (http2.data(3, b"\0\0\0\0\0", last=True), "000005 00 01 00000003 0000000000"),
        (http2.data(3, b"", last=False), "000000 00 00 00000003"),
        (http2.headers(5, b"\xbe", last=True), "000001 01 05 00000005 be"),
        (http2.window_update(0, 5), "000004 08 00 00000000 00000005"),
        (http2.rst_stream(7, 8), "000004 03 00 00000007 00000008"),
        (http2.ping(bytes(8)), "000008 06 00 00000000 0000000000000000"),
        (http2.ping(bytes(8), ack=True), "000008 06 01 00000000 0000000000000000"),
        (http2.goaway(5, 0, b"bye"), "00000b 07 00 00000000 00000005 00000000 627965"),
    ],
)
def test_each_type(frame: Frame, octets: str) -> None:
    assert frame.octets == bytes.fromhex(octets.replace(" ", ""))


def test_what_is_read_of_settings_and_updates() -> None:
    assert http2.read_settings(http2.settings([(4, 65535), (6, 8192)])) == [(4, 65535), (6, 8192)]
    assert http2.read_increment(http2.window_update(3, 1605)) == 1605
    for wrong in (Frame(Type.SETTINGS, 0, 0, b"12345"), Frame(Type.SETTINGS, Flag.ACK, 0, bytes(6))):
        with pytest.raises(Http2Error, match="SETTINGS"):
            http2.read_settings(wrong)
    for wrong in (Frame(Type.WINDOW_UPDATE, 0, 0, bytes(4)), Frame(Type.WINDOW_UPDATE, 0, 0, b"\1")):
        with pytest.raises(Http2Error, match="increment"):
            http2.read_increment(wrong)


def test_content_is_without_padding_and_priority() -> None:
    assert Frame(Type.DATA, Flag.PADDED, 1, b"\x02ab\0\0").content == b"ab"
    assert Frame(Type.HEADERS, Flag.PRIORITY, 1, bytes(5) + b"\x82").content == b"\x82"
    assert Frame(Type.HEADERS, Flag.PADDED | Flag.PRIORITY, 1, b"\x01" + bytes(5) + b"\x82\0").content == b"\x82"
    assert Frame(Type.PUSH_PROMISE, 0, 1, bytes(4) + b"\x82").content == b"\x82"
    assert Frame(Type.PING, Flag.PADDED, 0, bytes(8)).content == bytes(8)
    for wrong in (b"", b"\x05abc"):
        with pytest.raises(Http2Error, match="padding"):
            _ = Frame(Type.DATA, Flag.PADDED, 1, wrong).content


def test_windows_are_those_of_the_connection_and_of_each_stream() -> None:
    windows = Windows()
    assert windows.send(1, 65535)
    assert not windows.send(3, 1)  # the connection has no room, though the stream has
    windows = Windows()
    assert windows.update(0, 100)
    assert windows.send(1, 65535)
    assert not windows.send(1, 1)
    assert windows.send(3, 99)
    assert windows.connection == 0
    assert windows.send(3, 0)
    windows.resize(65536)
    assert (windows.stream(1), windows.stream(5)) == (0, 65536)
    windows.forget(1)
    assert windows.stream(1) == 65536
    assert not windows.update(0, 2**31)
    assert not windows.update(3, 2**31 - 1)
