# SPDX-License-Identifier: Apache-2.0
"""The kernel's core: protection, tasks, threads, memory, time, and what it says when something fails."""

import re
from collections.abc import Callable
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

ODD_REGISTERS = ("stack-kernel", "stack-null", "nested-task")

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

BAD_FILES = {name: program for name, (program, _) in BAD_PROGRAMS.items()}

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

# What one boot runs one after another: each program of a test that needs no machine of its own.
TOGETHER = [
    *(f"bad {what}" for what in (*ENDS, *ODD_REGISTERS)),
    *BAD_PROGRAMS,
    *("pointers", "threads", "pthreads", "timers", "parent", "signals", "library"),
    *(f"attack {number}" for number in ATTACKS),
    *("fuzz 1 100000", "parent memory"),
]
Printed = Callable[[str], str]

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module", params=["together", pytest.param("alone", marks=pytest.mark.night)])
def printed(built: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Printed:
    """What a program prints, from the kernel's count of free pages before it to that after it."""
    folder = tmp_path_factory.mktemp("boot")
    consoles = machine.boot_list(built, folder, [] if request.param == "alone" else TOGETHER, BAD_FILES)

    def of_program(program: str) -> str:
        if request.param == "alone":
            return machine.boot(built, program, archive=folder / "archive")
        assert program in consoles, f"{program} was not started; the machine's last output:\n{[*consoles.values()][-1]}"
        return consoles[program]

    return of_program


def all_pages_back(console: str) -> bool:
    free = [int(pages) for pages in re.findall(r"^pages (\d+) of", console, re.MULTILINE)]
    return len(free) == 2 and free[0] == free[1]


@pytest.mark.parametrize("what", ENDS)
def test_a_task_that_does_what_it_must_not_ends_and_says_so(printed: Printed, what: str) -> None:
    console = printed(f"bad {what}")
    end = re.search(r"^task bad \(17\) ended: (.*), rip 0x[0-9a-f]+ rsp 0x[0-9a-f]+$", console, re.MULTILINE)
    assert end is not None, console
    assert ENDS[what] in end[1]
    assert '"type":"error","app":"bad"' in console
    assert "came back" not in console
    assert "PANIC" not in console
    assert all_pages_back(console)


@pytest.mark.parametrize("what", ODD_REGISTERS)
def test_odd_registers_at_a_system_call_do_no_harm(printed: Printed, what: str) -> None:
    console = printed(f"bad {what}")
    assert f"came back from {what}\n" in console
    assert all_pages_back(console)


def test_bad_pointers_get_errors_from_every_call(printed: Printed) -> None:
    check_pointers(printed("pointers"))


def test_bad_pointers_get_errors_where_the_cpu_keeps_the_kernel_out(built: Path) -> None:
    """By SMEP, SMAP and UMIP, which qemu64 does not have."""
    check_pointers(machine.boot(built, "pointers", cpu="max"))


@pytest.mark.night
def test_all_programs_give_their_pages_back_where_the_cpu_keeps_the_kernel_out(built: Path, tmp_path: Path) -> None:
    consoles = machine.boot_list(built, tmp_path, TOGETHER, BAD_FILES, cpu="max")
    assert [program for program in TOGETHER if not all_pages_back(consoles.get(program, ""))] == []


def check_pointers(console: str) -> None:
    assert re.search(r"calls \d{5} holes 0\n", console), console
    assert "thread at the kernel: -22\nwrite and execute: -22\ntext to writable: -22\nunmap info: -22\n" in console
    assert "unknown call: -38 -38\n" in console
    assert all_pages_back(console)


def test_threads_wait_wake_and_lose_the_cpu_in_turn(printed: Printed) -> None:
    console = printed("threads")
    assert "timeout -110\nslept 5 ms\nsecond word 1\n" in console
    assert "child 1 woke\n" in console
    assert "child 2 woke\n" in console
    slices = re.search(r"spinners took (\d+) slices", console)
    assert slices is not None, console
    assert 19 <= int(slices[1]) <= 21
    assert "lost" not in console
    assert "floats 1 1\n" in console


def test_posix_threads_exclude_meet_and_wake_one_another(printed: Printed) -> None:
    console = printed("pthreads")
    assert "joined 15, counted 300, overlaps 0\njoined 15, early 0\n" in console
    assert "one signal woke 1, the first of them 0\n" in console
    assert "joined 15, all woken 6\n" in console
    assert all_pages_back(console)


def test_waits_end_at_their_time(printed: Printed) -> None:
    assert "5 s are 5000 ms\nearly 0, late never\n" in printed("timers")


def test_tasks_end_alone_and_only_their_creator_kills_them(printed: Printed) -> None:
    console = printed("parent")
    assert "child five ended with 5\n" in console
    assert "child fault ended with -14\n" in console
    assert "stranger says -1\n" in console
    assert "kill an unknown task -2\nkill 0\nkilled status -256\ndummy state 0 1, kill 0\n" in console
    assert "no such program -2, bad name -22\n" in console
    assert console.rindex("parent ends") > console.index("ended: page fault")
    assert all_pages_back(console)


def test_csm_is_one_memory_for_two_tasks(printed: Printed) -> None:
    console = printed("parent")
    assert "csm 7\ncsm child 1 gone 9\n" in console
    assert "csm into dummy 0, again -17, execute -22\ncsm unmap 0\ncsm without owner -2\nparent ends\n" in console
    assert all_pages_back(console)


def test_memory_comes_back_after_a_thousand_tasks(printed: Printed) -> None:
    check_memory(printed("parent memory"))


@pytest.mark.night
@pytest.mark.parametrize("memory_mib", [16, 1024])
def test_memory_of_other_sizes_comes_back_after_a_thousand_tasks(built: Path, memory_mib: int) -> None:
    check_memory(machine.boot(built, "parent memory", memory_mib=memory_mib))


def check_memory(console: str) -> None:
    assert "created 1000\ntoo much 1\nmemory is used up\n" in console
    assert all_pages_back(console)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_ends_with_an_error(printed: Printed, attack: int) -> None:
    console = printed(f"attack {attack}")
    assert re.search(ATTACKS[attack] + f"attack {attack} is over\n", console), console
    assert "PANIC" not in console
    assert all_pages_back(console)


def test_random_calls_do_no_harm(printed: Printed) -> None:
    """Without MBCF and sockets; the million calls are in images/ssscore/tests. After each task, boot_main.c looks for
    a page that is writable and executable."""
    check_fuzz(printed("fuzz 1 100000"))


@pytest.mark.night
@pytest.mark.parametrize("seed", [2, 3])
def test_other_random_calls_do_no_harm(built: Path, seed: int) -> None:
    check_fuzz(machine.boot(built, f"fuzz {seed} 100000"))


def check_fuzz(console: str) -> None:
    assert re.search(r"^fuzz: 10[01]\d{3} calls by \d+ children$", console, re.MULTILINE), console[-2000:]
    assert "PANIC" not in console
    assert all_pages_back(console)


def test_signals_enter_waits_and_running_code_one_at_a_time(printed: Printed) -> None:
    console = printed("signals")
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


@pytest.mark.parametrize("name", BAD_PROGRAMS)
def test_a_bad_program_is_refused_with_its_reason(printed: Printed, name: str) -> None:
    _, reason = BAD_PROGRAMS[name]
    console = printed(name)
    error = NO_MEMORY if name == "large" else NOT_ALLOWED
    assert f"task {name} cannot start: {reason}\n" in console
    assert f"cannot start {name}: {error}\n" in console
    assert "PANIC: cannot start" in console or all_pages_back(console)  # alone, there is nothing else to run


GOOD = machine.elf([(READ | EXECUTE, 0x400000, EXIT)])  # the smallest program
BAD = machine.elf([(READ | EXECUTE, 0x400000, EXIT)], machine=3)


def test_programs_are_found_in_several_archives_up_to_the_damage(built: Path, tmp_path: Path) -> None:
    """All that test_initrd.py asks of single archives on the host, at once."""
    first = machine.newc({"first": GOOD, "changed": BAD})
    second = machine.newc({"a/folder/own": GOOD, "bin/changed": GOOD})
    # As machine.newc writes the mode: 8 is a file, 4 a folder.
    folder = machine.newc({"own": b""}).replace(b"000081ed", b"000041ed")
    programs = ["first", "own", "changed", "lost"]
    whole = machine.newc({"list": "".join(f"{name}\n" for name in programs).encode()})
    whole += first + bytes(4) + second + bytes(512 + 4) + folder
    consoles = machine.boot_archive(built, tmp_path, whole + b"garbage" + machine.newc({"lost": GOOD}))
    damaged = len(whole)
    assert f"initrd: damaged at byte {damaged}\n" in consoles[""]
    assert [name for name in programs if "cannot start" in consoles[name]] == ["lost"]
    assert "cannot start lost: -2\n" in consoles["lost"]
    assert all(all_pages_back(consoles[name]) for name in programs)


def test_the_library_does_what_its_names_say(printed: Printed) -> None:
    assert "library 0 failures\n" in printed("library")


def test_an_idle_node_has_no_timer(built: Path, tmp_path: Path) -> None:
    assert "initial_count = 0 current_count = 0" in machine.monitor(built, tmp_path, "parent sleep", "info lapic")


@pytest.mark.night
def test_two_boots_say_the_same(built: Path, tmp_path: Path) -> None:
    first, second = (machine.boot_list(built, tmp_path, TOGETHER, BAD_FILES) for _ in range(2))
    assert first == second


@pytest.mark.night
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
