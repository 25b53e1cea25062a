/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts the instructions of MBCF's paths by stepping through them: the core, with surroundings
 * that do next to nothing. The process traces a copy of itself; `int3` marks where a path begins
 * and ends.
 *
 *   mbcf_steps [--most N]    N: the sum of a WRITE of 4 bytes with its result that is still good
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core.h"

enum { FRAMES = 64, PATHS = 64, NODES = 2 };
#define BASE   0x100000ull
#define KEY    0x1234ull
#define MARK() __asm__ volatile("int3" ::: "memory")

static struct node {
    struct mbcf *core;
    struct sss_frame frames[FRAMES];
    struct sss_frame *free, *out[FRAMES];
    unsigned out_count;
    uint8_t memory[1 << 16];
} nodes[NODES + 1];

struct sss_frame *surroundings_frame_get(void *context)
{
    struct node *node = context;

    return sss_frame_take(&node->free);
}

void surroundings_frame_put(void *context, struct sss_frame *frame)
{
    struct node *node = context;

    sss_frame_release(&node->free, frame);
}

bool surroundings_transmit(void *context, struct sss_frame *frame)
{
    struct node *node = context;

    frame->users++;
    node->out[node->out_count++] = frame;
    return true;
}

void *surroundings_page(void *context, void *space, uint64_t address, bool write, int *why)
{
    (void)context;
    (void)write;
    (void)why;
    return (uint8_t *)space + (address - BASE);
}

void surroundings_changed(void *context, void *space)
{
    (void)context;
    (void)space;
}

void surroundings_signalled(void *context, void *space, uint64_t handler)
{
    (void)handler;
    (void)context;
    (void)space;
}

void surroundings_window_open(void *context)
{
    (void)context;
}

void surroundings_failed(void *context, void *space)
{
    (void)context;
    (void)space;
}

static uint64_t now_ns = 1000;

/* Takes the frames of `from` to the other node; the first one between marks, if it is asked for. */
static void carry(unsigned from, bool marked)
{
    struct node *node = &nodes[from], *to = &nodes[3 - from];

    for (unsigned i = 0; i < node->out_count; i++) {
        struct sss_frame *frame = node->out[i];

        frame->users--;
        if (marked && i == 0) {
            MARK();
            mbcf_receive(to->core, now_ns, frame->bytes, frame->length);
            MARK();
        } else {
            mbcf_receive(to->core, now_ns, frame->bytes, frame->length);
        }
    }
    node->out_count = 0;
}

static void make_nodes(void)
{
    for (uint16_t i = 1; i <= NODES; i++) {
        struct mbcf_config config = {
            .node = i, .epoch = 100u + i, .mac = {2, 0, 0, 0, 0, (uint8_t)i}};
        uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)(3 - i)};

        nodes[i].core = malloc(mbcf_size());
        for (unsigned f = 0; f < FRAMES; f++) {
            nodes[i].frames[f].bytes = (uint8_t *)malloc(2 + SSS_FRAME_BYTES) + 2;
            nodes[i].frames[f].next = nodes[i].free;
            nodes[i].free = &nodes[i].frames[f];
        }
        mbcf_init(nodes[i].core, &config, &nodes[i]);
        mbcf_add_node(nodes[i].core, (uint16_t)(3 - i), mac);
    }
}

static uint16_t client, server;
static int ltn;

static void run(struct mb_operation operation, bool marked)
{
    uint64_t progress = 0;

    operation.ltn = ltn;
    operation.data = (void *)(uintptr_t)(BASE + 4096);
    now_ns += 100000;
    if (marked) {
        MARK();
        mbcf_operate(nodes[1].core, client, &operation, &progress, now_ns);
        MARK();
    } else {
        mbcf_operate(nodes[1].core, client, &operation, &progress, now_ns);
    }
    carry(1, marked);
    carry(2, marked && operation.ack != NULL);
    carry(1, false);
}

static const struct measured {
    const char *name;
    struct mb_operation operation;
} measured[] = {
    {"WRITE 4 B, ack",
     {.op = MB_OP_WRITE, .remote = BASE, .length = 4, .ack = (void *)(uintptr_t)BASE}},
    {"WRITE 64 B, ack",
     {.op = MB_OP_WRITE, .remote = BASE, .length = 64, .ack = (void *)(uintptr_t)BASE}},
    {"WRITE 1024 B, ack",
     {.op = MB_OP_WRITE, .remote = BASE, .length = 1024, .ack = (void *)(uintptr_t)BASE}},
    {"WRITE 1408 B", {.op = MB_OP_WRITE, .remote = BASE, .length = 1408}},
    {"READ 4 B", {.op = MB_OP_READ, .remote = BASE, .length = 4, .ack = (void *)(uintptr_t)BASE}},
    {"FETCH_ADD, ack", {.op = MB_OP_FETCH_ADD, .remote = BASE, .ack = (void *)(uintptr_t)BASE}},
    {"FIFO 64 B", {.op = MB_OP_FIFO, .remote = BASE + 8192, .length = 64}},
    {"FIFO 64 B, ack",
     {.op = MB_OP_FIFO, .remote = BASE + 8192, .length = 64, .ack = (void *)(uintptr_t)BASE}},
    {"SIGNAL 64 B", {.op = MB_OP_SIGNAL, .remote = 0x401000, .length = 64}},
};
enum { MEASURED = sizeof(measured) / sizeof(*measured) };

static void child(void)
{
    uint64_t handler = 0x401000;

    make_nodes();
    client = (uint16_t)mbcf_task_open(nodes[1].core, nodes[1].memory);
    server = (uint16_t)mbcf_task_open(nodes[2].core, nodes[2].memory);
    mbcf_key(nodes[2].core, server, 0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    mbcf_fifo(nodes[2].core, server, BASE + 8192, MB_FIFO_HEADER + 16384);
    mbcf_signal(nodes[2].core, server, &handler, 1, BASE + 40960, MB_FIFO_HEADER + 8192);
    ltn = mbcf_connect(nodes[1].core, client, 2, server, KEY);
    /* The handshake, and whatever is done for the first time. */
    for (unsigned i = 0; i < 4; i++)
        run(measured[0].operation, false);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    for (unsigned i = 0; i < MEASURED; i++) {
        run(measured[i].operation, false);
        run(measured[i].operation, true);
    }
    _exit(0);
}

/* Goes on to the next mark; false: the child has ended. */
static bool to_mark(pid_t pid)
{
    int status;

    ptrace(PTRACE_CONT, pid, NULL, NULL);
    waitpid(pid, &status, 0);
    return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
}

/* Between a mark and the next: the mark itself traps, too, and is not counted. */
static unsigned long steps(pid_t pid)
{
    unsigned long count = 0;
    siginfo_t info;
    int status;

    for (;;) {
        ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
        waitpid(pid, &status, 0);
        if (!WIFSTOPPED(status))
            exit(1);
        ptrace(PTRACE_GETSIGINFO, pid, NULL, &info);
        if (info.si_code == SI_KERNEL) /* int3 */
            return count;
        count++;
    }
}

int main(int argc, char **argv)
{
    unsigned long most = argc == 3 && strcmp(argv[1], "--most") == 0 ? strtoul(argv[2], NULL, 10)
                                                                     : 0;
    unsigned long first = 0;
    pid_t pid = fork();
    int status;

    if (pid == 0)
        child();
    waitpid(pid, &status, 0);
    printf("%-20s %8s %8s %8s %8s\n", "path", "send", "execute", "finish", "sum");
    for (unsigned i = 0; i < MEASURED; i++) {
        unsigned long paths[3] = {0};

        for (unsigned p = 0; p < (measured[i].operation.ack != NULL ? 3 : 2); p++)
            if (to_mark(pid))
                paths[p] = steps(pid);
        if (i == 0)
            first = paths[0] + paths[1] + paths[2];
        printf("%-20s %8lu %8lu %8lu %8lu\n", measured[i].name, paths[0], paths[1], paths[2],
               paths[0] + paths[1] + paths[2]);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (most != 0)
        printf("@T steps %s %lu instructions, %lu allowed\n",
               first <= most && first != 0 ? "ok" : "fail", first, most);
    return most != 0 && (first > most || first == 0) ? 1 : 0;
}
