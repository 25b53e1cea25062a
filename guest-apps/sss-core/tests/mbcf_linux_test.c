/* SPDX-License-Identifier: Apache-2.0 */

/* The node in a Linux process: two of them over the wire in the process, each with a thread. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "expect.h"
#include "node_state.h"

enum { KEY = 0x5a5a, RING = 65536, CALLS = 500, SHARE_BYTES = 8192 };
#define SECOND   1000000000ull
#define SHARE_AT 0x200000000000ull

static const uint32_t constant = 77; /* in a read-only page of the program */

/* What the server tells beforehand. */
static struct {
    uint16_t task, dummy;
    struct mb_fifo *fifo;
    uint64_t word;
    uint8_t *shared;
    volatile uint32_t ready, handled, over;
    pthread_t thread;
} server;

static struct node *nodes[2];

static void on_signal(struct mb_record *record)
{
    const struct mb_signal_head *head = mb_record_data(record);

    server.handled += (uint32_t)head->argument[0];
}

static const mb_handler handlers[1] = {on_signal};
static struct mb_fifo *signals;

static void drain(struct mb_record *record)
{
    (void)record;
    while ((record = mb_fifo_peek(signals)) != NULL) {
        on_signal(record);
        mb_fifo_pop(signals);
    }
}

static const mb_handler draining[1] = {drain};

static void serve_setup(void)
{
    struct mb_signal_setup setup = {
        .handlers = draining, .count = 1, .queue_bytes = MB_FIFO_HEADER + 4096};
    int csm;

    server.task = (uint16_t)node_task(nodes[1], 0);
    mb_key(0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
    server.fifo = sss_map(NULL, MB_FIFO_HEADER + RING, SSS_READ | SSS_WRITE);
    EXPECT(mb_fifo(server.fifo, MB_FIFO_HEADER + RING) == 0);
    signals = setup.queue = sss_map(NULL, MB_FIFO_HEADER + 4096, SSS_READ | SSS_WRITE);
    EXPECT(mb_signal(&setup) == 0);
    /* A dummy task of which only the shared pages can be reached. */
    server.dummy = (uint16_t)sss_task("dummy", NULL, SSS_EMPTY);
    server.shared = sss_map(NULL, SHARE_BYTES, SSS_READ | SSS_WRITE);
    csm = sss_csm_share(server.shared, SHARE_BYTES);
    EXPECT(csm > 0 && sss_csm_map(server.dummy, csm, SHARE_AT, SSS_READ | SSS_WRITE) == 0);
    EXPECT(mb_key_of(server.dummy, 0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED) == 0);
    EXPECT(mb_key_of(0x7777, 0, KEY, 3) == -SSS_ENOENT);
}

/* Sends back what comes, to the address in its first word; a record of 4 bytes ends it. */
static void *serve(void *argument)
{
    int ltn = -1;

    (void)argument;
    serve_setup();
    __atomic_store_n(&server.ready, 1, __ATOMIC_RELEASE);
    for (;;) {
        struct mb_record *record;

        if (mb_fifo_wait(server.fifo, 10 * SECOND) != 0) {
            EXPECT(!"a request came");
            return NULL;
        }
        record = mb_fifo_peek(server.fifo);
        if (ltn < 0)
            ltn = mb_connect(record->node, record->task, KEY);
        if (record->length == 4)
            break;
        EXPECT(mb_write(ltn, *(uint64_t *)mb_record_data(record), mb_record_data(record),
                        record->length, NULL) == 0);
        mb_fifo_pop(server.fifo);
    }
    /* Signals still come while it waits. */
    sss_wait_word(&server.over, 0, 10 * SECOND);
    return NULL;
}

static void start(void)
{
    EXPECT(node_open_group(nodes, 2) == 0);
    pthread_create(&server.thread, NULL, serve, NULL);
    while (!__atomic_load_n(&server.ready, __ATOMIC_ACQUIRE))
        usleep(1000);
    EXPECT(node_task(nodes[0], 0) > 0);
    mb_key(0, KEY, MB_READ_ALLOWED | MB_WRITE_ALLOWED);
}

static void test_ping_pong(void)
{
    static volatile uint64_t reply[2];
    int ltn = mb_connect(2, server.task, KEY);

    for (uint64_t i = 1; i <= CALLS; i++) {
        uint64_t request[2] = {(uintptr_t)reply, i};

        EXPECT(mb_fifo_write(ltn, (uintptr_t)server.fifo, request, sizeof(request), NULL) == 0);
        while (reply[1] != i)
            if (sss_wait_word((const volatile uint32_t *)(const volatile void *)&reply[1],
                              (uint32_t)i - 1, 5 * SECOND) < 0)
                break;
        EXPECT(reply[1] == i);
    }
    EXPECT(mb_fifo_write(ltn, (uintptr_t)server.fifo, "end", 4, NULL) == 0);
}

static int try_write(int ltn, uint64_t remote)
{
    struct mb_ack ack = {0};
    uint32_t word = 1;

    if (mb_write(ltn, remote, &word, sizeof(word), &ack) != 0)
        return -1;
    return mb_ack_wait(&ack, 5 * SECOND);
}

static void test_addresses(void)
{
    int ltn = mb_connect(2, server.task, KEY);
    char *hole = sss_map(NULL, 8192, SSS_READ | SSS_WRITE);

    EXPECT(try_write(ltn, 0) == MB_FAULT);
    EXPECT(try_write(ltn, 0xffffffffffff0000u) == MB_FAULT);
    EXPECT(try_write(ltn, (uintptr_t)&constant) == MB_READONLY);
    EXPECT(try_write(ltn, (uintptr_t)node_core(nodes[1])) == MB_FAULT);
    EXPECT(try_write(ltn, (uintptr_t)hole + 4094) == MB_OK);
    sss_unmap(hole + 4096, 4096);
    memset(hole, 0, 4096);
    EXPECT(try_write(ltn, (uintptr_t)hole + 4094) == MB_FAULT);
    EXPECT(hole[4094] == 0); /* all or nothing */
    sss_unmap(hole, 4096);
    mb_close(ltn);
}

static void test_dummy(void)
{
    int ltn = mb_connect(2, server.dummy, KEY);

    EXPECT(try_write(ltn, SHARE_AT + 100) == MB_OK);
    EXPECT(*(uint32_t *)(void *)(server.shared + 100) == 1);
    EXPECT(try_write(ltn, SHARE_AT + SHARE_BYTES) == MB_FAULT);
    EXPECT(try_write(ltn, (uintptr_t)server.shared) == MB_FAULT);
    mb_close(ltn);
}

static void test_signals(void)
{
    uint64_t arguments[4] = {3};
    struct mb_ack ack = {0};
    int ltn = mb_connect(2, server.task, KEY);

    EXPECT(mb_signal_send(ltn, (uintptr_t)drain, arguments, NULL, 0, NULL) == 0);
    EXPECT(mb_signal_send(ltn, (uintptr_t)drain, arguments, NULL, 0, &ack) == 0);
    EXPECT(mb_ack_wait(&ack, 5 * SECOND) == MB_OK);
    EXPECT(mb_signal_send(ltn, (uintptr_t)handlers[0], arguments, NULL, 0, &ack) == 0);
    EXPECT(mb_ack_wait(&ack, 5 * SECOND) == MB_NOHANDLER);
    while (server.handled < 6)
        if (sss_wait_word(&server.handled, 0, 5 * SECOND) < 0)
            break;
    EXPECT(server.handled == 6);
}

static void test_large(void)
{
    static uint8_t data[100000], back[100000];
    struct mb_ack ack = {0};
    int ltn = mb_connect(2, server.task, KEY);
    uint8_t *there = sss_map(NULL, sizeof(data), SSS_READ | SSS_WRITE);

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 13 + (i >> 8));
    EXPECT(mb_write(ltn, (uintptr_t)there, data, sizeof(data), NULL) == 0);
    EXPECT(mb_read(ltn, (uintptr_t)there, back, sizeof(back), &ack) == 0);
    EXPECT(mb_ack_wait(&ack, 5 * SECOND) == MB_OK);
    EXPECT(memcmp(data, back, sizeof(data)) == 0);
    EXPECT(mb_fetch_add(ltn, (uintptr_t)there, 5, MB_WIDE, &ack) == 0 &&
           mb_ack_wait(&ack, 5 * SECOND) == MB_OK);
    EXPECT(memcmp((const void *)&ack.value, data, 8) == 0);
    sss_unmap(there, sizeof(data));
}

static void test_end(void)
{
    uint32_t errors = SSS_INFO->errors;
    int ltn = mb_connect(2, server.dummy, KEY);

    EXPECT(try_write(ltn, SHARE_AT) == MB_OK);
    __atomic_store_n(&server.over, 1, __ATOMIC_RELEASE);
    node_poll();
    pthread_join(server.thread, NULL);
    node_close(nodes[1]);
    node_poll();
    EXPECT(SSS_INFO->errors != errors); /* notified, not asked */
    EXPECT(mb_write(ltn, SHARE_AT, "x", 1, NULL) == -(MB_CLOSED + MB_STATUS_BASE));
    node_close(nodes[0]);
}

/* Each start is another incarnation, of whichever process. */
static void test_starts(void)
{
    char path[] = "/tmp/mbcf-starts-XXXXXX";
    int fd = mkstemp(path);
    uint32_t starts = 0;

    EXPECT(fd >= 0);
    for (uint32_t n = 1; n <= 6; n++)
        EXPECT(node_count_start(path, &starts) && starts == n);
    EXPECT(ftruncate(fd, 3) == 0);
    EXPECT(!node_count_start(path, &starts) && errno == EINVAL);
    EXPECT(!node_count_start("/nowhere/at/all", &starts) && errno == ENOENT);
    close(fd);
    unlink(path);
}

int main(void)
{
    static const struct test tests[] = {
        {"start", start},      {"ping_pong", test_ping_pong}, {"addresses", test_addresses},
        {"dummy", test_dummy}, {"signals", test_signals},     {"large", test_large},
        {"end", test_end},     {"starts", test_starts},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
