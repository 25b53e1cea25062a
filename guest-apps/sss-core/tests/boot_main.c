/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's core alone, for tests: no device but the serial port, no network, no MBCF. The
 * command line names the first task and, after a space, its options; when no task is left, the
 * machine is switched off. With the command line `list`, the lines of the initrd's file `list` are
 * run one after another in the same way, and a program that cannot start does not stop the others.
 */
#include <stdarg.h>
#include <string.h>

#include "kernel/boot_info.h"
#include "kernel/console.h"
#include "kernel/cpu.h"
#include "kernel/gates.h"
#include "kernel/initrd.h"
#include "kernel/interrupt.h"
#include "kernel/jobfile.h"
#include "kernel/kformat.h"
#include "kernel/memory.h"
#include "kernel/node.h"
#include "kernel/paging.h"
#include "kernel/panic.h"
#include "kernel/records.h"
#include "kernel/runqueue.h"
#include "kernel/schedule.h"
#include "kernel/services.h"
#include "kernel/signal.h"
#include "kernel/sockets.h"
#include "kernel/task.h"
#include "kernel/task_table.h"
#include "kernel/timer.h"
#include "kernel/virtio_console.h"
#include "kernel/vmmc.h"
#include "sss/mbcf.h"

extern char kernel_begin[], kernel_data[];

enum { FIRST_ID = 17, LINE_BYTES = 256 };

static unsigned living;
static uint16_t next_id = FIRST_ID;
static const char *list; /* what is left of it; NULL: there is only the command line */
static size_t list_bytes;

static int open_id(struct task *task)
{
    (void)task;
    living++;
    return next_id++;
}

static void program_ended(struct timer *timer);
static struct timer at_end = {.expired = program_ended};

static void start(const char *line)
{
    char name[64];
    const char *options = strchr(line, ' ');
    size_t length = options == NULL ? strlen(line) : (size_t)(options - line);
    int result;

    if (length >= sizeof(name))
        panic("a program's name is longer than %zu bytes", sizeof(name) - 1);
    memcpy(name, line, length);
    name[length] = '\0';
    kprintf("pages %lu of %lu\n", pages_free(), pages_total());
    result = task_create(name, options == NULL ? NULL : options + 1, 0, NULL);
    if (result >= 0)
        return;
    if (list == NULL)
        panic("cannot start %s: %d", name, result);
    kprintf("cannot start %s: %d\n", name, result);
    timer_set(&at_end, now_ns());
}

/* The next line of the list; false: there is none. */
static bool next_line(char line[LINE_BYTES])
{
    const char *end = list_bytes == 0 ? NULL : memchr(list, '\n', list_bytes);
    size_t length;

    if (end == NULL)
        return false;
    length = (size_t)(end - list);
    if (length >= LINE_BYTES)
        panic("a line of the list is longer than %d bytes", LINE_BYTES - 1);
    memcpy(line, list, length);
    line[length] = '\0';
    list += length + 1;
    list_bytes -= length + 1;
    return true;
}

/* Each program of the list finds the ids of tasks as the first one does. */
static void start_next(void)
{
    char line[LINE_BYTES];

    if (!next_line(line)) {
        outw(0x604, 0x2000);
        return;
    }
    kprintf("program %s\n", line);
    next_id = FIRST_ID;
    start(line);
}

static void program_ended(struct timer *timer)
{
    (void)timer;
    kprintf("pages %lu of %lu\n", pages_free(), pages_total());
    start_next();
}

enum { AUDITED_PAGES = 1 << 18 }; /* of 1 GiB */
static uint8_t executable[AUDITED_PAGES / 8];

/* Calls `look` with each entry of the user half that maps a page. */
static void each_entry(const uint64_t *table, unsigned level, void (*look)(uint64_t entry))
{
    for (unsigned i = 0; i < (level == 4 ? 256 : 512); i++) {
        if ((table[i] & ENTRY_PRESENT) == 0)
            continue;
        if (level == 1)
            look(table[i]);
        else
            each_entry(direct(table[i] & ENTRY_ADDRESS), level - 1, look);
    }
}

static void note_executable(uint64_t entry)
{
    uint64_t page = (entry & ENTRY_ADDRESS) / PAGE;

    if ((entry & ENTRY_NO_EXECUTE) == 0)
        executable[page / 8] |= (uint8_t)(1u << page % 8);
}

static void check_writable(uint64_t entry)
{
    uint64_t page = (entry & ENTRY_ADDRESS) / PAGE;

    if ((entry & ENTRY_WRITE) != 0 && (executable[page / 8] >> page % 8 & 1) != 0)
        panic("page %lu is writable and executable", page);
}

/* No page is executable in one place and writable in another, whatever the tasks have done. */
static void audit(void)
{
    memset(executable, 0, sizeof(executable));
    for (unsigned i = 0; i < SSS_TASKS; i++)
        if (tasks[i] != NULL)
            each_entry(tasks[i]->pml4, 4, note_executable);
    for (unsigned i = 0; i < SSS_TASKS; i++)
        if (tasks[i] != NULL)
            each_entry(tasks[i]->pml4, 4, check_writable);
}

static void count_end(struct task *task)
{
    (void)task;
    audit();
    if (--living == 0)
        timer_set(&at_end, now_ns());
}

long node_operate(uint64_t operation)
{
    (void)operation;
    return -SSS_ENOSYS;
}

long node_operate_short(const uint64_t arguments[6])
{
    (void)arguments;
    return -SSS_ENOSYS;
}

/* Stands in for MBCF: SSS_MB_KEY sets up signals, SSS_MB_TASKQUE signals the caller. */
long node_call(unsigned call, const uint64_t arguments[6])
{
    if (call == SSS_MB_KEY)
        return signal_setup(arguments[0], arguments[1]);
    if (call == SSS_MB_TASKQUE) {
        if (arguments[0] != 0)
            return -SSS_ENOENT;
        task_signalled(task_current(), arguments[1]);
        return 0;
    }
    return -SSS_ENOSYS;
}

long sockets_call(unsigned call, const uint64_t arguments[6])
{
    (void)call;
    (void)arguments;
    return -SSS_ENOSYS;
}

long vmmc_call(unsigned call, const uint64_t arguments[6])
{
    (void)call;
    (void)arguments;
    return -SSS_ENOSYS;
}

struct console_port *virtio_console_port(const char *name)
{
    return (struct console_port *)name;
}

bool virtio_console_write(struct console_port *port, const char *text, size_t length)
{
    (void)port;
    console_write("record ", 7);
    console_write(text, length);
    return true;
}

void virtio_console_flush(struct console_port *port)
{
    (void)port;
}

void console_write(const char *text, size_t length)
{
    while (length-- != 0)
        outb(0x3f8, (uint8_t)*text++);
}

void kprintf(const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    kvsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    console_write(text, strlen(text));
}

const char *job_text(size_t *length)
{
    *length = 2;
    return "{}";
}

void system_done(int status)
{
    kprintf("done %d\n", status);
}

void system_restart(uint64_t next)
{
    (void)next;
    tasks_forget();
}

static int overflow_stack(volatile char *below)
{
    volatile char frame[1024];

    frame[0] = *below;
    return (frame[0] != 1 ? overflow_stack(frame) : 0) + frame[0];
}

/* Instead of a task the command line may ask for a fault in the kernel. */
static __attribute__((noinline)) void go_wrong(const char *how)
{
    char start = 0;

    if (strcmp(how, "panic-pointer") == 0)
        *(volatile uint32_t *)0x123000 = 1;
    if (strcmp(how, "panic-text") == 0)
        *(volatile char *)kernel_begin = 1;
    if (strcmp(how, "panic-data") == 0)
        kprintf("%u\n", ((unsigned (*)(void))(uint64_t)kernel_data)());
    if (strcmp(how, "panic-overflow") == 0)
        kprintf("%d\n", overflow_stack(&start));
}

_Noreturn void kernel_main(uint64_t start_info_physical); /* kernel/boot.S */

void kernel_main(uint64_t start_info_physical)
{
    const char *line;

    panic_who(task_print_current);
    boot_info_init(start_info_physical);
    memory_init();
    paging_init();
    initrd_init();
    gates_init();
    interrupt_init();
    timer_init();
    records_init();
    task_ids_from(open_id);
    task_on_end(count_end);
    line = boot_command_line();
    go_wrong(line);
    kprintf("boot %lu ns\n", now_ns());
    if (strcmp(line, "list") == 0) {
        list = initrd_find("list", &list_bytes);
        if (list == NULL)
            panic("the initrd has no file list");
        start_next();
    } else {
        start(line);
    }
    schedule_run();
}
