/* SPDX-License-Identifier: Apache-2.0 */

/* Requests of own tasks, cut into packets and sent. */
#include "operate.h"
#include "acks.h"
#include "bytes.h"
#include "channel.h"
#include "connection.h"
#include "operation.h"
#include "pool.h"

/* What an operation needs to know of its kind. */
struct kind {
    uint16_t data_most; /* of one packet */
    uint8_t head;       /* bytes of payload in front of the data */
    bool sends;         /* `data` are sent */
    bool several;       /* may take several packets */
    bool needs_ack;     /* is nothing without an ack */
    bool answered;      /* a RESULT reports its end */
};

static const struct kind *kind_of(unsigned op)
{
    static const struct kind kinds[] = {
        [MBW_TASKQUE - MBW_TASKQUE] = {MBW_TASKQUE_MOST, MBW_TASKQUE_HEAD, true, false, false,
                                       false},
        [MBW_WRITE - MBW_TASKQUE] = {MBW_PAYLOAD, 0, true, true, false, false},
        [MBW_READ - MBW_TASKQUE] = {MBW_PAYLOAD, MBW_READ_PAYLOAD, false, true, true, true},
        [MBW_FIFO - MBW_TASKQUE] = {MBW_PAYLOAD, 0, true, true, false, false},
        [MBW_SIGNAL -
            MBW_TASKQUE] = {MBW_PAYLOAD, 0 /* its arguments */, true, false, false, false},
        [MBW_SWAP - MBW_TASKQUE] = {0, MBW_WORD_PAYLOAD, false, false, false, true},
        [MBW_CAS - MBW_TASKQUE] = {0, MBW_CAS_PAYLOAD, false, false, false, true},
        [MBW_FETCH_ADD - MBW_TASKQUE] = {0, MBW_WORD_PAYLOAD, false, false, false, true},
    };

    return op >= MBW_TASKQUE && op <= MBW_FETCH_ADD ? &kinds[op - MBW_TASKQUE] : NULL;
}

/* The part of an operation that one packet carries. */
struct part {
    uint32_t offset;
    uint32_t length;
    bool last;
};

static unsigned arguments_of(const struct mb_operation *request)
{
    return request->op == MBW_SIGNAL ? request->arguments : 0;
}

static void put_arguments(uint8_t *to, const struct mb_operation *request)
{
    for (unsigned i = 0; i < request->arguments; i++)
        mbw_set_signal_argument(to, i, request->argument[i]);
}

static void write_head(const struct mb_operation *request, const struct part *part, bool in_parts,
                       uint32_t connection, uint8_t *to)
{
    switch (request->op) {
    case MBW_TASKQUE:
        mbw_set_taskque_key(to, request->argument[0]);
        mbw_set_taskque_permission(to, (uint32_t)request->argument[1]);
        mbw_set_taskque_connection(to, connection);
        break;
    case MBW_READ:
        mbw_set_read_length(to, part->length);
        mbw_set_read_reserved(to, 0);
        break;
    case MBW_FIFO:
        if (in_parts) {
            mbw_set_part_total(to, (uint32_t)request->length);
            mbw_set_part_offset(to, part->offset);
        }
        break;
    case MBW_SIGNAL:
        put_arguments(to, request);
        break;
    case MBW_CAS:
        mbw_set_cas_expected(to, request->argument[0]);
        mbw_set_cas_new(to, request->argument[1]);
        break;
    case MBW_SWAP:
    case MBW_FETCH_ADD:
        mbw_set_operand(to, request->argument[0]);
        break;
    default:
        break;
    }
}

/* One operation while mbcf_operate works on it. */
struct sending {
    struct mbcf_task *task;
    struct connection *connection;
    struct channel *channel;
    struct operation *operation; /* NULL: nothing waits for its end */
    const struct mb_operation *request;
    const struct kind *kind;
    bool in_parts;
};

static int starve(struct mbcf *mbcf)
{
    mbcf->starved = true;
    return -SSS_EAGAIN;
}

static uint8_t part_flags(const struct sending *sending, const struct part *part)
{
    uint8_t flags = 0;

    if (!part->last)
        flags |= MBW_MORE;
    if (part->last && sending->request->ack != NULL && !sending->kind->answered &&
        !(sending->request->flags & MB_LAZY))
        flags |= MBW_ACK_NOW;
    if (is_last_place(sending->channel))
        flags |= MBW_ACK_NOW;
    if (sending->in_parts && sending->request->op == MBW_FIFO)
        flags |= MBW_PART;
    if (sending->request->op >= MBW_SWAP && (sending->request->flags & MB_WIDE))
        flags |= MBW_WIDE;
    return flags;
}

/* Whether the peer knows what the connection's tag means for this address. */
static inline bool tag_is_known(const struct channel *channel, const struct connection *connection,
                                uint64_t address)
{
    return channel->tags[connection->tag] == connection->name &&
           connection->tag_high == address >> 32;
}

static uint8_t take_tag(struct channel *channel, uint32_t name)
{
    uint8_t tag = (uint8_t)(channel->next_tag++ % TAGS);

    channel->tags[tag] = name;
    return tag;
}

/* Its own one, or that of the connection which has gone without one for longest. */
static void define_tag(struct channel *channel, struct connection *connection, uint64_t address,
                       struct definition *definition)
{
    if (channel->tags[connection->tag] != connection->name)
        connection->tag = take_tag(channel, connection->name);
    connection->tag_high = (uint32_t)(address >> 32);
    *definition = (struct definition){.source = connection->task,
                                      .target = connection->peer,
                                      .address_high = connection->tag_high,
                                      .key = connection->key};
}

static int send_part(struct mbcf *mbcf, const struct sending *sending, const struct part *part,
                     uint64_t now_ns)
{
    const struct mb_operation *request = sending->request;
    unsigned head = sending->in_parts && request->op == MBW_FIFO
                        ? MBW_PART_HEAD
                        : sending->kind->head + arguments_of(request) * MBW_SIGNAL_ARGUMENT;
    uint32_t connection = sending->connection->name;
    uint64_t address = request->remote + (request->op == MBW_FIFO ? 0 : part->offset);
    uint8_t flags = part_flags(sending, part);
    struct definition definition;
    struct sss_frame *frame;
    struct header header;
    struct span span;
    uint8_t *payload;

    if (!channel_has_request_place(sending->channel))
        return starve(mbcf);
    frame = mbcf_frame_get(mbcf);
    if (frame == NULL)
        return starve(mbcf);
    if (mbw_is_keyed((uint8_t)request->op) &&
        !tag_is_known(sending->channel, sending->connection, address))
        flags |= MBW_DEFINES;
    payload = frame_payload(frame, flags);
    if (head != 0)
        write_head(request, part, sending->in_parts, connection, payload);
    if (sending->kind->sends) {
        if (span_of(mbcf, sending->task, (uintptr_t)request->data + part->offset, part->length,
                    false, &span) != MB_OK) {
            mbcf_frame_put(mbcf, frame);
            return -SSS_EFAULT;
        }
        span_read(&span, payload + head);
    }
    if (flags & MBW_DEFINES)
        define_tag(sending->channel, sending->connection, address, &definition);
    header = (struct header){
        .op = (uint8_t)request->op,
        .flags = flags,
        .status = (uint8_t)arguments_of(request),
        .tag = mbw_is_keyed((uint8_t)request->op) ? sending->connection->tag : 0,
        .length = (uint16_t)(head + (sending->kind->sends ? part->length : 0)),
        .name = sending->operation != NULL ? sending->operation->name : connection,
        .last = mbw_is_keyed((uint8_t)request->op)
                    ? (uint32_t)address
                    : header_tasks(sending->task->id, sending->connection->peer),
        .defines = &definition,
        .decisive = sending->operation != NULL && (part->last || request->op != MBW_FIFO),
        .completes = sending->operation != NULL && part->last && !sending->kind->answered,
    };
    header.op_id = op_id_of(header.name);
    mbcf->counters.operations_sent += part->last;
    mbcf_channel_queue(mbcf, sending->channel, frame, &header, now_ns);
    return 0;
}

/* Tells the peer that a segment of which parts were sent ends here. */
static void give_up_segment(struct mbcf *mbcf, struct channel *channel, struct operation *operation,
                            uint64_t now_ns)
{
    struct definition definition = {.source = operation->task,
                                    .target = operation->peer,
                                    .address_high = (uint32_t)(operation->remote >> 32),
                                    .key = operation->key};
    struct header header = {.op = MBW_FIFO,
                            .flags = MBW_PART | MBW_DEFINES,
                            .length = MBW_PART_HEAD,
                            .op_id = op_id_of(operation->name),
                            .name = operation->name,
                            .last = (uint32_t)operation->remote,
                            .defines = &definition};
    struct sss_frame *frame;

    if (!channel_has_request_place(channel))
        return;
    frame = mbcf_frame_get(mbcf);
    if (frame == NULL)
        return;
    header.tag = take_tag(channel, 0); /* its connection may be gone */
    memset(frame_payload(frame, header.flags), 0, MBW_PART_HEAD);
    mbcf->chores--;
    mbcf_operation_free(mbcf, operation);
    mbcf_channel_queue(mbcf, channel, frame, &header, now_ns);
}

void mbcf_operation_chores(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    for (unsigned i = 0; i < MB_OPERATIONS; i++) {
        struct operation *operation = &mbcf->operations[i];

        if (operation->name != 0 && operation->is.give_up && operation->node == channel->node)
            give_up_segment(mbcf, channel, operation, now_ns);
    }
}

/* The sender ends before the operation does: `status` is what its ack gets. */
static void abandon(struct mbcf *mbcf, struct operation *operation, int status, uint64_t now_ns)
{
    bool half_sent = operation->op == MBW_FIFO && operation->is.begun;

    if (operation->is.failed == 0)
        mbcf_operation_complete(mbcf, operation, operation->is.maybe ? status | MB_MAYBE : status,
                                0);
    if (half_sent) {
        operation->is.give_up = true;
        mbcf->chores++;
        give_up_segment(mbcf, &mbcf->channels[operation->node], operation, now_ns);
    } else {
        mbcf_operation_free(mbcf, operation);
    }
}

static int send_parts(struct mbcf *mbcf, struct sending *sending, uint32_t *offset, uint64_t now_ns)
{
    const struct mb_operation *request = sending->request;
    uint32_t most = sending->kind->data_most -
                    (sending->in_parts && request->op == MBW_FIFO ? MBW_PART_HEAD : 0);
    struct part part;
    int error;

    do {
        part.offset = *offset;
        part.length = (uint32_t)request->length - *offset;
        if (part.length > most)
            part.length = most;
        part.last = part.offset + part.length == request->length;
        error = send_part(mbcf, sending, &part, now_ns);
        if (error != 0)
            return error;
        *offset += part.length;
        if (sending->operation != NULL)
            sending->operation->is.begun = true;
    } while (!part.last);
    return 0;
}

/* Looks at everything that can be wrong with a request before it becomes an operation. */
static int check(const struct mb_operation *request, const struct kind *kind)
{
    uint64_t limit = kind == NULL ? 0 : kind->several ? MB_SEGMENT : kind->data_most;

    if (arguments_of(request) > MBW_SIGNAL_ARGUMENTS)
        return -SSS_EINVAL;
    if (kind == NULL || request->length > limit - arguments_of(request) * MBW_SIGNAL_ARGUMENT ||
        ((uintptr_t)request->ack & 7) != 0 || (kind->needs_ack && request->ack == NULL) ||
        (request->flags & ~(MB_WIDE | MB_NO_WAIT | MB_LAZY)) != 0)
        return -SSS_EINVAL;
    return 0;
}

/* Memory of the task that results will be written to. */
static int check_memory(struct mbcf *mbcf, const struct mbcf_task *task,
                        const struct mb_operation *request)
{
    uint64_t data = (uintptr_t)request->data;
    struct span span;

    if (request->op != MBW_READ || request->length == 0)
        return 0;
    for (uint64_t at = 0; at < request->length; at = ((data + at) | (PAGE_BYTES - 1)) + 1 - data)
        if (span_of(mbcf, task, data + at, 1, true, &span) != MB_OK)
            return -SSS_EFAULT;
    return 0;
}

static int begin(struct mbcf *mbcf, struct sending *sending)
{
    const struct mb_operation *request = sending->request;
    uint8_t *words[2];

    if (!channel_has_request_place(sending->channel) || mbcf->free_operations.count == 0)
        return starve(mbcf);
    if (request->ack != NULL) {
        if (!mbcf_ack_words(mbcf, sending->task, (uintptr_t)request->ack, words))
            return -SSS_EFAULT;
        ack_store_state(words[0], MB_ACK_PENDING);
    }
    if (request->ack != NULL || sending->in_parts) {
        sending->operation = mbcf_operation_new(mbcf, sending->task, sending->connection, request,
                                                sending->kind->answered);
        sending->operation->is.several = sending->in_parts;
        sending->operation->remote = request->remote;
        sending->operation->key = sending->connection->key;
    }
    sending->connection->unfinished++;
    return 0;
}

/* Nothing of it has been taken: as if it had never been asked for. */
static void unbegin(struct mbcf *mbcf, struct sending *sending)
{
    uint8_t *words[2];

    sending->connection->unfinished--;
    if (sending->operation != NULL) {
        mbcf->channels[sending->operation->node].pending -= sending->operation->is.answered;
        mbcf_operation_free(mbcf, sending->operation);
    }
    if (sending->request->ack != NULL &&
        mbcf_ack_words(mbcf, sending->task, (uintptr_t)sending->request->ack, words))
        ack_store_state(words[0], MB_ACK_IDLE);
}

static int begin_and_send(struct mbcf *mbcf, struct sending *sending, uint64_t *progress,
                          uint64_t now_ns)
{
    uint32_t offset = 0;
    int error = begin(mbcf, sending);

    if (error != 0)
        return error;
    error = send_parts(mbcf, sending, &offset, now_ns);
    if (error != 0 && (sending->operation == NULL || !sending->operation->is.begun)) {
        unbegin(mbcf, sending);
        return error;
    }
    if (error == -SSS_EAGAIN)
        *progress = (uint64_t)sending->operation->name << 32 | offset;
    else if (error != 0)
        abandon(mbcf, sending->operation, MB_FAULT, now_ns);
    else if (sending->operation != NULL)
        sending->operation->is.sending = false;
    return error;
}

static int operate_taskque(struct mbcf *mbcf, struct sending *sending, struct mb_operation *request,
                           uint64_t *progress, uint64_t now_ns)
{
    int error;

    if (request->node == 0 || request->node > SSS_NODES || !mbcf->channels[request->node].known)
        return -(MB_NO_NODE + MB_STATUS_BASE);
    if (request->task == 0)
        return -SSS_EINVAL;
    sending->channel = &mbcf->channels[request->node];
    sending->connection = mbcf_connection_new(mbcf, ORIGIN_WRITER, sending->task->id, request->node,
                                              request->task);
    if (sending->connection == NULL)
        return -SSS_ENOMEM;
    error = begin_and_send(mbcf, sending, progress, now_ns);
    if (error != 0) {
        mbcf_connection_free(mbcf, sending->connection);
        return error;
    }
    sending->task->peers |= 1ull << (request->node - 1);
    request->ltn = mbcf_connection_ltn(mbcf, sending->connection);
    return 0;
}

/* A segment of which parts have been queued by earlier calls. */
static int go_on(struct mbcf *mbcf, struct sending *sending, uint64_t *progress, int status,
                 uint64_t now_ns)
{
    uint32_t offset = (uint32_t)*progress;
    int error;

    sending->operation = mbcf_operation_named(mbcf, (uint32_t)(*progress >> 32));
    if (sending->operation == NULL || sending->operation->task != sending->task->id ||
        !sending->operation->is.sending)
        return -SSS_EINVAL;
    if (sending->operation->is.failed != 0) {
        error = -(sending->operation->is.failed + MB_STATUS_BASE);
        abandon(mbcf, sending->operation, 0, now_ns);
        return error;
    }
    if (sending->connection == NULL || sending->connection->phase != CONNECTION_OPEN) {
        if (sending->connection != NULL)
            status = (int)sending->connection->reason;
        abandon(mbcf, sending->operation, status, now_ns);
        return -(status + MB_STATUS_BASE);
    }
    error = send_parts(mbcf, sending, &offset, now_ns);
    if (error == -SSS_EAGAIN)
        *progress = (uint64_t)sending->operation->name << 32 | offset;
    else if (error != 0)
        abandon(mbcf, sending->operation, MB_FAULT, now_ns);
    else
        sending->operation->is.sending = false;
    return error;
}

int mbcf_operate_any(struct mbcf *mbcf, uint16_t task, struct mb_operation *request,
                     uint64_t *progress, uint64_t now_ns)
{
    struct sending sending = {
        .task = task_of(mbcf, task), .request = request, .kind = kind_of(request->op)};
    int status = MB_NO_LTN;
    int error = check(request, sending.kind);

    if (error != 0 || sending.task == NULL)
        return -SSS_EINVAL;
    if (request->op == MBW_TASKQUE)
        return operate_taskque(mbcf, &sending, request, progress, now_ns);
    sending.in_parts = request->length > sending.kind->data_most && sending.kind->several;
    sending.connection = mbcf_connection_of(mbcf, task, request->ltn, &status);
    if (sending.connection != NULL)
        sending.channel = &mbcf->channels[sending.connection->node];
    if (sending.channel != NULL)
        mbcf_acks_take_noted(mbcf, sending.channel);
    if (*progress != 0)
        return go_on(mbcf, &sending, progress, status, now_ns);
    if (sending.connection == NULL)
        return -(status + MB_STATUS_BASE);
    if (sending.connection->phase != CONNECTION_OPEN)
        return -((int)sending.connection->reason + MB_STATUS_BASE);
    error = check_memory(mbcf, sending.task, request);
    return error != 0 ? error : begin_and_send(mbcf, &sending, progress, now_ns);
}

/* ---- the short way ---- */

/* The headers of a request on this connection, as far as they are the same for all. */
static __attribute__((noinline)) void
make_head(const struct mbcf *mbcf, const struct channel *channel, struct connection *connection)
{
    uint8_t *header = (uint8_t *)connection->head + MBW_ETHERNET;

    memset(connection->head, 0, sizeof(connection->head));
    memcpy(connection->head, channel->ethernet, MBW_ETHERNET);
    mbw_set_epoch(header, mbcf->config.epoch);
    mbw_set_target_epoch(header, channel->peer_epoch);
    connection->head_epoch = channel->peer_epoch;
}

/* One operation on the shortest way. */
struct short_way {
    struct mbcf_task *task;
    struct connection *connection;
    struct channel *channel;
    uint8_t *ack; /* NULL: none is wanted */
};

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* An open connection whose channel can send at once and whose tag is known, and an ack in one page.
 */
ALWAYS_INLINE bool is_quick(struct mbcf *mbcf, uint16_t id, const struct mb_operation *request,
                            struct short_way *quick)
{
    uint64_t ack = (uintptr_t)request->ack;

    quick->connection = mbcf->expected.sender;
    if (quick->connection == NULL || quick->connection->ltn != request->ltn ||
        quick->connection->task != id || quick->connection->tag_high != request->remote >> 32) {
        quick->connection = open_connection(mbcf, id, request->ltn);
        if (quick->connection == NULL || !channel_is_clear(quick->connection->channel) ||
            !tag_is_known(quick->connection->channel, quick->connection, request->remote))
            return false;
    }
    quick->task = quick->connection->owner;
    quick->channel = quick->connection->channel;
    quick->ack = NULL;
    if (ack == 0)
        return true;
    if ((ack & 7) != 0 || mbcf->free_operations.count == 0)
        return false;
    quick->ack = bytes_in_page(mbcf, quick->task, ack, sizeof(struct mb_ack), true);
    return quick->ack != NULL;
}

/* Its payload is there, of `length` bytes. */
ALWAYS_INLINE void send_quick(struct mbcf *mbcf, const struct short_way *quick,
                              const struct mb_operation *request, struct sss_frame *frame,
                              uint8_t flags, unsigned status, uint32_t length, bool answered,
                              uint64_t now_ns)
{
    struct connection *connection = quick->connection;
    struct channel *channel = quick->channel;
    uint32_t name = quick->ack != NULL ? mbcf_operation_next_name(mbcf) : connection->name;
    uint32_t seq = channel->next_seq;
    struct operation *operation = NULL;
    uint8_t *header = frame_header(frame);

    mbw_set_first_word(header, MBW_FIRST_WORD(request->op, flags, status, connection->tag));
    mbw_set_length_to_end(header, length,
                          quick->ack != NULL ? op_id_of(name & ~NAME_CONNECTION) : op_id_of(name),
                          (uint32_t)request->remote);
    frame->length = (uint16_t)mbw_frame_bytes(length);
    mbcf_channel_send_quick(mbcf, channel, frame, name, quick->ack != NULL,
                            quick->ack != NULL && !answered, now_ns);
    if (quick->ack != NULL) {
        operation = mbcf_operation_new(mbcf, quick->task, connection, request, answered);
        operation->is = (struct progress){.answered = answered, .maybe = true};
        operation->since = seq;
    }
    connection->unfinished++;
    mbcf->counters.operations_sent++;
    mbcf_acks_take_noted_behind(mbcf, channel, now_ns);
    mbcf->expected.sender = channel_stays_clear(channel) && mbcf->chores == 0 ? connection : NULL;
    mbcf->expected.operation = NULL;
    if (operation != NULL && !answered && channel_is_answered_by(channel, seq) &&
        channel->undecided == 0 && !mbcf->starved && mbcf->chores == 0) {
        mbcf->expected.operation = operation;
        mbcf->expected.connection = connection;
        mbw_set_ack((uint8_t *)channel->from_ack + MBW_ETHERNET, seq);
    }
}

/* With the headers; the payload of one that is padded is zero. */
ALWAYS_INLINE struct sss_frame *frame_quick(struct mbcf *mbcf, const struct short_way *quick)
{
    struct sss_frame *frame = mbcf_frame_get(mbcf);

    if (frame == NULL)
        return NULL;
    if (quick->connection->head_epoch != quick->channel->peer_epoch)
        make_head(mbcf, quick->channel, quick->connection);
    put_head(frame->bytes, quick->connection->head);
    if (quick->ack != NULL) /* before data are read, which may lie there */
        ack_store_state(quick->ack, MB_ACK_PENDING);
    return frame;
}

/* WRITE, FIFO and SIGNAL of one packet, its data in one page. */
ALWAYS_INLINE bool put_quick(struct mbcf *mbcf, uint16_t id, const struct mb_operation *request,
                             unsigned arguments, uint64_t now_ns)
{
    const uint32_t length = (uint32_t)request->length;
    const uint32_t head = arguments * MBW_SIGNAL_ARGUMENT;
    uint8_t flags = MBW_ACK_NOW;
    struct sss_frame *frame;
    struct short_way quick;
    uint8_t *data;

    if (request->length - 1 >= MBW_PAYLOAD - head ||
        (request->flags & ~(MB_NO_WAIT | MB_LAZY)) != 0 || !is_quick(mbcf, id, request, &quick))
        return false;
    data = bytes_in_page(mbcf, quick.task, (uintptr_t)request->data, length, false);
    frame = data != NULL ? frame_quick(mbcf, &quick) : NULL;
    if (frame == NULL)
        return false;
    if (arguments != 0)
        put_arguments(frame_payload(frame, 0), request);
    copy(frame_payload(frame, 0) + head, data, length);
    if ((quick.ack == NULL || (request->flags & MB_LAZY)) && !is_last_place(quick.channel))
        flags = 0;
    send_quick(mbcf, &quick, request, frame, flags, arguments, head + length, false, now_ns);
    return true;
}

/* READ of one packet into one page, and atomic operations, with an ack. */
static bool ask_quick(struct mbcf *mbcf, uint16_t id, const struct mb_operation *request,
                      uint64_t now_ns)
{
    const bool reads = request->op == MBW_READ;
    const uint32_t head = request->op == MBW_CAS ? MBW_CAS_PAYLOAD : MBW_WORD_PAYLOAD;
    const struct part part = {.length = (uint32_t)request->length, .last = true};
    struct sss_frame *frame;
    struct short_way quick;
    uint8_t flags;

    if ((request->flags & ~(MB_NO_WAIT | MB_LAZY | MB_WIDE)) != 0 || request->ack == NULL ||
        (reads ? request->length - 1 >= MBW_PAYLOAD : request->length != 0) ||
        !is_quick(mbcf, id, request, &quick) ||
        (reads &&
         bytes_in_page(mbcf, quick.task, (uintptr_t)request->data, request->length, true) == NULL))
        return false;
    frame = frame_quick(mbcf, &quick);
    if (frame == NULL)
        return false;
    write_head(request, &part, false, 0, frame_payload(frame, 0));
    flags = is_last_place(quick.channel) ? MBW_ACK_NOW : 0;
    if (!reads && (request->flags & MB_WIDE) != 0)
        flags |= MBW_WIDE;
    send_quick(mbcf, &quick, request, frame, flags, 0, head, true, now_ns);
    return true;
}

/* What most operations are, on the shortest way. false: it is not that, and nothing has been done.
 */
bool mbcf_operate_quick(struct mbcf *mbcf, uint16_t id, const struct mb_operation *request,
                        uint64_t now_ns)
{
    switch (request->op) {
    case MBW_WRITE:
    case MBW_FIFO:
        return put_quick(mbcf, id, request, 0, now_ns);
    case MBW_SIGNAL:
        return request->arguments <= MBW_SIGNAL_ARGUMENTS &&
               put_quick(mbcf, id, request, request->arguments, now_ns);
    case MBW_READ:
    case MBW_SWAP:
    case MBW_CAS:
    case MBW_FETCH_ADD:
        return ask_quick(mbcf, id, request, now_ns);
    default:
        return false;
    }
}
