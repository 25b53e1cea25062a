/* SPDX-License-Identifier: Apache-2.0 */

/* Requests of peers: checked against task, key, permission and pages, in this order, then done in
 * one step. */
#include "execute.h"

#include "bytes.h"
#include "channel.h"
#include "connection.h"
#include "fifo.h"
#include "pool.h"

static __attribute__((noinline)) int look_for_key(struct mbcf_task *task, uint64_t key,
                                                  unsigned wanted)
{
    int status = MB_KEY;

    for (unsigned i = 0; i < MB_KEYS; i++)
        if (task->keys[i].key == key && task->keys[i].permission != 0) {
            if ((task->keys[i].permission & wanted) == wanted) {
                task->key_hint = (uint8_t)i;
                return MB_OK;
            }
            status = MB_PERM;
        }
    return status;
}

static inline int check_key(struct mbcf_task *task, uint64_t key, unsigned wanted)
{
    const struct key *hint = &task->keys[task->key_hint];

    return hint->key == key && (hint->permission & wanted) == wanted
               ? MB_OK
               : look_for_key(task, key, wanted);
}

static int execute_write(struct mbcf *mbcf, struct mbcf_task *task, const struct packet *packet)
{
    struct span span;
    int status = check_key(task, packet->key, MB_WRITE_ALLOWED);

    if (status == MB_OK)
        status = span_of(mbcf, task, packet->address, packet->length, true, &span);
    if (status != MB_OK)
        return status;
    span_fill(&span, packet->payload);
    touch(mbcf, task);
    return MB_OK;
}

static int execute_read(struct mbcf *mbcf, struct mbcf_task *task, const struct packet *packet,
                        uint8_t *to, uint16_t *length)
{
    struct span span;
    uint32_t wanted = mbw_read_length(packet->payload);
    int status = check_key(task, packet->key, MB_READ_ALLOWED);

    if (status == MB_OK && wanted > MBW_PAYLOAD)
        status = MB_RANGE;
    if (status == MB_OK)
        status = span_of(mbcf, task, packet->address, wanted, false, &span);
    if (status != MB_OK)
        return status;
    span_read(&span, to);
    *length = (uint16_t)wanted;
    return MB_OK;
}

/* Other threads may run at the same time on Linux, so these are the machine's own atomic
 * operations. */
static uint64_t change_word(const struct packet *packet, void *at)
{
    uint64_t operand = mbw_operand(packet->payload);
    bool wide = packet->flags & MBW_WIDE;
    uint32_t narrow;

    if (packet->op == MBW_SWAP)
        return wide ? __atomic_exchange_n((uint64_t *)at, operand, __ATOMIC_SEQ_CST)
                    : __atomic_exchange_n((uint32_t *)at, (uint32_t)operand, __ATOMIC_SEQ_CST);
    if (packet->op == MBW_FETCH_ADD)
        return wide ? __atomic_fetch_add((uint64_t *)at, operand, __ATOMIC_SEQ_CST)
                    : __atomic_fetch_add((uint32_t *)at, (uint32_t)operand, __ATOMIC_SEQ_CST);
    /* Compare and swap leaves the old value in the expected one, which is where others have their
     * operand. */
    _Static_assert(MBW_AT(cas_expected) == MBW_AT(operand), "one place");
    if (wide) {
        __atomic_compare_exchange_n((uint64_t *)at, &operand, mbw_cas_new(packet->payload), false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return operand;
    }
    narrow = (uint32_t)operand;
    __atomic_compare_exchange_n((uint32_t *)at, &narrow, (uint32_t)mbw_cas_new(packet->payload),
                                false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return narrow;
}

static int execute_atomic(struct mbcf *mbcf, struct mbcf_task *task, const struct packet *packet,
                          uint8_t *to, uint16_t *length)
{
    struct span span;
    size_t size = packet->flags & MBW_WIDE ? 8 : 4;
    int status = check_key(task, packet->key, MB_READ_ALLOWED | MB_WRITE_ALLOWED);

    if (status == MB_OK && packet->address % size != 0)
        status = MB_ALIGN;
    if (status == MB_OK)
        status = span_of(mbcf, task, packet->address, size, true, &span);
    if (status != MB_OK)
        return status;
    if (to != NULL) {
        mbw_set_result_old(to, change_word(packet, span.part[0]));
        *length = MBW_WORD_PAYLOAD;
    } else {
        change_word(packet, span.part[0]);
    }
    touch(mbcf, task);
    return MB_OK;
}

static struct mb_record record_of(const struct packet *packet)
{
    return (struct mb_record){.kind = MB_DATA, .node = packet->node, .task = packet->source};
}

static int execute_fifo(struct mbcf *mbcf, struct mbcf_task *task, const struct packet *packet)
{
    struct mb_record record = record_of(packet);
    int status = check_key(task, packet->key, MB_WRITE_ALLOWED);
    unsigned fifo = task->fifo_hint;

    if (status != MB_OK)
        return status;
    if (packet->address == 0)
        return MB_NOFIFO;
    /* cppcheck-suppress arrayIndexOutOfBoundsCond; what is compared below, the loop has set */
    if (task->fifos[fifo].address != packet->address) {
        for (fifo = 0; fifo < MB_FIFOS && task->fifos[fifo].address != packet->address; fifo++)
            ;
        if (fifo == MB_FIFOS)
            return MB_NOFIFO;
        task->fifo_hint = (uint8_t)fifo;
    }
    if (packet->flags & MBW_PART)
        return mbcf_ring_part(mbcf, task, fifo, packet);
    return mbcf_ring_put(mbcf, task, &task->fifos[fifo], &record, NULL, 0, packet->payload,
                         packet->length);
}

static int execute_signal(struct mbcf *mbcf, struct mbcf_task *task, const struct packet *packet)
{
    struct mb_signal_head head = {.handler = packet->address};
    struct mb_record record = record_of(packet);
    unsigned handler = task->handler_hint;
    uint32_t bytes = (uint32_t)packet->status * MBW_SIGNAL_ARGUMENT;
    int status = check_key(task, packet->key, MB_WRITE_ALLOWED);

    if (status != MB_OK)
        return status;
    if (handler >= task->handler_count || task->handlers[handler] != packet->address) {
        for (handler = 0;
             handler < task->handler_count && task->handlers[handler] != packet->address; handler++)
            ;
        if (handler == task->handler_count)
            return MB_NOHANDLER;
        task->handler_hint = (uint8_t)handler;
    }
    for (unsigned i = 0; i < packet->status; i++)
        head.argument[i] = mbw_signal_argument(packet->payload, i);
    status = mbcf_ring_put(mbcf, task, &task->signal_queue, &record, &head, sizeof(head),
                           packet->payload + bytes, packet->length - bytes);
    if (status == MB_OK)
        surroundings_signalled(mbcf->context, task->space, packet->address);
    return status;
}

static int execute_taskque(struct mbcf *mbcf, struct mbcf_task *task, const struct packet *packet)
{
    struct mb_taskque_head head = {.key = mbw_taskque_key(packet->payload),
                                   .permission = mbw_taskque_permission(packet->payload)};
    struct mb_record record = record_of(packet);
    struct connection *connection;
    int status;

    if (task->taskque.address == 0)
        return MB_NOQUE;
    connection = mbcf_connection_new(mbcf, ORIGIN_SERVER, task->id, packet->node, packet->source);
    if (connection == NULL)
        return MB_BUSY;
    connection->key = head.key;
    connection->peer_name = mbw_taskque_connection(packet->payload);
    record.ltn = mbcf_connection_ltn(mbcf, connection);
    status = mbcf_ring_put(mbcf, task, &task->taskque, &record, &head, sizeof(head),
                           packet->payload + MBW_TASKQUE_HEAD, packet->length - MBW_TASKQUE_HEAD);
    if (status != MB_OK)
        mbcf_connection_free(mbcf, connection);
    return status;
}

static int perform(struct mbcf *mbcf, struct mbcf_task *task, const struct packet *packet,
                   uint8_t *to, uint16_t *length)
{
    switch (packet->op) {
    case MBW_WRITE:
        return execute_write(mbcf, task, packet);
    case MBW_READ:
        return execute_read(mbcf, task, packet, to, length);
    case MBW_FIFO:
        return execute_fifo(mbcf, task, packet);
    case MBW_SIGNAL:
        return execute_signal(mbcf, task, packet);
    case MBW_TASKQUE:
        return execute_taskque(mbcf, task, packet);
    case MBW_SWAP:
    case MBW_CAS:
    case MBW_FETCH_ADD:
        return execute_atomic(mbcf, task, packet, to, length);
    default:
        return MB_BADOP;
    }
}

static struct sss_frame *result_frame(struct mbcf *mbcf, const struct channel *channel)
{
    return channel_has_result_place(channel) ? mbcf_frame_get(mbcf) : NULL;
}

static void send_result(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                        struct sss_frame *frame, int status, uint16_t length, uint64_t now_ns)
{
    struct header header = {.op = MBW_RESULT,
                            .flags = status != MB_OK ? MBW_ACK_NOW : 0,
                            .status = (uint8_t)status,
                            .length = status == MB_OK ? length : 0,
                            .op_id = packet->op_id,
                            .last = packet->seq};

    mbcf->counters.results_sent++;
    mbcf_channel_queue(mbcf, channel, frame, &header, now_ns);
}

/* Others have succeeded when they are acknowledged. */
static bool is_answered(const struct packet *packet)
{
    return packet->op == MBW_READ || (packet->op >= MBW_SWAP && packet->op <= MBW_FETCH_ADD &&
                                      !(packet->op_id & MBW_OP_ID_CONNECTION));
}

bool mbcf_execute(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                  uint64_t now_ns)
{
    struct mbcf_task *task = task_of(mbcf, packet->destination);
    struct sss_frame *frame = NULL;
    uint16_t length = 0;
    int status = MB_NOTASK;

    /* It must not happen if its result could not be sent. */
    if (is_answered(packet)) {
        frame = result_frame(mbcf, channel);
        if (frame == NULL)
            return false;
    }
    if (task != NULL) {
        task->peers |= 1ull << (packet->node - 1);
        status = perform(mbcf, task, packet, frame != NULL ? frame_payload(frame, 0) : NULL,
                         &length);
    }
    if (status != MB_OK) {
        /* Nothing was done: without a place for the error the frame may come again. */
        if (frame == NULL)
            frame = result_frame(mbcf, channel);
        if (frame == NULL)
            return false;
        mbcf->counters.refused[status]++;
    } else {
        mbcf->counters.operations_executed++;
    }
    if (frame != NULL)
        send_result(mbcf, channel, packet, frame, status, length, now_ns);
    return true;
}

/* The operation of a frame without a definition of its own. */
struct quick {
    const struct definition *definition;
    const uint8_t *header;
    uint64_t address;
    uint16_t length, node;
};

static bool write_quick(struct mbcf *mbcf, const struct mbcf_task *task, const struct quick *quick)
{
    uint16_t length = quick->length;
    uint8_t *to = length != 0 ? bytes_in_page(mbcf, task, quick->address, length, true) : NULL;

    if (to == NULL)
        return false;
    copy(to, quick->header + MBW_HEADER, length);
    touch(mbcf, task);
    return true;
}

static bool fifo_quick(struct mbcf *mbcf, struct mbcf_task *task, const struct quick *quick)
{
    struct ring *ring = &task->fifos[task->fifo_hint];
    struct mb_record record = {.length = quick->length,
                               .kind = MB_DATA,
                               .state = MB_COMPLETE,
                               .node = quick->node,
                               .task = quick->definition->source};

    return ring->address != 0 && ring->address == quick->address &&
           mbcf_ring_put_quick(mbcf, task, ring, &record, quick->header + MBW_HEADER);
}

static bool signal_quick(struct mbcf *mbcf, struct mbcf_task *task, const struct quick *quick)
{
    uint64_t handler = quick->address;
    unsigned arguments = mbw_status(quick->header);
    uint32_t data = quick->length - arguments * MBW_SIGNAL_ARGUMENT;
    struct mb_record record = {.length = (uint32_t)sizeof(struct mb_signal_head) + data,
                               .kind = MB_DATA,
                               .state = MB_COMPLETE,
                               .node = quick->node,
                               .task = quick->definition->source};

    if (arguments > MBW_SIGNAL_ARGUMENTS || data > quick->length ||
        task->handler_hint >= task->handler_count ||
        task->handlers[task->handler_hint] != handler ||
        !mbcf_ring_put_signal(mbcf, task, &record, handler, arguments, quick->header + MBW_HEADER))
        return false;
    surroundings_signalled(mbcf->context, task->space, handler);
    return true;
}

/* The RESULT of an operation that has gone well; there is a place for it. */
static void answer_quick(struct mbcf *mbcf, struct channel *channel, const struct quick *quick,
                         struct sss_frame *frame, uint16_t length, uint64_t now_ns)
{
    uint8_t *header = frame_header(frame);

    mbw_set_first_word(header, MBW_FIRST_WORD(MBW_RESULT, 0, MB_OK, 0));
    mbw_set_length_to_end(header, length, mbw_op_id(quick->header), mbw_seq(quick->header));
    frame->length = (uint16_t)mbw_frame_bytes(length);
    mbcf_channel_send_quick(mbcf, channel, frame, 0, false, false, now_ns);
    mbcf->counters.results_sent++;
}

static bool read_quick(struct mbcf *mbcf, struct channel *channel, const struct mbcf_task *task,
                       const struct quick *quick, uint64_t now_ns)
{
    uint32_t length = mbw_read_length(quick->header + MBW_HEADER);
    const uint8_t *from;
    struct sss_frame *frame;

    if (length - 1 >= MBW_PAYLOAD || quick->length != MBW_READ_PAYLOAD ||
        (mbw_op_id(quick->header) & MBW_OP_ID_CONNECTION))
        return false;
    from = bytes_in_page(mbcf, task, quick->address, length, false);
    frame = from != NULL ? mbcf_frame_get(mbcf) : NULL;
    if (frame == NULL)
        return false;
    put_head(frame->bytes, channel->ack_head);
    copy(frame_payload(frame, 0), from, length);
    channel->received = mbw_seq(quick->header); /* the result carries it */
    answer_quick(mbcf, channel, quick, frame, (uint16_t)length, now_ns);
    return true;
}

static bool atomic_quick(struct mbcf *mbcf, struct channel *channel, const struct mbcf_task *task,
                         const struct quick *quick, uint64_t now_ns)
{
    const struct packet packet = {.op = mbw_op(quick->header),
                                  .flags = mbw_flags(quick->header),
                                  .payload = quick->header + MBW_HEADER};
    size_t size = packet.flags & MBW_WIDE ? 8 : 4;
    struct sss_frame *frame;
    uint8_t *at;

    if (quick->length != (packet.op == MBW_CAS ? MBW_CAS_PAYLOAD : MBW_WORD_PAYLOAD) ||
        (mbw_op_id(quick->header) & MBW_OP_ID_CONNECTION) || quick->address % size != 0)
        return false;
    at = bytes_in_page(mbcf, task, quick->address, size, true);
    frame = at != NULL ? mbcf_frame_get(mbcf) : NULL;
    if (frame == NULL)
        return false;
    put_head(frame->bytes, channel->ack_head);
    mbw_set_result_old(frame_payload(frame, 0), change_word(&packet, at));
    touch(mbcf, task);
    channel->received = mbw_seq(quick->header);
    answer_quick(mbcf, channel, quick, frame, MBW_WORD_PAYLOAD, now_ns);
    return true;
}

bool mbcf_answer_quick(struct mbcf *mbcf, struct channel *channel, const uint8_t *header,
                       uint16_t length, uint64_t now_ns)
{
    const struct definition *definition = &channel->definitions[mbw_tag(header) % TAGS];
    struct mbcf_task *task = task_of(mbcf, definition->target);
    const bool reads = mbw_op(header) == MBW_READ;
    struct quick quick = {.definition = definition,
                          .header = header,
                          .address = (uint64_t)definition->address_high << 32 | mbw_offset(header),
                          .length = length,
                          .node = channel->node};

    if (task == NULL || mbw_tag(header) >= TAGS || !channel_is_clear(channel) ||
        check_key(task, definition->key,
                  reads ? MB_READ_ALLOWED : MB_READ_ALLOWED | MB_WRITE_ALLOWED) != MB_OK ||
        !(reads ? read_quick(mbcf, channel, task, &quick, now_ns)
                : atomic_quick(mbcf, channel, task, &quick, now_ns)))
        return false;
    task->peers |= channel->bit;
    mbcf->counters.operations_executed++;
    return true;
}

/* In line, as are those that call it: what `quick` has is in registers then. */
static inline __attribute__((always_inline)) bool
perform_quick(struct mbcf *mbcf, struct mbcf_task *task, const struct quick *quick)
{
    switch (mbw_op(quick->header)) {
    case MBW_WRITE:
        return write_quick(mbcf, task, quick);
    case MBW_FIFO:
        return fifo_quick(mbcf, task, quick);
    default:
        return signal_quick(mbcf, task, quick);
    }
}

bool mbcf_execute_quick(struct mbcf *mbcf, const struct channel *channel, const uint8_t *header,
                        uint16_t length)
{
    const struct definition *definition = &channel->definitions[mbw_tag(header) % TAGS];
    struct mbcf_task *task = task_of(mbcf, definition->target);
    struct quick quick = {.definition = definition,
                          .header = header,
                          .address = (uint64_t)definition->address_high << 32 | mbw_offset(header),
                          .length = length,
                          .node = channel->node};

    if (task == NULL || mbw_tag(header) >= TAGS ||
        check_key(task, definition->key, MB_WRITE_ALLOWED) != MB_OK)
        return false;
    if (!perform_quick(mbcf, task, &quick))
        return false;
    task->peers |= channel->bit;
    mbcf->counters.operations_executed++;
    mbcf->expected.task = task;
    mbcf->expected.definition = definition;
    return true;
}

bool mbcf_execute_expected(struct mbcf *mbcf, const struct channel *channel, const uint8_t *header,
                           uint16_t length)
{
    const struct definition *definition = mbcf->expected.definition;
    const struct quick quick = {.definition = definition,
                                .header = header,
                                .address = (uint64_t)definition->address_high << 32 |
                                           mbw_offset(header),
                                .length = length,
                                .node = channel->node};

    if (!perform_quick(mbcf, mbcf->expected.task, &quick))
        return false;
    mbcf->counters.operations_executed++;
    return true;
}
