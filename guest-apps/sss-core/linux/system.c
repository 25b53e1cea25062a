/* SPDX-License-Identifier: Apache-2.0 */

/* system.h for a task in a Linux process. Sockets are Linux's own there. */
#include "sss/system.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "node_state.h"

enum { LINE_BYTES = 4096 };

/* ---- tasks, threads, time ---- */

void sss_exit(int status)
{
    exit(status);
}

struct start {
    void (*entry)(void *);
    void *argument;
    struct node_task *task;
};

static void *run(void *argument)
{
    struct start start = *(struct start *)argument;

    free(argument);
    node_become(start.task);
    start.entry(start.argument);
    return NULL;
}

int sss_thread(void (*entry)(void *), void *argument, size_t stack_bytes)
{
    struct start *start = malloc(sizeof(*start));
    pthread_t thread;

    (void)stack_bytes; /* Linux's own stacks are larger */
    if (start == NULL)
        return -SSS_ENOMEM;
    *start = (struct start){entry, argument, node_current()};
    if (pthread_create(&thread, NULL, run, start) != 0) {
        free(start);
        return -SSS_EAGAIN;
    }
    pthread_detach(thread);
    return 1;
}

void sss_yield(void)
{
    node_poll();
    sched_yield();
}

uint64_t sss_now_ns(void)
{
    return clock_now_ns();
}

int sss_wait(const struct sss_wait *words, unsigned count, uint64_t timeout_ns)
{
    return (int)sss_call(SSS_WAIT, (uintptr_t)words, count, timeout_ns, 0, 0, 0);
}

int sss_wait_word(const volatile uint32_t *word, uint32_t seen, uint64_t timeout_ns)
{
    struct sss_wait wait = {.address = word, .seen = seen};

    return sss_wait(&wait, 1, timeout_ns);
}

int sss_task(const char *name, const char *options, unsigned flags)
{
    return (int)sss_call(SSS_TASK_CREATE, (uintptr_t)name, (uintptr_t)options, flags, 0, 0, 0);
}

int sss_kill(int task)
{
    return (int)sss_call(SSS_TASK_KILL, (uint64_t)task, 0, 0, 0, 0, 0);
}

int sss_task_status(int task, struct sss_task_status *status)
{
    return (int)sss_call(SSS_TASK_STATUS, (uint64_t)task, (uintptr_t)status, 0, 0, 0, 0);
}

/* ---- lines ---- */

/* -> bytes, with the end of the line. */
static size_t make_line(char line[LINE_BYTES], const char *format, va_list arguments)
{
    int length = vsnprintf(line, LINE_BYTES - 1, format, arguments);

    if (length < 0)
        return 0;
    if (length > LINE_BYTES - 2)
        length = LINE_BYTES - 2;
    line[length++] = '\n';
    return (size_t)length;
}

void sss_record(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    node_record(line, make_line(line, format, arguments));
    va_end(arguments);
}

void sss_log(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    node_write(STDERR_FILENO, line, make_line(line, format, arguments));
    va_end(arguments);
}

void sss_ready(void)
{
    printf("ready\n");
    fflush(stdout);
}

/* ---- memory ---- */

void *sss_map(void *address, size_t bytes, unsigned protection)
{
    long result = sss_call(SSS_MEMORY_MAP, (uintptr_t)address, bytes, protection, 0, 0, 0);

    return result < 0 ? NULL : (void *)(uintptr_t)result;
}

int sss_unmap(void *address, size_t bytes)
{
    return (int)sss_call(SSS_MEMORY_UNMAP, (uintptr_t)address, bytes, 0, 0, 0, 0);
}

int sss_protect(void *address, size_t bytes, unsigned protection)
{
    return (int)sss_call(SSS_MEMORY_PROTECT, (uintptr_t)address, bytes, protection, 0, 0, 0);
}

int sss_csm_share(void *address, size_t bytes)
{
    return (int)sss_call(SSS_CSM_SHARE, (uintptr_t)address, bytes, 0, 0, 0, 0);
}

int sss_csm_map(int task, int csm, uint64_t address, unsigned protection)
{
    return (int)sss_call(SSS_CSM_MAP, (uint64_t)task, (uint64_t)csm, address, protection, 0, 0);
}
