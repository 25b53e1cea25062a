/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's core alone, for tests: no device but the serial port, no network, no MBCF. The
 * command line names the first task, and its options behind a space; when no task is left, the
 * machine is switched off.
 */
#include <string.h>

#include "kernel/boot.h"
#include "kernel/cpu.h"
#include "kernel/kernel.h"

extern char kernel_begin[], kernel_data[];

static unsigned living;
static uint16_t last_id = 16;

int node_task_open(struct task *task, uint16_t wanted)
{
    (void)task;
    living++;
    return wanted != 0 ? wanted : ++last_id;
}

static void switch_off(struct timer *timer)
{
    (void)timer;
    kprintf("pages %lu of %lu\n", pages_free(), pages_total());
    outw(0x604, 0x2000);
}

void node_task_gone(struct task *task)
{
    static struct timer end = {.expired = switch_off};

    (void)task;
    if (--living == 0)
        timer_set(&end, now_ns());
}

void sockets_task_gone(struct task *task)
{
    (void)task;
}

void node_idle(void)
{
}

long node_operate(uint64_t operation)
{
    (void)operation;
    return -SSS_ENOSYS;
}

/* Stands in for MBCF: SSS_MB_KEY sets up signals, SSS_MB_TASKQUE signals the caller. */
long node_call(unsigned call, const uint64_t arguments[6])
{
    if (call == SSS_MB_KEY)
        return thread_signal_setup(arguments[0], arguments[1]);
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

void records_write(const char *text, size_t length)
{
    console_write("record ", 7);
    console_write(text, length);
}

void console_init(void)
{
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
    kvsnprintf(text, sizeof text, format, arguments);
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

/* What the command line may ask for in place of a task: that the kernel does what it must not. */
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

void kernel_main(uint64_t start_info_physical)
{
    char name[64];
    const char *line, *options;
    int result;

    console_init();
    memory_init(start_info_physical);
    trap_init();
    time_init();
    task_init();
    line = boot_command_line();
    go_wrong(line);
    options = strchr(line, ' ');
    memset(name, 0, sizeof name);
    memcpy(name, line, options == NULL ? strlen(line) : (size_t)(options - line));
    kprintf("pages %lu of %lu\nboot %lu ns\n", pages_free(), pages_total(), now_ns());
    result = task_create(name, options == NULL ? NULL : options + 1, 0, NULL);
    if (result < 0)
        panic("cannot start %s: %d", name, result);
    schedule_run();
}
