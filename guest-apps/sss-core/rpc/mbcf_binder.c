/* SPDX-License-Identifier: Apache-2.0 */
#include <rpc/mbcf_binder.h>

#include <rpc/rpc.h>
#include <stdlib.h>
#include <string.h>

#include "mbcf_messages.h"
#include "sss/system.h"

enum { QUEUE_BYTES = MB_FIFO_HEADER + 16384 };

struct binding {
    uint32_t program, version, type;
    uint16_t task; /* 0: free */
};

static struct {
    _Alignas(64) char queue[QUEUE_BYTES];
    struct binding bindings[MB_BINDER_PLACES];
} * binder;

static struct binding *find(const struct mb_binder_query *query)
{
    for (size_t i = 0; i < MB_BINDER_PLACES; i++) {
        struct binding *binding = &binder->bindings[i];

        if (binding->task != 0 && binding->program == query->program &&
            binding->version == query->version && binding->type == query->type)
            return binding;
    }
    return NULL;
}

static bool lives(uint16_t task)
{
    struct sss_task_status status;

    return sss_task_status(task, &status) == 0 && status.state != SSS_GONE;
}

static struct binding *free_place(void)
{
    for (size_t i = 0; i < MB_BINDER_PLACES; i++)
        if (binder->bindings[i].task == 0 || !lives(binder->bindings[i].task))
            return &binder->bindings[i];
    return NULL;
}

static uint32_t change(const struct mb_binder_query *query, const struct mb_record *record)
{
    struct binding *binding = find(query);
    uint16_t node, task;

    mb_self(&node, &task);
    if (record->node != node)
        return MB_BINDER_REFUSED;
    if (query->kind == MB_BINDER_UNSET) {
        if (binding == NULL || binding->task != record->task)
            return MB_BINDER_NOT_FOUND;
        binding->task = 0;
        return MB_BINDER_FOUND;
    }
    if (binding != NULL && binding->task != record->task && lives(binding->task))
        return MB_BINDER_REFUSED; /* another task serves it */
    if (binding == NULL)
        binding = free_place();
    if (binding == NULL)
        return MB_BINDER_REFUSED;
    *binding = (struct binding){query->program, query->version, query->type, record->task};
    return MB_BINDER_FOUND;
}

static void answer(const struct mb_binder_query *query, const struct mb_record *record)
{
    struct mb_binder_answer reply = {.status = MB_BINDER_REFUSED};
    struct binding *binding;

    mb_self(&reply.node, &reply.task);
    if (query->kind == MB_BINDER_FIND) {
        binding = find(query);
        if (binding != NULL && !lives(binding->task))
            binding = NULL;
        reply.task = binding != NULL ? binding->task : 0;
        reply.status = binding != NULL ? MB_BINDER_FOUND : MB_BINDER_NOT_FOUND;
    } else if (query->kind == MB_BINDER_SET || query->kind == MB_BINDER_UNSET) {
        reply.status = change(query, record);
    }
    mb_write(record->ltn, query->answer, &reply, sizeof(reply), NULL);
}

void mb_binder_serve(void)
{
    struct mb_fifo *queue = (struct mb_fifo *)binder->queue;
    struct mb_record *record;

    while ((record = mb_fifo_peek(queue)) != NULL) {
        struct mb_binder_query query;

        if (record->length == sizeof(struct mb_taskque_head) + sizeof(query)) {
            memcpy(&query, (char *)mb_record_data(record) + sizeof(struct mb_taskque_head),
                   sizeof(query));
            if (query.magic == MB_BINDER_MAGIC)
                answer(&query, record);
        }
        mb_close(record->ltn);
        mb_fifo_pop(queue);
    }
}

struct mb_fifo *mb_binder_declare(void)
{
    if (binder == NULL)
        binder = sss_map(NULL, (sizeof(*binder) + 4095) & ~(size_t)4095, SSS_READ | SSS_WRITE);
    if (binder == NULL || mb_taskque(binder->queue, QUEUE_BYTES) != 0)
        return NULL;
    return (struct mb_fifo *)binder->queue;
}

static void serve(void *unused)
{
    (void)unused;
    mb_binder_serve();
}

int mbcf_binder_open(void)
{
    struct mb_fifo *queue = mb_binder_declare();

    return queue != NULL && svc_add_word(&queue->events, serve, NULL) ? 0 : -SSS_ENOMEM;
}

void mbcf_binder_task_gone(uint16_t task)
{
    for (size_t i = 0; i < MB_BINDER_PLACES; i++)
        if (binder->bindings[i].task == task)
            binder->bindings[i].task = 0;
}

/* The connection is over when its answer is there, when the binder refuses it (`error`), or at the
 * deadline. */
static int await_answer(int ltn, const volatile struct mb_binder_answer *answer,
                        uint64_t timeout_ns)
{
    uint64_t deadline = sss_now_ns() + timeout_ns;

    for (;;) {
        uint32_t errors = *mbm_errors();
        struct sss_wait words[2] = {{&answer->status, MB_BINDER_PENDING, 0},
                                    {mbm_errors(), errors, 0}};
        struct mb_connection connection;
        uint64_t now;

        if (answer->status != MB_BINDER_PENDING)
            return (int)answer->status;
        if (mb_connection(ltn, &connection) == 0 && connection.error != 0 &&
            connection.error != MB_CLOSED)
            return -(MB_STATUS_BASE + (int)connection.error);
        now = sss_now_ns();
        if (now >= deadline)
            return -SSS_ETIMEDOUT;
        sss_wait(words, 2, deadline - now);
    }
}

int mb_binder_ask(uint16_t node, uint32_t kind, uint32_t program, uint32_t version, uint32_t type,
                  uint64_t timeout_ns, struct mb_binder_answer *answer)
{
    struct mb_binder_answer *here = malloc(sizeof(*here));
    struct mb_binder_query query = {MB_BINDER_MAGIC, kind, program, version, type, 0,
                                    (uintptr_t)here};
    uint64_t key = mbm_key(MBM_KEY_WRITE);
    int ltn, status;

    if (here == NULL || key == 0) {
        free(here);
        return -SSS_ENOMEM;
    }
    *here = (struct mb_binder_answer){.status = MB_BINDER_PENDING};
    ltn = mb_taskque_write(node, MB_BINDER_TASK, key, MB_WRITE_ALLOWED, &query, sizeof(query),
                           NULL);
    if (ltn < 0) {
        free(here);
        return ltn;
    }
    status = await_answer(ltn, here, timeout_ns);
    mb_close(ltn);
    *answer = *here;
    if (status != -SSS_ETIMEDOUT)
        free(here); /* else a late answer must find memory that is nothing else */
    return status;
}
