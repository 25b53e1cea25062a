# SPDX-License-Identifier: Apache-2.0
"""`sundial wireshark`: what is installed, and what Wireshark is answered."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from sundial.cli import rooms
from sundial.cli import wireshark as verb
from sundial.cli.extcap import Source, config, interfaces, is_of_port, link_types
from sundial.cli.open_ import viewer_command
from sundial.model.catalog import DISSECTORS
from sundial.plan.request import Kept
from sundial.report import viewer_profile
from tests.verify.bed import OUT, Record, capture
from tests.warm_tshark.reader import unprivileged

Call = Callable[..., Result]
NAMES = ["client:eth0", "server:eth0", "lan:fate"]
SEGMENT = Source("pair", "lan", None, 1, ("client:eth0", "server:eth0"))
PORT = Source("pair", "lan", "client:eth0", 1, ("client:eth0", "server:eth0"))
LUA = ".local/lib/wireshark/plugins"
FOLDERS = """Temp:                	/tmp
Personal configuration:	{home}/.config/wireshark
Personal Lua Plugins:	{home}/.local/lib/wireshark/plugins
Extcap path:         	{home}/extcap
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Wireshark's folders."""
    found = viewer_profile.places(viewer_profile.folders(FOLDERS.format(home=tmp_path)))
    assert found is not None
    monkeypatch.setattr(verb, "_places", lambda: found)
    return tmp_path


@pytest.fixture
def up(captures: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A topology with a segment of two ports that is up until its keeper ends."""
    (captures / "pair" / "wire").mkdir(parents=True)
    (captures / "pair" / "wire" / "lan.pcapng").write_bytes(capture(NAMES, [Record(0, 0, OUT, bytes(60))]))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as keeper:
        kept = Kept("pair", "real", captures / "pair", captures / "pair", keeper.pid, ())
        monkeypatch.setattr(rooms, "kept", lambda: [kept])
        yield keeper
        keeper.kill()


def test_interfaces_link_types_and_options_as_wireshark_reads_them() -> None:
    assert list(interfaces([SEGMENT, PORT], "1.2")) == [
        "extcap {version=1.2}{display=Sundial}",
        "interface {value=sundial:pair:lan}{display=Sundial: pair, segment lan}",
        "interface {value=sundial:pair:lan:client:eth0}{display=Sundial: pair, client:eth0 on lan}",
    ]
    assert list(link_types(SEGMENT)) == ["dlt {number=1}{name=EN10MB}{display=Ethernet}"]
    assert [line.partition("{value=")[2].partition("}")[0] for line in list(config(SEGMENT))[1:]] == [
        "all", "client:eth0", "server:eth0",
    ]  # fmt: skip
    assert list(config(PORT)) == []
    assert (is_of_port(SEGMENT.value), is_of_port(PORT.value)) == (False, True)


def test_what_is_up_is_listed(call: Call, up: subprocess.Popen[bytes]) -> None:
    lines = call("wireshark", "extcap", "--extcap-interfaces", "--extcap-version=4.0").stdout.splitlines()
    assert [line.partition("{value=")[2].partition("}")[0] for line in lines[1:]] == [
        "sundial:pair:lan", "sundial:pair:lan:client:eth0", "sundial:pair:lan:server:eth0",
    ]  # fmt: skip
    answer = call("wireshark", "extcap", "--extcap-dlts", "--extcap-interface", "sundial:pair:lan")
    assert answer.stdout.startswith("dlt {number=1}")
    answer = call("wireshark", "extcap", "--extcap-config", "--extcap-interface", "sundial:pair:lan")
    assert len(answer.stdout.splitlines()) == 4


def test_nothing_is_up(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "kept", list)
    assert len(call("wireshark", "extcap", "--extcap-interfaces").stdout.splitlines()) == 1
    result = call("wireshark", "extcap", "--extcap-dlts", "--extcap-interface", "sundial:pair:lan")
    assert (result.exit_code, "allowed: nothing is up" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("more", "records", "message"),
    [
        ((), 1, None),
        (("--at", "client:eth0"), 1, None),
        (("--at", "server:eth0"), 0, None),
        (("--at", "far:eth0"), 0, "'far:eth0' is not a port of lan; allowed: client:eth0, server:eth0"),
        (("--extcap-capture-filter", "tcp"), 0, "capture filter 'tcp' is not supported"),
    ],
)
def test_a_capture_goes_into_the_pipe_until_the_topology_is_down(
    call: Call, up: subprocess.Popen[bytes], tmp_path: Path, more: tuple[str, ...], records: int, message: str | None
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []

    def reads() -> None:
        with fifo.open("rb") as stream:
            read.append(stream.read())

    reader = threading.Thread(target=reads, daemon=True)
    if message is None:
        reader.start()
    threading.Timer(0.5, up.kill).start()
    result = call(
        "wireshark", "extcap", "--capture", "--extcap-interface", "sundial:pair:lan", "--fifo", str(fifo), *more
    )
    if message is not None:
        assert (result.exit_code, message in result.stderr) == (2, True)
        return
    assert result.exit_code == 0, result.output
    reader.join(10)
    assert read[0].count(bytes(60)) == records


def test_a_reader_that_stops_ends_it(call: Call, up: subprocess.Popen[bytes], tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: fifo.open("rb").close(), daemon=True)
    reader.start()
    words = ("--capture", "--extcap-interface", "sundial:pair:lan", "--fifo", str(fifo))
    threading.Timer(5, up.kill).start()
    assert call("wireshark", "extcap", *words).exit_code == 0
    assert call("wireshark", "extcap", *words[:3]).exit_code == 2


def test_what_is_installed_is_removed_again_and_nothing_else(call: Call, home: Path) -> None:
    printed = call("wireshark", "install", "--print").stdout.splitlines()
    assert not (home / "extcap").exists()
    result = call("wireshark", "install")
    assert (result.exit_code, result.stdout.splitlines()) == (0, printed)
    assert all(Path(line).is_file() for line in printed)
    assert os.access(home / "extcap" / "sundial", os.X_OK)
    assert call("wireshark", "install").exit_code == 0  # again
    profile = home / ".config" / "wireshark" / "profiles" / "Sundial"
    (profile / "recent").write_text("of the user\n")
    assert call("wireshark", "uninstall").stdout.splitlines() == printed
    assert [path.name for path in profile.iterdir()] == ["recent"]
    assert call("wireshark", "uninstall").stderr == "nothing was installed\n"


def test_a_file_of_somebody_elses_is_not_replaced(call: Call, home: Path) -> None:
    (home / LUA).mkdir(parents=True)
    (home / LUA / "sundial.lua").write_text("-- mine\n")
    result = call("wireshark", "install")
    assert (result.exit_code, "was not written by Sundial" in result.stderr) == (2, True)
    assert not (home / "extcap").exists()
    assert call("wireshark", "uninstall").stdout == ""
    assert (home / LUA / "sundial.lua").read_text() == "-- mine\n"


def test_a_folder_that_may_not_be_written_is_named(call: Call, home: Path) -> None:
    (home / "extcap").write_text("no folder\n")
    result = call("wireshark", "install")
    assert result.exit_code == 2
    assert "extcap/sundial: cannot be written: " in result.stderr
    assert "WIRESHARK_EXTCAP_DIR" in result.stderr


def test_a_users_own_folder_for_extcap_is_preferred() -> None:
    listed = viewer_profile.folders(FOLDERS.format(home="/h") + "Personal Extcap path:\t/h/own\n")
    found = viewer_profile.places(listed)
    assert found is not None
    assert found["extcap"] == Path("/h/own/sundial")
    assert viewer_profile.places({}) is None


def tshark(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(home), "WIRESHARK_CONFIG_DIR": str(home / ".config" / "wireshark")}
    return subprocess.run(
        [*unprivileged(), "tshark", *words], capture_output=True, text=True, check=False, env=environment
    )


def test_the_profile_shows_what_open_shows(call: Call, home: Path, tmp_path: Path) -> None:
    """Nothing of it is refused, and its columns are those of `open`."""
    call("wireshark", "install")
    file = Path(__file__).parents[1] / "verify" / "golden" / "run.client.pcapng"
    installed = tshark(tmp_path, "-C", "Sundial", "-r", str(file), "-c", "300")
    said = [line for line in installed.stderr.splitlines() if "root" not in line]
    assert (installed.returncode, said) == (0, [])
    by_words = viewer_command(["tshark"], file, file, None)
    assert installed.stdout == tshark(tmp_path, *by_words[1:], "-c", "300").stdout
    assert "0x6b0d8e13" in installed.stdout  # the column of calls


def test_dissectors_that_are_loaded_twice_are_loaded_once(tmp_path: Path) -> None:
    """By the installed loader, and by `sundial open`."""
    loader = tmp_path / "sundial.lua"
    loader.write_text(viewer_profile.loader(DISSECTORS))
    file = tmp_path / "lan.pcapng"
    file.write_bytes(capture(NAMES, [Record(0, 0, OUT, bytes(60))]))
    scripts = [part for path in (loader, *DISSECTORS) for part in ("-X", f"lua_script:{path}")]
    done = tshark(tmp_path, *scripts, "-r", str(file))
    assert done.returncode == 0
    assert "error" not in done.stderr.lower(), done.stderr
