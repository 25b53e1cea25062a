# SPDX-License-Identifier: Apache-2.0
"""The kernel's core: protection, tasks, threads, memory, time, and what it says when something fails."""

import re
from pathlib import Path

import conftest
import machine
import pytest

READ, WRITE, EXECUTE = 4, 2, 1
EXIT = bytes.fromhex("31c031ff0f05")  # xor eax, eax; xor edi, edi; syscall

ENDS = {
    "read-kernel": "page fault at 0xffffffff80100000 (read, not permitted)",
    "read-direct": "page fault at 0xffff800000100000 (read, not permitted)",
    "read-device": "page fault at 0xffff808000000000 (read, not permitted)",
    "write-kernel": "page fault at 0xffffffff80100000 (write, not permitted)",
    "execute-kernel": "page fault at 0xffffffff80100000 (execute, not permitted)",
    "read-null": "page fault at 0x0 (read, not mapped)",
    "write-text": "page fault at 0x400000 (write, not permitted)",
    "write-info": "page fault at 0x3ff000 (write, not permitted)",
    "read-hole": "general protection",
    "execute-hole": "general protection",
    "read-guard": "(read, not mapped)",
    "execute-guard": "(execute, not mapped)",
    "execute-data": "(execute, not permitted)",
    "execute-stack": "(execute, not permitted)",
    "execute-heap": "page fault at 0x40000000 (execute, not permitted)",
    "overflow": "(write, not mapped)",
    "privileged": "general protection",
    "port": "general protection",
    "interrupt": "general protection",
    "compatibility": "general protection",
    "single-step": "debug trap",
    "divide": "divide error",
}

pytestmark = pytest.mark.vm


def all_pages_back(console: str) -> bool:
    free = [int(pages) for pages in re.findall(r"^pages (\d+) of", console, re.MULTILINE)]
    return len(free) == 2 and free[0] == free[1]


@pytest.mark.parametrize("what", ENDS)
def test_a_task_that_does_what_it_must_not_ends_and_says_so(built: Path, what: str) -> None:
    console = machine.boot(built, f"bad {what}")
    end = re.search(r"^task bad \(17\) ended: (.*), rip 0x[0-9a-f]+ rsp 0x[0-9a-f]+$", console, re.MULTILINE)
    assert end is not None, console
    assert ENDS[what] in end[1]
    assert '"type":"error","app":"bad"' in console
    assert "came back" not in console
    assert "PANIC" not in console
    assert all_pages_back(console)


@pytest.mark.parametrize("what", ["stack-kernel", "stack-null", "nested-task"])
def test_odd_registers_at_a_system_call_do_no_harm(built: Path, what: str) -> None:
    console = machine.boot(built, f"bad {what}")
    assert f"came back from {what}\n" in console


@pytest.mark.parametrize("cpu", ["qemu64", "max"])  # the second has SMEP, SMAP and UMIP
def test_bad_pointers_get_errors_from_every_call(built: Path, cpu: str) -> None:
    console = machine.boot(built, "pointers", cpu=cpu)
    assert re.search(r"calls \d{5} holes 0\n", console), console
    assert "thread at the kernel: -22\nwrite and execute: -22\ntext to writable: -22\nunmap info: -22\n" in console
    assert "unknown call: -38 -38\n" in console
    assert all_pages_back(console)


def test_threads_wait_wake_and_lose_the_cpu_in_turn(built: Path) -> None:
    console = machine.boot(built, "threads")
    assert "timeout -110\nslept 5 ms\nsecond word 1\n" in console
    assert "child 1 woke\n" in console
    assert "child 2 woke\n" in console
    slices = re.search(r"spinners took (\d+) slices", console)
    assert slices is not None, console
    assert 19 <= int(slices[1]) <= 21
    assert "lost" not in console
    assert "floats 1 1\n" in console


def test_posix_threads_exclude_meet_and_wake_one_another(built: Path) -> None:
    console = machine.boot(built, "pthreads", seconds=60)
    assert "joined 15, counted 300, overlaps 0\njoined 15, early 0\n" in console
    assert "one signal woke 1, the first of them 0\n" in console
    assert "joined 15, all woken 6\n" in console
    assert all_pages_back(console)


def test_waits_end_at_their_time(built: Path) -> None:
    assert "5 s are 5000 ms\nearly 0, late never\n" in machine.boot(built, "timers")


def test_tasks_end_alone_and_only_their_creator_kills_them(built: Path) -> None:
    console = machine.boot(built, "parent")
    assert "child five ended with 5\n" in console
    assert "child fault ended with -14\n" in console
    assert "stranger says -1\n" in console
    assert "kill an unknown task -2\nkill 0\nkilled status -256\ndummy state 0 1, kill 0\n" in console
    assert "no such program -2, bad name -22\n" in console
    assert console.rindex("parent ends") > console.index("ended: page fault")
    assert all_pages_back(console)


def test_csm_is_one_memory_for_two_tasks(built: Path) -> None:
    console = machine.boot(built, "parent")
    assert "csm 7\ncsm child 1 gone 9\n" in console
    assert "csm into dummy 0, again -17, execute -22\ncsm unmap 0\ncsm without owner -2\nparent ends\n" in console
    assert all_pages_back(console)


@pytest.mark.parametrize("memory_mib", [16, 64, 1024])
def test_memory_comes_back_after_a_thousand_tasks(built: Path, memory_mib: int) -> None:
    console = machine.boot(built, "parent memory", memory_mib=memory_mib)
    assert "created 1000\ntoo much 1\nmemory is used up\n" in console
    assert all_pages_back(console)


# What each attack of tests/tasks/attack.c prints.
ATTACKS = {
    1: "mapped 65534 times, then -11\n",  # as many users as a page can have: owner, area, these
    2: "mapped \\d+ times, then -12\n",
    3: "mapped some pages 1, dummies -12\n",
    4: (
        "owner to execute -1\n"
        "map 0, to execute -1, to writable -1, mapped to execute -22\n"
        "map writable 0, to read 0, and back 0\n"
        "owner unmaps 0, the last but one 0, alone to writable -1, to execute -1\n"
        "own page to execute 0, shared -14, to writable 0, shared 1, to execute -1\n"
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_ends_with_an_error(built: Path, attack: int) -> None:
    console = machine.boot(built, f"attack {attack}")
    assert re.search(ATTACKS[attack] + f"attack {attack} is over\n", console), console
    assert "PANIC" not in console
    assert all_pages_back(console)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_calls_do_no_harm(built: Path, seed: int) -> None:
    """Without MBCF and sockets; the million calls are in images/ssscore/tests. After each task, boot_main.c looks for
    a page that is writable and executable."""
    console = machine.boot(built, f"fuzz {seed} 100000", seconds=120)
    assert re.search(r"^fuzz: 10[01]\d{3} calls by \d+ children$", console, re.MULTILINE), console[-2000:]
    assert "PANIC" not in console
    assert all_pages_back(console)


def test_signals_enter_waits_and_running_code_one_at_a_time(built: Path) -> None:
    console = machine.boot(built, "signals")
    assert (
        "bad setup -22 -22 -14\nreturn without a handler -22\nsetup 0\nsignal returns 0, handled 1\nxmm5 77\n"
        in console
    )
    assert "handled 3 nested 0\n" in console
    assert "wait continues to its time -110, 10 ms, handled 4\n" in console
    assert "wait sees what the handler wrote 0\nwait outlived by its handler -110\n1 3 4 2 5 6 7 \n" in console
    assert "came back" not in console


@pytest.mark.parametrize(
    ("how", "what", "where"),
    [
        ("panic-pointer", "page fault at 0x123000 (write, not mapped) in the kernel", "go_wrong"),
        ("panic-text", "page fault at 0xffffffff80100000 (write, not permitted) in the kernel", "go_wrong"),
        ("panic-data", "(execute, not permitted) in the kernel", "go_wrong"),
        ("panic-overflow", "double fault, error code 0x0 in the kernel", "overflow_stack"),
        ("no-such-task", "cannot start no-such-task: -2", "kernel_main"),
    ],
)
def test_a_panic_prints_registers_and_names_and_ends_the_machine(built: Path, how: str, what: str, where: str) -> None:
    console = machine.boot(built, how)  # fails if the machine continues
    report = console[console.index("PANIC: ") :]
    assert what in report.splitlines()[0]
    assert re.search(rf"^  0xffffffff801[0-9a-f]+ {where}\+0x[0-9a-f]+$", report, re.MULTILINE), report
    assert how == "no-such-task" or re.search(r"^rip ffffffff801", report, re.MULTILINE)


NO_MEMORY, NOT_ALLOWED = -12, -22
BAD_PROGRAMS = {
    "text": (b"hello\n", "it is not an ELF64 file"),
    "other-cpu": (
        machine.elf([(READ | EXECUTE, 0x400000, EXIT)], machine=183),
        "it is not a static executable for x86-64",
    ),
    "cut": (machine.elf([(READ | EXECUTE, 0x400000, EXIT * 100)])[:300], "a segment is outside of the file"),
    "writable": (machine.elf([(READ | WRITE | EXECUTE, 0x400000, EXIT)]), "a segment is writable and executable"),
    "kernel": (
        machine.elf([(READ | EXECUTE, 0xFFFFFFFF80100000, EXIT)], entry=0xFFFFFFFF80100000),
        "a segment is outside of the program's addresses",
    ),
    "wrapping": (
        machine.elf([(READ, 0x400000, EXIT)], memory=0xFFFFFFFFFFFFF000),
        "a segment is outside of the program's addresses",
    ),
    "overlapping": (
        machine.elf([(READ | EXECUTE, 0x400000, EXIT), (READ | WRITE, 0x400800, EXIT)]),
        "two segments share a page",
    ),
    "entry": (machine.elf([(READ, 0x400000, EXIT)]), "its entry is not in an executable segment"),
    "large": (machine.elf([(READ | EXECUTE, 0x400000, EXIT)], memory=0x3F000000), "no memory is left for it"),
}


@pytest.mark.parametrize("name", BAD_PROGRAMS)
def test_a_bad_program_is_refused_with_its_reason(built: Path, tmp_path: Path, name: str) -> None:
    program, reason = BAD_PROGRAMS[name]
    archive = tmp_path / "archive"
    archive.write_bytes(machine.newc({name: program}))
    console = machine.boot(built, name, archive=archive)
    error = NO_MEMORY if name == "large" else NOT_ALLOWED
    assert f"task {name} cannot start: {reason}\n" in console
    assert f"PANIC: cannot start {name}: {error}\n" in console


@pytest.mark.parametrize("cut", [0, 50, 111, 120])
def test_a_damaged_archive_has_no_tasks(built: Path, tmp_path: Path, cut: int) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(machine.newc({"good": machine.elf([(READ | EXECUTE, 0x400000, EXIT)])})[:cut])
    assert "PANIC: cannot start good: -2" in machine.boot(built, "good", archive=archive)


def test_the_smallest_program_runs(built: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(machine.newc({"a/folder/good": machine.elf([(READ | EXECUTE, 0x400000, EXIT)])}))
    assert all_pages_back(machine.boot(built, "good", archive=archive))


GOOD = machine.elf([(READ | EXECUTE, 0x400000, EXIT)])
BAD = machine.elf([(READ | EXECUTE, 0x400000, EXIT)], machine=3)


@pytest.mark.parametrize("zeros", [0, 4, 512 + 4])
def test_a_second_archive_adds_tasks_and_its_files_win(built: Path, tmp_path: Path, zeros: int) -> None:
    archive = tmp_path / "archive"
    second = machine.newc({"own": GOOD, "bin/changed": GOOD})
    archive.write_bytes(machine.newc({"first": GOOD, "changed": BAD}) + bytes(zeros) + second + bytes(3))
    for name in ("first", "own", "changed"):
        assert all_pages_back(machine.boot(built, name, archive=archive))


def test_behind_damage_nothing_is_read_and_it_says_so(built: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    whole = machine.newc({"first": GOOD})
    archive.write_bytes(whole + b"garbage" + machine.newc({"own": GOOD}))
    assert all_pages_back(machine.boot(built, "first", archive=archive))
    console = machine.boot(built, "own", archive=archive)
    assert f"initrd: damaged at byte {len(whole)}\n" in console
    assert "PANIC: cannot start own: -2" in console


def test_folders_and_links_are_no_tasks(built: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    # As machine.newc writes the mode: 8 is a file, 4 a folder, a a link.
    folder = machine.newc({"good": b""}).replace(b"000081ed", b"000041ed")
    link = machine.newc({"good": b"x"}).replace(b"000081ed", b"0000a1ed")
    archive.write_bytes(machine.newc({"good": GOOD}) + folder + link)
    assert all_pages_back(machine.boot(built, "good", archive=archive))


def test_more_files_than_there_is_room_for_stop_the_kernel(built: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(machine.newc({f"task-{number}": b"" for number in range(129)}))
    assert "PANIC: the initrd has more than 128 files" in machine.boot(built, "task-0", archive=archive)


def test_the_library_does_what_its_names_say(built: Path) -> None:
    assert "library 0 failures\n" in machine.boot(built, "library")


def test_an_idle_node_has_no_timer(built: Path) -> None:
    assert "initial_count = 0 current_count = 0" in machine.monitor(built, "parent sleep", "info lapic")


def test_two_boots_say_the_same(built: Path) -> None:
    assert machine.boot(built, "threads") == machine.boot(built, "threads")


def test_a_build_elsewhere_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    conftest.make(tmp_path, "check/core", "check/tasks.cpio")
    for name in ("core", "tasks.cpio"):
        assert (tmp_path / "check" / name).read_bytes() == (built / name).read_bytes()


# Upper limits in instructions, exact in one build; what each was when it was written is in README.md.
MOST = {
    "null_call": 52,
    "yield_alone": 175,
    "yield_to_thread": 185,
    "wait_poll": 155,
    "upcall_in": 135,
    "upcall_out": 115,
    "task_create": 24000,
}


def test_the_kernels_paths_stay_short(built: Path) -> None:
    console = machine.boot(built, "measure", shift=0)
    measured = {name: int(count) for name, count in re.findall(r"^(\w+) (\d+)$", console, re.MULTILINE)}
    assert {name: measured[name] for name, most in MOST.items() if measured[name] > most} == {}
