/* SPDX-License-Identifier: Apache-2.0 */
/* System calls, one line each. */
#include "sss/system.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE = 1024, PAGE = 4096 };

long sss_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    register uint64_t r10 __asm__("r10") = d;
    register uint64_t r8 __asm__("r8") = e;
    register uint64_t r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#define CALL(number, ...) CALL_(number, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL_(number, a, b, c, d, e, f, ...)                                                       \
    sss_call(number, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d), (uint64_t)(e),    \
             (uint64_t)(f))

/* ---- tasks, threads, time ---- */

void sss_exit(int status)
{
    CALL(SSS_EXIT, status);
    __builtin_unreachable();
}

/* On top of a new thread's stack, so that the kernel needs to know one argument only. */
struct thread_start {
    void (*entry)(void *);
    void *argument;
};

static void run_thread(struct thread_start *start)
{
    start->entry(start->argument);
    CALL(SSS_THREAD_EXIT, 0);
    __builtin_unreachable();
}

int sss_thread(void (*entry)(void *), void *argument, size_t stack_bytes)
{
    size_t bytes = (stack_bytes + sizeof(struct thread_start) + PAGE - 1) & ~(size_t)(PAGE - 1);
    char *stack = sss_map(NULL, bytes, SSS_READ | SSS_WRITE); /* the page below is never mapped */
    struct thread_start *start;
    long id;

    if (stack == NULL)
        return -SSS_ENOMEM;
    start = (struct thread_start *)(stack + bytes) - 1;
    *start = (struct thread_start){entry, argument};
    id = CALL(SSS_THREAD_CREATE, run_thread, start, start);
    if (id < 0)
        sss_unmap(stack, bytes);
    return (int)id;
}

void sss_yield(void)
{
    CALL(SSS_YIELD, 0);
}

int sss_wait(const struct sss_wait *words, unsigned count, uint64_t timeout_ns)
{
    return (int)CALL(SSS_WAIT, words, count, timeout_ns);
}

int sss_wait_word(const volatile uint32_t *word, uint32_t seen, uint64_t timeout_ns)
{
    struct sss_wait wait = {.address = word, .seen = seen};

    return sss_wait(&wait, 1, timeout_ns);
}

uint64_t sss_now_ns(void)
{
    uint32_t low, high;

    if (SSS_INFO->clock != SSS_CLOCK_TSC)
        return (uint64_t)CALL(SSS_CLOCK, 0);
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

int sss_task(const char *name, const char *options, unsigned flags)
{
    return (int)CALL(SSS_TASK_CREATE, name, options, flags);
}

int sss_kill(int task)
{
    return (int)CALL(SSS_TASK_KILL, task);
}

int sss_task_status(int task, struct sss_task_status *status)
{
    return (int)CALL(SSS_TASK_STATUS, task, status);
}

/* One line of what the format says; the end of a line that is too long is lost. */
static void write_line(long call, const char *format, va_list arguments)
{
    char line[LINE];
    int length = vsnprintf(line, sizeof line - 1, format, arguments);

    if (length > LINE - 2)
        length = LINE - 2;
    line[length] = '\n';
    CALL(call, line, length + 1);
}

void sss_record(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(SSS_RECORD, format, arguments);
    va_end(arguments);
}

void sss_log(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(SSS_LOG, format, arguments);
    va_end(arguments);
}

void sss_ready(void)
{
    CALL(SSS_READY, 0);
}

/* ---- memory ---- */

void *sss_map(void *address, size_t bytes, unsigned protection)
{
    long result = CALL(SSS_MEMORY_MAP, address, bytes, protection);

    return result < 0 ? NULL : (void *)result;
}

int sss_unmap(void *address, size_t bytes)
{
    return (int)CALL(SSS_MEMORY_UNMAP, address, bytes);
}

int sss_protect(void *address, size_t bytes, unsigned protection)
{
    return (int)CALL(SSS_MEMORY_PROTECT, address, bytes, protection);
}

int sss_csm_share(void *address, size_t bytes)
{
    return (int)CALL(SSS_CSM_SHARE, address, bytes);
}

int sss_csm_map(int task, int csm, uint64_t address, unsigned protection)
{
    return (int)CALL(SSS_CSM_MAP, task, csm, address, protection);
}

/* ---- UDP and TCP ---- */

int sss_socket(int protocol, uint32_t *counter)
{
    return (int)CALL(SSS_SOCKET, protocol, counter);
}

int sss_bind(int socket, uint32_t address, uint16_t port)
{
    return (int)CALL(SSS_BIND, socket, address, port);
}

int sss_send_to(int socket, const void *data, size_t length, uint32_t address, uint16_t port)
{
    return (int)CALL(SSS_SEND_TO, socket, data, length, address, port);
}

int sss_receive_from(int socket, void *data, size_t size, struct sss_peer *peer)
{
    return (int)CALL(SSS_RECEIVE_FROM, socket, data, size, peer);
}

int sss_connect(int socket, uint32_t address, uint16_t port)
{
    return (int)CALL(SSS_CONNECT, socket, address, port);
}

int sss_listen(int socket, int backlog)
{
    return (int)CALL(SSS_LISTEN, socket, backlog);
}

int sss_accept(int socket, uint32_t *counter, struct sss_peer *peer)
{
    return (int)CALL(SSS_ACCEPT, socket, counter, peer);
}

int sss_send(int socket, const void *data, size_t length)
{
    return (int)CALL(SSS_SEND, socket, data, length);
}

int sss_receive(int socket, void *data, size_t size)
{
    return (int)CALL(SSS_RECEIVE, socket, data, size);
}

int sss_socket_close(int socket)
{
    return (int)CALL(SSS_SOCKET_CLOSE, socket);
}

int sss_socket_state(int socket, struct sss_socket_state *state)
{
    return (int)CALL(SSS_SOCKET_STATE, socket, state);
}
