/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target of MBCF operations: memory, a FIFO, a signal handler and a word. It only answers who
 * asks where they are, takes out what comes, and checks it. One client at a time.
 */
#include <rpc/mbcf_binder.h>
#include <stddef.h>
#include <string.h>

#include "mbcf_target.h"
#include "options.h"
#include "pattern.h"
#include "sss/system.h"

enum { QUEUE_RING = 16384, STACK_BYTES = 16384, BINDER_S = 30 };
#define NS_PER_S 1000000000ull
#define IDLE_NS  (200 * 1000000ull)

static struct {
    char *memory;
    struct mb_fifo *fifo, *signals, *taskque;
    uint64_t key;
    _Alignas(8) volatile uint64_t word;
} target;
static struct mbcf_target_counts counts;

static void *map_or_fail(size_t bytes)
{
    void *memory = sss_map(NULL, (bytes + 4095) & ~(size_t)4095, SSS_READ | SSS_WRITE);

    if (memory == NULL)
        task_fail("out of memory");
    return memory;
}

/* The n-th record of a client holds the pattern of call n. */
static bool is_right(uint64_t number, const void *data, size_t length)
{
    return pattern_matches(PATTERN_OPAQUE, (uint32_t)number, 0, data, length);
}

static void take_signals(struct mb_record *record)
{
    do {
        const struct mb_signal_head *head = mb_record_data(record);
        size_t length = record->length - sizeof(*head);

        if (head->argument[0] != counts.signals || !is_right(counts.signals, head + 1, length))
            counts.signal_wrong++;
        counts.signals++;
        counts.signal_bytes += length;
        mb_fifo_pop(target.signals);
    } while ((record = mb_fifo_peek(target.signals)) != NULL);
}

static void take_records(void)
{
    struct mb_record *record;

    while ((record = mb_fifo_peek(target.fifo)) != NULL) {
        if (!is_right(counts.fifo_records, mb_record_data(record), record->length))
            counts.fifo_wrong++;
        counts.fifo_records++;
        counts.fifo_bytes += record->length;
        mb_fifo_pop(target.fifo);
    }
}

static const mb_handler handlers[1] = {take_signals};

static void prepare(void)
{
    char *stack = map_or_fail(STACK_BYTES);
    struct mb_signal_setup setup = {.handlers = handlers, .count = 1};

    target.memory = map_or_fail(MBCF_TARGET_MEMORY);
    target.fifo = map_or_fail(MB_FIFO_HEADER + MBCF_TARGET_RING);
    target.signals = map_or_fail(MB_FIFO_HEADER + MBCF_TARGET_RING);
    target.taskque = map_or_fail(MB_FIFO_HEADER + QUEUE_RING);
    setup.queue = target.signals;
    setup.queue_bytes = MB_FIFO_HEADER + MBCF_TARGET_RING;
    setup.stack_top = stack + STACK_BYTES;
    target.key = sss_now_ns() << 1 | 1;
    if (mb_key(MBCF_TARGET_KEY_SLOT, target.key, MB_READ_ALLOWED | MB_WRITE_ALLOWED) != 0 ||
        mb_fifo(target.fifo, MB_FIFO_HEADER + MBCF_TARGET_RING) != 0 || mb_signal(&setup) != 0 ||
        mb_taskque(target.taskque, MB_FIFO_HEADER + QUEUE_RING) != 0)
        task_fail("key, FIFO, signal handler or TASKQUE cannot be declared");
}

static void answer_open(const struct mb_record *record, uint64_t where)
{
    struct mbcf_target_place place = {
        .key = target.key,
        .memory = (uintptr_t)target.memory,
        .fifo = (uintptr_t)target.fifo,
        .handler = (uintptr_t)take_signals,
        .word = (uintptr_t)&target.word,
        .answered = 1,
    };

    counts = (struct mbcf_target_counts){0};
    target.word = 0;
    mb_write(record->ltn, where, &place, sizeof(place), NULL);
}

static void answer_counts(const struct mb_record *record, uint64_t where)
{
    struct mbcf_target_counts now;

    take_records();
    now = counts;
    now.word = target.word;
    now.answered = 1;
    mb_write(record->ltn, where, &now, sizeof(now), NULL);
}

static void take_questions(void)
{
    struct mb_record *record;

    while ((record = mb_fifo_peek(target.taskque)) != NULL) {
        struct mbcf_target_query query = {0};

        if (record->length == sizeof(struct mb_taskque_head) + sizeof(query))
            memcpy(&query, (char *)mb_record_data(record) + sizeof(struct mb_taskque_head),
                   sizeof(query));
        /* In a Linux process, handlers of what came before the question run only in a wait. */
        sss_wait_word(&target.taskque->events, target.taskque->events, 0);
        if (query.magic == MBCF_TARGET_MAGIC && query.question == MBCF_TARGET_OPEN)
            answer_open(record, query.answer);
        else if (query.magic == MBCF_TARGET_MAGIC && query.question == MBCF_TARGET_COUNTS)
            answer_counts(record, query.answer);
        mb_close(record->ltn);
        mb_fifo_pop(target.taskque);
    }
}

static void report(void)
{
    sss_record("{\"type\":\"counters\",\"app\":\"mbcf-server\",\"fifo_records\":%llu,\"fifo_"
               "bytes\":%llu,\"fifo_wrong\":%llu,"
               "\"signals\":%llu,\"signal_bytes\":%llu,\"signal_wrong\":%llu,\"word\":%llu}",
               (unsigned long long)counts.fifo_records, (unsigned long long)counts.fifo_bytes,
               (unsigned long long)counts.fifo_wrong, (unsigned long long)counts.signals,
               (unsigned long long)counts.signal_bytes, (unsigned long long)counts.signal_wrong,
               (unsigned long long)target.word);
}

static void announce(void)
{
    struct mb_binder_answer answer;
    uint16_t node, task;
    int status;

    mb_self(&node, &task);
    status = mb_binder_ask(node, MB_BINDER_SET, MBCF_TARGET_PROGRAM, MBCF_TARGET_VERSION, 0,
                           BINDER_S * NS_PER_S, &answer);
    if (status != MB_BINDER_FOUND)
        task_fail("cannot register with the binder (is the portmapper running?): %d", status);
}

/* Counters are written when it has been idle for a while after questions, never while anything is
 * measured. */
int main(int argc, char **argv)
{
    bool active = false;

    options_open(argc, argv, "mbcf-server");
    options_check_all_taken();
    prepare();
    announce();
    sss_ready();
    for (;;) {
        struct sss_wait words[2] = {{&target.taskque->events, target.taskque->events, 0},
                                    {&target.fifo->events, target.fifo->events, 0}};

        take_records();
        take_questions();
        if (sss_wait(words, 2, active ? IDLE_NS : SSS_FOREVER) >= 0) {
            active = true;
        } else if (active) {
            report();
            active = false;
        }
    }
}
