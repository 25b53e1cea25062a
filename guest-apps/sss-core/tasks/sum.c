/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The example of README.md: one program, started twice. With "server": 0 it adds up the numbers
 * that come into its FIFO; with "server": N it sends numbers to the one on node N, adds another one
 * itself by a remote fetch-and-add, and reads the sum back. Both instances are the same program, so
 * what is static is at the same address in both.
 */
#include <rpc/mbcf_binder.h>
#include <stdio.h>

#include "options.h"
#include "sss/mbcf.h"
#include "sss/system.h"

enum {
    RING = 4096,
    NUMBERS_MOST = 64,
    FIND_S = 10,
    KEY_SLOT = 3 /* the binder's library has the first ones */
};
/* for the binder: any number from 0x20000000 that no other program has */
enum { PROGRAM = 0x20002000, VERSION = 1 };
#define KEY                                                                                        \
    0x5353532d434f5245ull /* both instances know it; others may not touch this task's memory */
#define SECOND_NS 1000000000ull

static _Alignas(64) char ring[MB_FIFO_HEADER + RING];
static volatile uint32_t added; /* how many numbers have come; a word to wait for */
static _Alignas(8) volatile uint64_t sum;

static uint32_t ask_binder(uint16_t node, uint32_t kind, struct mb_binder_answer *answer)
{
    return (uint32_t)mb_binder_ask(node, kind, PROGRAM, VERSION, 0, SECOND_NS, answer);
}

static void serve(void)
{
    struct mb_fifo *fifo = (struct mb_fifo *)ring;
    struct mb_binder_answer answer;

    if (mb_key(KEY_SLOT, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED) != 0 ||
        mb_fifo(ring, sizeof ring) != 0)
        task_fail("key or FIFO cannot be declared");
    if (ask_binder(SSS_INFO->node, MB_BINDER_SET, &answer) != MB_BINDER_FOUND)
        task_fail("cannot register with the binder: is the portmapper running on this node?");
    sss_ready();
    while (mb_fifo_wait(fifo, SSS_FOREVER) == 0) {
        struct mb_record *record = mb_fifo_peek(fifo);

        if (record->length == sizeof(uint64_t)) {
            __atomic_fetch_add(&sum, *(uint64_t *)mb_record_data(record), __ATOMIC_SEQ_CST);
            added++;
        }
        mb_fifo_pop(fifo);
    }
}

static void wait_for(struct mb_ack *ack, int started, const char *what)
{
    int status = started == 0 ? mb_ack_wait(ack, SECOND_NS) : started;

    if (status > 0)
        task_fail("%s: %s", what, mb_status_text(status));
    if (status < 0)
        task_fail("%s: error %d", what, status);
}

/* The other node may be slower to come up. */
static void find(uint16_t node, struct mb_binder_answer *server)
{
    static const volatile uint32_t nothing;
    uint64_t deadline = sss_now_ns() + FIND_S * SECOND_NS;

    while (ask_binder(node, MB_BINDER_FIND, server) != MB_BINDER_FOUND) {
        if (sss_now_ns() >= deadline)
            task_fail("node %u: no such server", node);
        sss_wait_word(&nothing, 0, SECOND_NS / 100);
    }
}

static void use(uint16_t node, const long long *numbers, size_t count)
{
    static struct mb_ack ack;
    static uint64_t total;
    static uint32_t seen;
    struct mb_binder_answer server;
    int ltn;

    find(node, &server);
    ltn = mb_connect(node, server.task, KEY);
    if (ltn < 0)
        task_fail("no place for a connection (%d)", ltn);
    for (size_t i = 0; i < count; i++) {
        uint64_t number = (uint64_t)numbers[i];

        wait_for(&ack, mb_fifo_write(ltn, (uintptr_t)ring, &number, sizeof number, &ack), "fifo");
    }
    wait_for(&ack, mb_fetch_add(ltn, (uintptr_t)&sum, 1000, MB_WIDE, &ack), "fetch and add");
    printf("fetch and add found %lu\n", ack.value);
    do /* the ack of a FIFO says that the number is there, not that it has been added */
        wait_for(&ack, mb_read(ltn, (uintptr_t)&added, &seen, sizeof seen, &ack), "read");
    while (seen < count);
    wait_for(&ack, mb_read(ltn, (uintptr_t)&sum, &total, sizeof total, &ack), "read");
    printf("sum %lu\n", total);
    sss_record("{\"type\":\"sum\",\"app\":\"sum\",\"sum\":%lu}", total);
    mb_close(ltn);
}

int main(int argc, char **argv)
{
    long long numbers[NUMBERS_MOST];
    size_t count;
    long long server;

    options_open(argc, argv, "sum");
    server = options_integer("server", 0, 0, SSS_NODES);
    count = options_integers("numbers", 0, 1000000, numbers, NUMBERS_MOST);
    options_check_all_taken();
    if (server == 0)
        serve();
    else
        use((uint16_t)server, numbers, count);
    return 0;
}
