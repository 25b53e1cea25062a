/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures MBCF operations against mbcf-server. Round trip: from the operation to its user-visible
 * ACK. Stream: operations as fast as the window takes them, each timed until it is taken; the last
 * asks for an ACK, and its end is that. What the operations have done is verified after each batch.
 */
#include <rpc/mbcf_binder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_limits.h"
#include "mbcf/wire.h"
#include "mbcf_target.h"
#include "options.h"
#include "pattern.h"
#include "samples.h"
#include "sss/system.h"

enum operation { OP_WRITE, OP_READ, OP_FIFO, OP_SIGNAL, OP_SWAP, OP_CAS, OP_FETCH_ADD };
enum {
    BINDING_MS = 30000,
    PAUSE_MS = 10,
    WORD = 8,
    FULL_PAUSE_MS = 1,
    FIELDS_BYTES = 512,
};

static const char *const operation_names[] = {"write", "read", "fifo",      "signal",
                                              "swap",  "cas",  "fetch_add", NULL};
static const char *const mode_names[] = {"round_trip", "stream", NULL};

static struct {
    uint16_t node;
    enum operation operation;
    bool stream;
    long long series;
    long long sizes[SIZES_MOST];
    size_t size_count;
    size_t calls, warmup;
    uint64_t total_ns;
} settings;

static struct mbcf_target_place place;
static uint16_t server_task;
static uint64_t own_key;
static int ltn;
static char *sent, *fetched;
static struct call_record *records;
static struct mb_ack ack;

/* ---- options ---- */

static long long size_most(void)
{
    switch (settings.operation) {
    case OP_WRITE:
    case OP_READ:
    case OP_FIFO:
        return MBCF_TARGET_MEMORY;
    case OP_SIGNAL:
        return MBW_SIGNAL_MOST;
    default:
        return WORD;
    }
}

static bool is_atomic(void)
{
    return settings.operation >= OP_SWAP;
}

static void read_settings(int argc, char **argv)
{
    options_open(argc, argv, "mbcf-client");
    settings.node = (uint16_t)options_integer("server", 0, 1, SSS_NODES);
    if (settings.node == 0)
        options_fail("option server: must be given, as a node id");
    settings.operation = (enum operation)options_word("operation", operation_names);
    settings.stream = options_word("mode", mode_names) == 1;
    if (settings.stream && (is_atomic() || settings.operation == OP_READ))
        options_fail(
            "option mode: a stream needs an operation without result: write, fifo or signal");
    settings.series = options_integer("series", 0, 0, NUMBER_LIMIT);
    settings.size_count = options_integers("sizes", is_atomic() ? WORD : 0, size_most(),
                                           settings.sizes, SIZES_MOST);
    if (settings.size_count == 0) {
        settings.sizes[0] = is_atomic() ? WORD : 4;
        settings.size_count = 1;
    }
    settings.calls = (size_t)options_integer("calls", 1, 0, CALLS_LIMIT);
    settings.warmup = (size_t)options_integer("warmup", 0, 0, CALLS_LIMIT);
    settings.total_ns = (uint64_t)options_integer("total_timeout_ms", TOTAL_DEFAULT_MS, 1,
                                                  TIMEOUT_LIMIT_MS) *
                        NS_PER_MS;
    options_check_all_taken();
}

/* ---- the server ---- */

static void sleep_ms(uint64_t ms)
{
    static const volatile uint32_t nothing;

    sss_wait_word(&nothing, 0, ms * NS_PER_MS);
}

/* NULL, or why it is not found. */
static const char *find_server(void)
{
    uint64_t deadline = sss_now_ns() + BINDING_MS * NS_PER_MS;
    struct mb_binder_answer answer;
    int status;

    for (;;) {
        status = mb_binder_ask(settings.node, MB_BINDER_FIND, MBCF_TARGET_PROGRAM,
                               MBCF_TARGET_VERSION, 0, BINDING_MS * NS_PER_MS, &answer);
        if (status == MB_BINDER_FOUND)
            break;
        if (status == -(MB_STATUS_BASE + MB_NO_NODE))
            options_fail("node %u: %s", settings.node, mb_status_text(MB_NO_NODE));
        if (sss_now_ns() >= deadline)
            return status <= -MB_STATUS_BASE ? mb_status_text(-status - MB_STATUS_BASE)
                                             : "no mbcf-server is known there";
        sleep_ms(PAUSE_MS);
    }
    server_task = answer.task;
    return NULL;
}

/* Asks a question; the answer is WRITTEN to `where`, and its last word tells when. NULL, or why
 * there is no answer. */
static const char *ask(enum mbcf_target_question question, void *where,
                       const volatile uint32_t *answered)
{
    struct mbcf_target_query query = {MBCF_TARGET_MAGIC, question, (uintptr_t)where};
    uint64_t deadline = sss_now_ns() + settings.total_ns;
    int connection = mb_taskque_write(settings.node, server_task, own_key, MB_WRITE_ALLOWED, &query,
                                      sizeof(query), NULL);

    if (connection < 0)
        return "the server cannot be asked";
    while (*answered == 0 && sss_now_ns() < deadline)
        sss_wait_word(answered, 0, deadline - sss_now_ns());
    mb_close(connection);
    return *answered != 0 ? NULL : "the server does not answer";
}

static const char *open_server(void)
{
    const char *why;

    place.answered = 0;
    why = ask(MBCF_TARGET_OPEN, &place, &place.answered);
    if (why != NULL)
        return why;
    ltn = mb_connect(settings.node, server_task, place.key);
    if (ltn < 0)
        task_fail("no place for a connection (%d)", ltn);
    return NULL;
}

/* ---- operations ---- */

/* Its only argument is the number of the call. */
static int send_signal(size_t index, size_t size, struct mb_ack *wanted)
{
    struct mb_operation operation = {.op = MB_OP_SIGNAL,
                                     .ltn = ltn,
                                     .remote = place.handler,
                                     .data = sent,
                                     .length = size,
                                     .ack = wanted,
                                     .argument = {index},
                                     .arguments = 1};

    return mb_operate(&operation);
}

static int operate(size_t index, size_t size, struct mb_ack *wanted)
{
    switch (settings.operation) {
    case OP_WRITE:
        return mb_write(ltn, place.memory, sent, size, wanted);
    case OP_READ:
        return mb_read(ltn, place.memory, fetched, size, wanted);
    case OP_FIFO:
        return mb_fifo_write(ltn, place.fifo, sent, size, wanted);
    case OP_SIGNAL:
        return send_signal(index, size, wanted);
    case OP_SWAP:
        return mb_swap(ltn, place.word, index + 1, MB_WIDE, wanted);
    case OP_CAS:
        return mb_compare_and_swap(ltn, place.word, index, index + 1, MB_WIDE, wanted);
    default:
        return mb_fetch_add(ltn, place.word, index + 1, MB_WIDE, wanted);
    }
}

/* The value that an atomic operation must have found: all before it have been executed once and in
 * order. */
static bool result_is_right(size_t index, size_t size)
{
    switch (settings.operation) {
    case OP_READ:
        return memcmp(fetched, sent, size) == 0;
    case OP_SWAP:
    case OP_CAS:
        return ack.value == index;
    case OP_FETCH_ADD:
        return ack.value == (uint64_t)index * (index + 1) / 2;
    default:
        return true;
    }
}

static void note(struct call_record *record, int status, bool right)
{
    if (status < 0)
        record->error = status <= -MB_STATUS_BASE ? mb_status_text(-status - MB_STATUS_BASE)
                                                  : "the operation is refused";
    else if (status != MB_OK)
        record->error = mb_status_text(status & ~MB_MAYBE);
    else if (!right)
        record->error = "the result is not what it must be";
    record->detail = status > 0 && (status & MB_MAYBE) != 0 ? "maybe executed" : NULL;
    record->ok = record->error == NULL;
}

static void run_round_trips(size_t size, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        struct call_record *record = &records[index];
        int status;

        *record = (struct call_record){0};
        if (settings.operation != OP_READ)
            pattern_fill(PATTERN_OPAQUE, (uint32_t)index, 0, sent, size);
        ack.state = MB_ACK_IDLE;
        record->start_ns = sss_now_ns();
        status = operate(index, size, &ack);
        if (status == 0)
            status = mb_ack_wait(&ack, settings.total_ns);
        record->end_ns = sss_now_ns();
        note(record, status, result_is_right(index, size));
    }
}

/* A full FIFO or signal queue would lose: a stream into one asks for the ACK whenever it may have
 * no place left. */
static bool needs_ack(size_t index, size_t size, size_t count, size_t *unacked)
{
    size_t record = 2 * (sizeof(struct mb_record) + sizeof(struct mb_signal_head) + size);

    *unacked += record;
    if (index + 1 == count)
        return true;
    if (settings.operation == OP_WRITE || *unacked < MBCF_TARGET_RING / 4)
        return false;
    *unacked = 0;
    return true;
}

static int send_until_taken(size_t index, size_t size)
{
    for (;;) {
        int status;

        ack.state = MB_ACK_IDLE;
        status = operate(index, size, &ack);
        if (status == 0)
            status = mb_ack_wait(&ack, settings.total_ns);
        if (status != MB_FULL)
            return status;
        sleep_ms(FULL_PAUSE_MS); /* certainly not executed: again */
    }
}

static void run_stream(size_t size, size_t count)
{
    size_t unacked = 0;

    for (size_t index = 0; index < count; index++) {
        struct call_record *record = &records[index];
        int status;

        *record = (struct call_record){0};
        pattern_fill(PATTERN_OPAQUE, (uint32_t)index, 0, sent, size);
        record->start_ns = sss_now_ns();
        if (needs_ack(index, size, count, &unacked))
            status = send_until_taken(index, size);
        else
            status = operate(index, size, NULL);
        record->end_ns = sss_now_ns();
        note(record, status, true);
    }
}

/* ---- batches ---- */

static void check(bool right, const char *what, size_t size)
{
    if (!right)
        task_error("size %zu: %s", size, what);
}

static bool all_succeeded(size_t count)
{
    for (size_t index = 0; index < count; index++)
        if (!records[index].ok)
            return false;
    return true;
}

/* After a batch without failures: what must be in the server's memory, read back, and its own
 * counts.
 */
static void verify(size_t size, size_t count)
{
    static struct mbcf_target_counts counts;
    uint64_t last = count;

    if (count == 0 || !all_succeeded(count))
        return;
    memset(&counts, 0, sizeof(counts));
    if (ask(MBCF_TARGET_COUNTS, &counts, &counts.answered) != NULL)
        return; /* the line is as bad as that: the capture has each operation */
    switch (settings.operation) {
    case OP_WRITE:
        ack.state = MB_ACK_IDLE;
        memset(fetched, 0, size);
        if (mb_read(ltn, place.memory, fetched, size, &ack) != 0 ||
            mb_ack_wait(&ack, settings.total_ns) != MB_OK)
            return; /* likewise: the capture has what was written */
        check(pattern_matches(PATTERN_OPAQUE, (uint32_t)(count - 1), 0, fetched, size),
              "what was written is not there", size);
        break;
    case OP_FIFO:
        check(counts.fifo_records == count && counts.fifo_bytes == count * size &&
                  counts.fifo_wrong == 0,
              "the FIFO did not get each record once, in order", size);
        break;
    case OP_SIGNAL:
        check(counts.signals == count && counts.signal_bytes == count * size &&
                  counts.signal_wrong == 0,
              "the handler did not get each signal once, in order", size);
        break;
    case OP_SWAP:
    case OP_CAS:
        check(counts.word == last, "the word is not what the operations must have made", size);
        break;
    case OP_FETCH_ADD:
        check(counts.word == last * (last + 1) / 2, "the word is not the sum", size);
        break;
    default:
        break;
    }
}

static void put_batch(size_t size, size_t count)
{
    char fields[FIELDS_BYTES];
    uint16_t node, task;

    mb_self(&node, &task);
    snprintf(fields, sizeof(fields),
             "\"series\":%lld,\"transport\":\"mbcf\",\"procedure\":\"%s\",\"mode\":\"%s\",\"size\":"
             "%zu,\"thread\":0,"
             "\"server\":\"%u\",\"warmup\":%zu,\"server_node\":%u,\"server_task\":%u,\"client_"
             "task\":%u,\"ack\":%s,\"depth\":1,"
             "\"semantics\":\"exactly_once\"",
             settings.series, operation_names[settings.operation], mode_names[settings.stream],
             size, settings.node, settings.warmup, settings.node, server_task, task,
             settings.stream ? "false" : "true");
    samples_put_batch(fields, records, count);
}

static void fail_all(size_t count, const char *why)
{
    for (size_t index = 0; index < count; index++) {
        uint64_t now = sss_now_ns();

        records[index] = (struct call_record){.start_ns = now, .end_ns = now, .error = why};
    }
}

/* Something to be read. NULL, or why it cannot be written. */
static const char *prepare_memory(size_t size)
{
    pattern_fill(PATTERN_OPAQUE, 0, 0, sent, size);
    ack.state = MB_ACK_IDLE;
    if (size > 0 && (mb_write(ltn, place.memory, sent, size, &ack) != 0 ||
                     mb_ack_wait(&ack, settings.total_ns) != MB_OK))
        return "the server's memory cannot be prepared";
    return NULL;
}

/* `why`: why no server is found; NULL: one is. */
static void run_batch(size_t size, const char *why)
{
    size_t count = settings.warmup + settings.calls;

    ltn = -1;
    if (why == NULL)
        why = open_server();
    if (why == NULL && settings.operation == OP_READ)
        why = prepare_memory(size);
    if (why != NULL)
        fail_all(count, why);
    else if (settings.stream)
        run_stream(size, count);
    else
        run_round_trips(size, count);
    put_batch(size, count);
    verify(size, count);
    if (ltn >= 0)
        mb_close(ltn);
}

/* Calls that failed are results, in rows of their own; only a step that cannot measure fails. */
int main(int argc, char **argv)
{
    const char *absent;

    read_settings(argc, argv);
    sent = calloc(1, MBCF_TARGET_MEMORY);
    fetched = calloc(1, MBCF_TARGET_MEMORY);
    records = calloc(settings.warmup + settings.calls + 1, sizeof(*records));
    own_key = sss_now_ns() << 1 | 1;
    if (sent == NULL || fetched == NULL || records == NULL ||
        mb_key(MBCF_TARGET_KEY_SLOT, own_key, MB_WRITE_ALLOWED) != 0)
        task_fail("out of memory");
    absent = find_server();
    for (size_t i = 0; i < settings.size_count; i++)
        run_batch((size_t)settings.sizes[i], absent);
    return 0;
}
