/* SPDX-License-Identifier: Apache-2.0 */

/* Operations of own tasks that wait for their end: the acknowledgement of the peer, or its RESULT.
 */
#include "operation.h"
#include "bytes.h"
#include "connection.h"
#include "pool.h"

/* Two pieces where it is across pages: `state` and `status`, then `value`. */
bool mbcf_ack_words(struct mbcf *mbcf, const struct mbcf_task *task, uint64_t address,
                    uint8_t *words[2])
{
    struct span span;

    if (span_of(mbcf, task, address, sizeof(struct mb_ack), true, &span) != MB_OK)
        return false;
    words[0] = span.part[0];
    words[1] = span.part[1] != NULL ? span.part[1] : span.part[0] + offsetof(struct mb_ack, value);
    return true;
}

static void complete_ack(struct mbcf *mbcf, const struct mbcf_task *task, uint64_t address,
                         int status, uint64_t value)
{
    uint32_t status_word = (uint32_t)status;
    uint8_t *words[2];

    if (!mbcf_ack_words(mbcf, task, address, words))
        return; /* the task has unmapped it */
    memcpy(words[1], &value, sizeof(value));
    memcpy(words[0] + offsetof(struct mb_ack, status), &status_word, sizeof(status_word));
    ack_store_state(words[0], MB_ACK_DONE);
    touch(mbcf, task);
}

struct operation *mbcf_operation_named(struct mbcf *mbcf, uint32_t name)
{
    unsigned index = (name & NAME_SLOT) - 1;

    return index < MB_OPERATIONS && mbcf->operations[index].name == name ? &mbcf->operations[index]
                                                                         : NULL;
}

inline struct operation *mbcf_operation_new(struct mbcf *mbcf, const struct mbcf_task *task,
                                            const struct connection *connection,
                                            const struct mb_operation *request, bool answered)
{
    unsigned index = mbcf_slot_take(&mbcf->free_operations);
    struct operation *operation = &mbcf->operations[index];

    operation->name = operation_name(operation, index);
    operation->generation = operation->name >> NAME_SLOT_BITS;
    operation->connection = connection->name;
    operation->since = connection->channel->next_seq;
    operation->task = task->id;
    operation->node = connection->node;
    operation->peer = connection->peer;
    operation->op = (uint8_t)request->op;
    operation->is = (struct progress){.answered = answered, .sending = true};
    operation->length = (uint32_t)request->length;
    operation->arrived = 0;
    operation->data = (uintptr_t)request->data;
    operation->ack = (uintptr_t)request->ack;
    mbcf->channels[connection->node].pending += answered;
    return operation;
}

void mbcf_operation_free(struct mbcf *mbcf, struct operation *operation)
{
    operation->name = 0;
    mbcf_slot_give(&mbcf->free_operations, (uint16_t)(operation - mbcf->operations));
}

/* A frame that may execute it goes out. */
void mbcf_operation_sent(struct mbcf *mbcf, uint32_t name)
{
    struct operation *operation = mbcf_operation_named(mbcf, name);

    if (operation != NULL)
        operation->is.maybe = true;
}

static struct connection *connection_of_operation(struct mbcf *mbcf,
                                                  const struct operation *operation)
{
    struct connection *connection = &mbcf->connections[(operation->connection & NAME_SLOT) - 1];

    return connection->name == operation->connection && connection->phase != CONNECTION_FREE
               ? connection
               : NULL;
}

void mbcf_operation_complete(struct mbcf *mbcf, struct operation *operation, int status,
                             uint64_t value)
{
    struct mbcf_task *task = task_of(mbcf, operation->task);
    struct connection *connection = connection_of_operation(mbcf, operation);

    if (operation->is.answered)
        mbcf->channels[operation->node].pending--;
    if (connection != NULL) {
        if (connection->unfinished != 0)
            connection->unfinished--;
        if (operation->ack == 0 && status != MB_OK)
            mbcf_connection_error(mbcf, connection, status);
    }
    if (task != NULL && operation->ack != 0) {
        complete_ack(mbcf, task, operation->ack, status, value);
        if (status != MB_OK)
            surroundings_failed(mbcf->context, task->space);
    }
    /* A task that is still sending parts of it learns that it is over; success while sending is the
     * peer's mistake. */
    if (operation->is.sending)
        operation->is.failed = (uint8_t)(status != MB_OK ? status : MB_BADOP);
    else
        mbcf_operation_free(mbcf, operation);
}

/* Everything that waits for a result of the node. */
void mbcf_operations_fail(struct mbcf *mbcf, uint16_t node, int status)
{
    for (unsigned i = 0; i < MB_OPERATIONS; i++) {
        struct operation *operation = &mbcf->operations[i];

        if (operation->name == 0 || operation->node != node)
            continue;
        if (operation->is.give_up) {
            mbcf->chores--;
            mbcf_operation_free(mbcf, operation);
        } else if (operation->is.failed == 0) {
            mbcf_operation_complete(mbcf, operation,
                                    operation->is.maybe ? status | MB_MAYBE : status, 0);
        }
    }
}

void mbcf_operations_doubt(struct mbcf *mbcf, uint16_t node, int status)
{
    for (unsigned i = 0; i < MB_OPERATIONS; i++) {
        struct operation *operation = &mbcf->operations[i];

        if (operation->name != 0 && operation->node == node && operation->is.maybe &&
            !operation->is.give_up && operation->is.failed == 0)
            mbcf_operation_complete(mbcf, operation, status | MB_MAYBE, 0);
    }
}

void mbcf_operation_done(struct mbcf *mbcf, uint32_t name)
{
    struct operation *operation = mbcf_operation_named(mbcf, name);

    if (operation == NULL)
        return; /* an error has ended it, or its task */
    mbcf_operation_complete(mbcf, operation, MB_OK, 0);
}

/* With an ack in one page, and not cut off from its connection -> whether it could be ended. */
static inline bool end_quick(struct mbcf *mbcf, struct operation *operation,
                             struct connection *connection, const struct mbcf_task *task,
                             uint64_t value)
{
    struct mb_ack *ack = (void *)bytes_in_page(mbcf, task, operation->ack, sizeof(struct mb_ack),
                                               true);

    if (ack == NULL || connection == NULL)
        return false;
    ack->value = value;
    ack->status = MB_OK;
    ack_store_state((uint8_t *)ack, MB_ACK_DONE);
    touch(mbcf, task);
    connection->unfinished--;
    mbcf_operation_free(mbcf, operation);
    return true;
}

inline bool mbcf_operation_done_quick(struct mbcf *mbcf, uint32_t name)
{
    struct operation *operation = mbcf_operation_named(mbcf, name);
    const struct mbcf_task *task = operation != NULL ? task_of(mbcf, operation->task) : NULL;

    return task != NULL && operation->ack != 0 && !operation->is.sending &&
           end_quick(mbcf, operation, connection_of_operation(mbcf, operation), task, 0);
}

inline bool mbcf_operation_done_expected(struct mbcf *mbcf)
{
    struct connection *connection = mbcf->expected.connection;

    return end_quick(mbcf, mbcf->expected.operation, connection, connection->owner, 0);
}

void mbcf_operation_undecided(struct mbcf *mbcf, uint32_t name)
{
    struct operation *operation = mbcf_operation_named(mbcf, name);

    if (operation != NULL)
        operation->is.undecided = true;
}

void mbcf_operations_decide(struct mbcf *mbcf, uint16_t node)
{
    for (unsigned i = 0; i < MB_OPERATIONS; i++)
        if (mbcf->operations[i].name != 0 && mbcf->operations[i].node == node &&
            mbcf->operations[i].is.undecided)
            mbcf_operation_complete(mbcf, &mbcf->operations[i], MB_OK, 0);
}

/* The task ends: no acknowledgement of its operations is left to write. */
void mbcf_operations_forget(struct mbcf *mbcf, struct mbcf_task *task)
{
    for (unsigned i = 0; i < MB_OPERATIONS; i++) {
        struct operation *operation = &mbcf->operations[i];

        if (operation->name == 0 || operation->task != task->id || operation->is.give_up)
            continue;
        if (operation->is.failed == 0)
            mbcf->channels[operation->node].pending -= operation->is.answered;
        mbcf_operation_free(mbcf, operation);
    }
}

/* ---- results ---- */

static int take_read(struct mbcf *mbcf, const struct mbcf_task *task, struct operation *operation,
                     const struct packet *packet)
{
    uint32_t wanted = operation->length - operation->arrived;
    struct span span;
    int status;

    if (packet->length != (wanted < MBW_PAYLOAD ? wanted : MBW_PAYLOAD))
        return MB_BADOP;
    status = span_of(mbcf, task, operation->data + operation->arrived, packet->length, true, &span);
    if (status != MB_OK)
        return status;
    span_fill(&span, packet->payload);
    operation->arrived += packet->length;
    return MB_OK;
}

/* An operation without a result of its own has failed. */
static void raise_error(struct mbcf *mbcf, const struct packet *packet)
{
    struct connection *connection = mbcf_connection_answered(mbcf, packet);

    if (connection == NULL || packet->status == MB_OK)
        return;
    mbcf_connection_refused(mbcf, connection, packet->status);
    mbcf_connection_error(mbcf, connection, packet->status);
}

/* The operation that a RESULT answers, or NULL. */
static struct operation *answered_operation(struct mbcf *mbcf, const struct packet *packet)
{
    unsigned index = (packet->op_id & NAME_SLOT) - 1u;
    struct operation *operation = &mbcf->operations[index % MB_OPERATIONS];

    return index < MB_OPERATIONS && operation->name != 0 &&
                   op_id_of(operation->name) == packet->op_id && operation->node == packet->node &&
                   !seq_after(operation->since, packet->request)
               ? operation
               : NULL;
}

void mbcf_operation_result(struct mbcf *mbcf, const struct packet *packet)
{
    struct operation *operation;
    struct connection *connection;
    struct mbcf_task *task;
    uint64_t value = 0;
    int status = packet->status;

    if (packet->op_id & MBW_OP_ID_CONNECTION) {
        raise_error(mbcf, packet);
        return;
    }
    operation = answered_operation(mbcf, packet);
    task = operation != NULL ? task_of(mbcf, operation->task) : NULL;
    if (task == NULL || operation->is.failed != 0 || (status == MB_OK && !operation->is.answered))
        return;
    if (status == MB_OK && operation->op == MBW_READ) {
        status = take_read(mbcf, task, operation, packet);
        if (status == MB_OK && (operation->arrived < operation->length || operation->is.sending))
            return;
    } else if (status == MB_OK && operation->op >= MBW_SWAP) {
        if (packet->length == MBW_WORD_PAYLOAD)
            value = mbw_result_old(packet->payload);
        else
            status = MB_BADOP | MB_MAYBE;
    } else if (status != MB_OK && operation->is.several && operation->op == MBW_WRITE) {
        /* Other parts of it may have been written. */
        status |= MB_MAYBE;
    }
    if (status != MB_OK) {
        connection = mbcf_connection_named(mbcf, operation->connection);
        if (connection != NULL)
            mbcf_connection_refused(mbcf, connection, packet->status);
    }
    mbcf_operation_complete(mbcf, operation, status, value);
    if (mbcf->starved)
        mbcf_wake(mbcf);
}

bool mbcf_operation_result_quick(struct mbcf *mbcf, uint16_t node, const uint8_t *header)
{
    struct packet packet = {
        .op_id = mbw_op_id(header), .request = mbw_request(header), .node = node};
    struct operation *operation = packet.op_id & MBW_OP_ID_CONNECTION
                                      ? NULL
                                      : answered_operation(mbcf, &packet);
    const struct mbcf_task *task = operation != NULL ? task_of(mbcf, operation->task) : NULL;
    const uint8_t *payload = header + MBW_HEADER;
    uint16_t length = mbw_length(header);
    uint64_t value = 0;

    if (task == NULL || operation->is.sending || operation->is.several || !operation->is.answered ||
        mbcf->starved || operation->ack == 0)
        return false;
    if (operation->op == MBW_READ) {
        uint8_t *to = length != 0 && length == operation->length
                          ? bytes_in_page(mbcf, task, operation->data, length, true)
                          : NULL;

        if (to == NULL)
            return false;
        copy(to, payload, length);
    } else if (length == MBW_WORD_PAYLOAD) {
        value = mbw_result_old(payload);
    } else {
        return false;
    }
    if (!end_quick(mbcf, operation, connection_of_operation(mbcf, operation), task, value))
        return false;
    mbcf->channels[node].pending--;
    return true;
}
