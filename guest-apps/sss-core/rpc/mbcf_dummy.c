/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "mbcf_service.h"
#include "mbcf_share.h"
#include "sss/system.h"

enum {
    PAGE_BYTES = 4096,
    STACK_BYTES = 65536, /* procedures run on it */
    /* Where the dispatcher's page is mapped: where anonymous memory is never given out. */
    SHARE_AT = 0x30000000,
};

/* One for each task: a handler gets nothing but its record. */
static struct {
    struct mbm_service service;
    struct mbm_share *share;
    struct mbm_origin client;
    bool assigned;
    struct mb_fifo *queue;
    uint32_t ring;
    char *area;
    uint32_t slot, slots;
} dummy;

/* The request itself, or where it was WRITTEN before; NULL: neither. */
static char *message_of(struct mb_record *record, uint32_t *length)
{
    struct mb_signal_head *head = mb_record_data(record);
    uint64_t place = head->argument[0], bytes = head->argument[1];

    *length = record->length - (uint32_t)sizeof(*head);
    if (bytes == 0)
        return (char *)(head + 1);
    if (dummy.slot == 0 || place % dummy.slot != 0 || place / dummy.slot >= dummy.slots ||
        bytes > dummy.slot)
        return NULL;
    *length = (uint32_t)bytes;
    return dummy.area + place;
}

static void run_procedure(struct mb_record *record)
{
    do {
        uint32_t length;
        char *message = message_of(record, &length);

        if (message != NULL && dummy.assigned && record->node == dummy.client.caller.node &&
            record->task == dummy.client.caller.task)
            mbm_service_call(&dummy.service, &dummy.client, message, length);
        else
            dummy.service.counters.malformed++;
        mb_fifo_pop(dummy.queue);
        dummy.share->counters = dummy.service.counters;
    } while ((record = mb_fifo_peek(dummy.queue)) != NULL);
}

static int prepare_signals(void)
{
    static const mb_handler handlers[1] = {run_procedure};
    char *stack = sss_map(NULL, STACK_BYTES, SSS_READ | SSS_WRITE);
    struct mb_signal_setup setup = {.handlers = handlers, .count = 1};

    dummy.ring = mbm_ring_bytes(MBM_SIGNAL_MOST + (uint32_t)sizeof(struct mb_signal_head),
                                MBCF_DEPTH_MOST);
    dummy.queue = sss_map(NULL, dummy.ring + PAGE_BYTES, SSS_READ | SSS_WRITE);
    if (stack == NULL || dummy.queue == NULL)
        return -SSS_ENOMEM;
    setup.queue = dummy.queue;
    setup.queue_bytes = dummy.ring + MB_FIFO_HEADER;
    setup.stack_top = stack + STACK_BYTES;
    return mb_signal(&setup);
}

static int make_area(uint32_t slot, uint32_t slots)
{
    size_t bytes;

    if (slot <= MBM_SIGNAL_MOST)
        slots = 0;
    slot = (slot + 15) & ~15u;
    if (slot <= dummy.slot && slots <= dummy.slots)
        return 0;
    if (dummy.area != NULL)
        sss_unmap(dummy.area,
                  ((size_t)dummy.slot * dummy.slots + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
    bytes = ((size_t)slot * slots + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    dummy.slot = dummy.slots = 0;
    dummy.area = bytes == 0 ? NULL : sss_map(NULL, bytes, SSS_READ | SSS_WRITE);
    if (bytes != 0 && dummy.area == NULL)
        return -SSS_ENOMEM;
    dummy.slot = slot;
    dummy.slots = slots;
    return 0;
}

static void release_client(void)
{
    if (!dummy.assigned)
        return;
    mb_key(0, 0, 0);
    dummy.assigned = false;
    mb_close(dummy.client.ltn);
}

static int assign_client(void)
{
    struct mbm_share *share = dummy.share;
    uint16_t node, task;
    int status = make_area(share->request_most, share->depth + 1);
    int ltn = status == 0 ? mb_connect(share->client_node, share->client_task, share->client_key)
                          : status;

    if (ltn < 0)
        return ltn;
    dummy.client = (struct mbm_origin){
        .caller = {share->client_key, share->client_node, share->client_task, 0},
        .ltn = ltn,
        .replies = share->client_replies,
        .reply_most = share->reply_most,
    };
    mb_self(&node, &task);
    share->bound = (struct mbm_bound){
        .magic = MBM_BOUND,
        .key = share->key,
        .handler = (uintptr_t)run_procedure,
        .area = (uintptr_t)dummy.area,
        .ring = dummy.ring,
        .slots = dummy.slots,
        .slot = dummy.slot,
        .task = task,
    };
    dummy.assigned = true;
    return mb_key(0, share->key, MB_WRITE_ALLOWED);
}

static int obey(enum mbm_order what)
{
    release_client();
    return what == MBM_ASSIGN ? assign_client() : 0;
}

static bool dispatcher_lives(void)
{
    struct sss_task_status status;

    return sss_task_status(dummy.share->dispatcher, &status) == 0 && status.state != SSS_GONE;
}

/* Until the dispatcher says so, or is no more. */
static void serve(void)
{
    uint32_t seen = 0;

    while (dispatcher_lives()) {
        struct sss_wait words[2] = {{&SSS_INFO->tasks, SSS_INFO->tasks, 0},
                                    {&dummy.share->order, seen, 0}};
        uint32_t number = dummy.share->order;

        if (number == seen) {
            sss_wait(words, 2, SSS_FOREVER);
            continue;
        }
        seen = number;
        dummy.share->status = obey((enum mbm_order)dummy.share->what);
        dummy.share->done = number;
        if (dummy.share->what == MBM_END)
            return;
    }
    release_client();
}

int svcmb_dummy(int csm, void (*begin)(SVCXPRT *transport, volatile uint64_t *words))
{
    dummy.share = (struct mbm_share *)(uintptr_t)SHARE_AT;
    if (sss_csm_map(0, csm, SHARE_AT, SSS_READ | SSS_WRITE) < 0)
        return 1;
    if (!mbm_service_init(&dummy.service, dummy.share->message_most, "mbcf3b") ||
        prepare_signals() != 0)
        return 1;
    if (dummy.share->semantics == RPC_AT_MOST_ONCE &&
        (dummy.service.cache = mbm_cache_new(dummy.share->cache)) == NULL)
        return 1;
    begin(&dummy.service.transport, dummy.share->words);
    serve();
    return 0;
}
