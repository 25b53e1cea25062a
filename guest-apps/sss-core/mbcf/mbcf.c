/* SPDX-License-Identifier: Apache-2.0 */

/* The node: its start, what comes in, what time does to it, and which part notifies which. */
#include "acks.h"
#include "bytes.h"
#include "channel.h"
#include "connection.h"
#include "event.h"
#include "execute.h"
#include "fifo.h"
#include "operate.h"
#include "operation.h"
#include "pool.h"
#include "receive.h"

/* MBCF_SHORT_WAYS=0: the test that the short ways (README) do what the long ones do. */
#ifndef MBCF_SHORT_WAYS
#define MBCF_SHORT_WAYS 1
#endif
enum { SHORT_WAYS = MBCF_SHORT_WAYS };

/* ---- start ---- */

size_t mbcf_size(void)
{
    return sizeof(struct mbcf);
}

void mbcf_init(struct mbcf *mbcf, const struct mbcf_config *config, void *context)
{
    memset(mbcf, 0, sizeof(*mbcf));
    mbcf->context = context;
    mbcf->config = *config;
    if (mbcf->config.rto_least_ns == 0)
        mbcf->config.rto_least_ns = RTO_LEAST_NS;
    if (mbcf->config.rto_most_ns == 0)
        mbcf->config.rto_most_ns = RTO_MOST_NS;
    if (mbcf->config.ack_delay_ns == 0)
        mbcf->config.ack_delay_ns = ACK_DELAY_NS;
    if (mbcf->config.ack_every == 0)
        mbcf->config.ack_every = ACK_EVERY;
    mbcf->due_ns = NEVER;
    mbcf_slots_init(&mbcf->free_connections, mbcf->free_connection_slots, MB_CONNECTIONS);
    mbcf_slots_init(&mbcf->free_operations, mbcf->free_operation_slots, MB_OPERATIONS);
    mbcf_add_node(mbcf, config->node, config->mac);
}

uint16_t mbcf_node(const struct mbcf *mbcf)
{
    return mbcf->config.node;
}

int mbcf_add_node(struct mbcf *mbcf, uint16_t node, const uint8_t mac[6])
{
    struct channel *channel;

    if (node == 0 || node > SSS_NODES)
        return -SSS_EINVAL;
    channel = &mbcf->channels[node];
    if (channel->known)
        return -SSS_EEXIST;
    channel->known = true;
    channel->own = node == mbcf->config.node;
    channel->node = node;
    channel->bit = 1ull << (node - 1);
    if (!channel->own) {
        memcpy(channel->from, mbcf->config.mac, MBW_MAC);
        memcpy(channel->from + MBW_SOURCE_MAC_AT, mac, MBW_MAC);
        put_be16(channel->from + MBW_ETHERTYPE_AT, MBW_ETHERTYPE);
        channel->alike = mbcf->by_address[mac[MBW_MAC - 1]];
        mbcf->by_address[mac[MBW_MAC - 1]] = (uint8_t)node;
    }
    memcpy(channel->ethernet, mac, MBW_MAC);
    memcpy(channel->ethernet + MBW_SOURCE_MAC_AT, mbcf->config.mac, MBW_MAC);
    put_be16(channel->ethernet + MBW_ETHERTYPE_AT, MBW_ETHERTYPE);
    channel->allowed = WINDOW;
    channel->ack_due_ns = NEVER;
    channel->rto_ns = RTO_FIRST_NS > mbcf->config.rto_least_ns ? RTO_FIRST_NS
                                                               : mbcf->config.rto_least_ns;
    channel->base = channel->acked = mbcf->config.first_seq;
    channel->next_seq = seq_next(mbcf->config.first_seq);
    return 0;
}

/* ---- what channels report ---- */

static void window_open(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    if (mbcf->chores != 0) {
        mbcf_operation_chores(mbcf, channel, now_ns);
        mbcf_connection_chores(mbcf, channel, now_ns);
    }
    if (mbcf->starved)
        mbcf_wake(mbcf);
}

void mbcf_channel_event(struct mbcf *mbcf, struct channel *channel, enum channel_event event,
                        uint32_t name, int status, uint64_t now_ns)
{
    const bool of_connection = name & NAME_CONNECTION;

    switch (event) {
    case CHANNEL_SENT:
        mbcf_operation_sent(mbcf, name);
        break;
    case CHANNEL_DONE:
        if (of_connection)
            mbcf_connection_done(mbcf, name);
        else
            mbcf_operation_done(mbcf, name);
        break;
    case CHANNEL_UNDECIDED:
        if (of_connection)
            mbcf_connection_undecided(mbcf, name);
        else
            mbcf_operation_undecided(mbcf, name);
        break;
    case CHANNEL_DECIDED:
        mbcf_operations_decide(mbcf, channel->node);
        mbcf_connections_decide(mbcf, channel->node, MB_OK);
        break;
    case CHANNEL_LOST:
        mbcf_connection_lost(mbcf, name, status);
        break;
    case CHANNEL_FAILED:
        mbcf_connections_decide(mbcf, channel->node, status | MB_MAYBE);
        mbcf_operations_fail(mbcf, channel->node, status);
        mbcf_connections_break(mbcf, channel->node, 0, status);
        mbcf_segments_void(mbcf, channel->node, 0);
        mbcf_farewells_forget(mbcf, channel->node);
        if (mbcf->starved)
            mbcf_wake(mbcf); /* what waits for a place of the channel has failed */
        break;
    case CHANNEL_DOUBTED:
        mbcf_operations_doubt(mbcf, channel->node, status);
        mbcf_connections_decide(mbcf, channel->node, status | MB_MAYBE);
        break;
    case CHANNEL_FREED:
        window_open(mbcf, channel, now_ns);
        break;
    }
}

/* ---- receiving ---- */

/* For each operation: payload bytes at least and at most, and flags that it may have. */
struct form {
    uint16_t least, most;
    uint8_t flags;
    bool sequenced;
    bool known;
};

static const struct form *form_of(uint8_t op)
{
    enum { ANY = MBW_ACK_NOW | MBW_RETX | MBW_UNSURE, KEYED = ANY | MBW_DEFINES };
    static const struct form forms[MBW_RESULT + 1] = {
        [MBW_ACK] = {0, 0, MBW_UNSURE, false, true},
        [MBW_SYN] = {MBW_NONCES, MBW_NONCES, 0, false, true},
        [MBW_SYNACK] = {MBW_NONCES, MBW_NONCES, 0, false, true},
        [MBW_OPENED] = {MBW_NONCES, MBW_NONCES, 0, false, true},
        [MBW_RST] = {0, 0, 0, false, true},
        [MBW_PROBE] = {0, 0, MBW_UNSURE, false, true},
        [MBW_TASKQUE] = {MBW_TASKQUE_HEAD, MBW_PAYLOAD, ANY, true, true},
        [MBW_WRITE] = {0, MBW_PAYLOAD, KEYED | MBW_MORE, true, true},
        [MBW_READ] = {MBW_READ_PAYLOAD, MBW_READ_PAYLOAD, KEYED | MBW_MORE, true, true},
        [MBW_FIFO] = {0, MBW_PAYLOAD, KEYED | MBW_MORE | MBW_PART, true, true},
        [MBW_SIGNAL] = {0, MBW_PAYLOAD, KEYED, true, true},
        [MBW_SWAP] = {MBW_WORD_PAYLOAD, MBW_WORD_PAYLOAD, KEYED | MBW_WIDE, true, true},
        [MBW_CAS] = {MBW_CAS_PAYLOAD, MBW_CAS_PAYLOAD, KEYED | MBW_WIDE, true, true},
        [MBW_FETCH_ADD] = {MBW_WORD_PAYLOAD, MBW_WORD_PAYLOAD, KEYED | MBW_WIDE, true, true},
        [MBW_CLOSE] = {0, MBW_CLOSE_PAYLOAD, ANY, true, true},
        [MBW_RESULT] = {0, MBW_PAYLOAD, ANY, true, true},
    };
    /* Of a later version of the protocol: refused with MB_BADOP, in its place of the sequence. */
    static const struct form later = {0, MBW_PAYLOAD, 0xff, true, true};

    if (op <= MBW_RESULT && forms[op].known)
        return &forms[op];
    return op >= MBW_TASKQUE ? &later : NULL;
}

/* The highest `status` that a frame like this may have. */
static unsigned status_most(const struct packet *packet)
{
    unsigned arguments = packet->length / MBW_SIGNAL_ARGUMENT;

    if (packet->op == MBW_SIGNAL)
        return arguments < MBW_SIGNAL_ARGUMENTS ? arguments : MBW_SIGNAL_ARGUMENTS;
    return packet->op == MBW_RESULT ? MB_LAST_REMOTE : 0;
}

static bool has_form(const struct packet *packet)
{
    const struct form *form = form_of(packet->op);

    if (form == NULL || packet->length < form->least || packet->length > form->most ||
        (packet->flags & ~form->flags) != 0)
        return false;
    if (packet->epoch == 0 || packet->status > status_most(packet))
        return false;
    if (form->sequenced ? packet->seq == 0 : packet->seq != 0 && packet->length != MBW_NONCES)
        return false;
    if (mbw_is_keyed(packet->op) ? packet->tag >= TAGS : packet->tag != 0)
        return false;
    if (packet->op == MBW_CLOSE)
        return packet->length == (packet->destination != 0 ? MBW_CLOSE_PAYLOAD : 0);
    /* Parts have a place in their segment; only they have. READ is nothing without its result,
     * which an operation waits for. */
    if (packet->op == MBW_FIFO)
        return packet->flags & MBW_PART ? packet->length >= MBW_PART_HEAD
                                        : !(packet->flags & MBW_MORE);
    return packet->op != MBW_READ || !(packet->op_id & MBW_OP_ID_CONNECTION);
}

static bool parse(struct packet *packet, const uint8_t *frame, size_t length)
{
    const uint8_t *header = frame + MBW_ETHERNET;

    if (length < MBW_FRAME_LEAST || length > MBW_FRAME_MOST || mbw_version(header) != MBW_VERSION)
        return false;
    *packet = (struct packet){
        .op = mbw_op(header),
        .flags = mbw_flags(header),
        .status = mbw_status(header),
        .tag = mbw_tag(header),
        .length = mbw_length(header),
        .op_id = mbw_op_id(header),
        .epoch = mbw_epoch(header),
        .target_epoch = mbw_target_epoch(header),
        .seq = mbw_seq(header),
        .ack = mbw_ack(header),
    };
    packet->payload = header + MBW_HEADER + mbw_definition_bytes(packet->flags);
    if (packet->op == MBW_RESULT) {
        packet->request = mbw_request(header);
    } else if (!mbw_is_keyed(packet->op)) {
        packet->source = mbw_source_task(header);
        packet->destination = mbw_target_task(header);
    }
    return mbw_frame_bytes((uint32_t)mbw_definition_bytes(packet->flags) + packet->length) ==
               length &&
           has_form(packet);
}

/* What the tag of a frame in its turn stands for. */
static void resolve(struct channel *channel, struct packet *packet, const uint8_t *header)
{
    struct definition *definition = &channel->definitions[packet->tag];

    if (packet->flags & MBW_DEFINES)
        *definition = (struct definition){.source = mbw_tag_source_task(header),
                                          .target = mbw_tag_target_task(header),
                                          .address_high = mbw_tag_address_high(header),
                                          .key = mbw_tag_key(header)};
    packet->source = definition->source;
    packet->destination = definition->target;
    packet->key = definition->key;
    packet->address = (uint64_t)definition->address_high << 32 | mbw_offset(header);
}

static bool execute(struct mbcf *mbcf, struct channel *channel, const struct packet *packet,
                    uint64_t now_ns)
{
    if (packet->op == MBW_RESULT)
        mbcf_operation_result(mbcf, packet);
    else if (packet->op == MBW_CLOSE)
        mbcf_connection_closed(mbcf, packet);
    else
        return mbcf_execute(mbcf, channel, packet, now_ns);
    return true;
}

/* Not inline: what comes the short way must not pay for it. */
static __attribute__((noinline)) void receive(struct mbcf *mbcf, uint64_t now_ns,
                                              struct channel *channel, const uint8_t *frame,
                                              size_t length)
{
    struct packet packet;
    uint32_t before;

    count_received(mbcf, length);
    if (!parse(&packet, frame, length)) {
        mbcf->counters.malformed++;
        return;
    }
    packet.node = channel->node;
    if (!mbcf_channel_receive(mbcf, channel, &packet, &before, now_ns))
        return;
    if (mbw_is_keyed(packet.op))
        resolve(channel, &packet, frame + MBW_ETHERNET);
    if (execute(mbcf, channel, &packet, now_ns))
        mbcf_channel_executed(mbcf, channel, &packet, now_ns);
    else
        mbcf_channel_not_executed(mbcf, channel, before, now_ns);
}

static inline uint64_t word_at(const void *bytes, size_t at)
{
    uint64_t word;

    memcpy(&word, (const uint8_t *)bytes + at, sizeof(word));
    return word;
}

/* Two frames begin alike up to `end`, which is more than 24: three words, and the last one before
 * it. */
static inline bool begin_alike(const void *a, const void *b, size_t end)
{
    return ((word_at(a, 8) ^ word_at(b, 8)) | (word_at(a, 0) ^ word_at(b, 0)) |
            (word_at(a, 16) ^ word_at(b, 16)) | (word_at(a, end - 8) ^ word_at(b, end - 8))) == 0;
}

enum { TO_ACK = MBW_ETHERNET + MBW_AT(ack), TO_OP_ID = MBW_ETHERNET + MBW_AT(op_id) };
_Static_assert(TO_ACK >= 24 && TO_ACK - 8 <= 24 && TO_OP_ID >= 32 && TO_OP_ID - 8 <= 32, "no gap");

static inline bool take_expected_ack(struct mbcf *mbcf, uint64_t now_ns, const uint8_t *frame,
                                     size_t length)
{
    struct channel *channel;

    if (mbcf->expected.operation == NULL || length != MBW_FRAME_LEAST)
        return false;
    channel = mbcf->expected.connection->channel;
    if (!begin_alike(frame, channel->from_ack, TO_OP_ID) ||
        word_at(frame, 24) != word_at(channel->from_ack, 24) || !mbcf_operation_done_expected(mbcf))
        return false;
    mbcf->expected.operation = NULL;
    mbcf_acks_take_quick(mbcf, channel, mbw_ack(frame + MBW_ETHERNET), true, now_ns);
    count_received(mbcf, length);
    return true;
}

static void expect_request(struct mbcf *mbcf, struct channel *channel, const uint8_t *frame)
{
    uint8_t *request = (uint8_t *)mbcf->expected.request;

    memcpy(request, frame, sizeof(mbcf->expected.request));
    mbw_set_seq(request + MBW_ETHERNET, seq_next(channel->received));
    mbcf->expected.channel = channel->undecided == 0 ? channel : NULL;
}

static inline bool take_expected_request(struct mbcf *mbcf, uint64_t now_ns, const uint8_t *frame,
                                         size_t length)
{
    const uint8_t *header = frame + MBW_ETHERNET;
    struct channel *channel = mbcf->expected.channel;
    uint8_t *request = (uint8_t *)mbcf->expected.request;

    if (channel == NULL || length - MBW_FRAME_LEAST > MBW_FRAME_MOST - MBW_FRAME_LEAST ||
        !begin_alike(frame, request, TO_ACK) || mbw_frame_bytes(mbw_length(header)) != length)
        return false;
    mbcf_acks_note(mbcf, channel, mbw_ack(header), now_ns);
    if (!mbcf_execute_expected(mbcf, channel, header, mbw_length(header)))
        return false;
    mbcf_channel_executed_quick(mbcf, channel, frame, length, now_ns);
    mbw_set_seq(request + MBW_ETHERNET, seq_next(channel->received));
    mbcf->expected.operation = NULL;
    return true;
}

static __attribute__((noinline)) bool receive_quick(struct mbcf *mbcf, uint64_t now_ns,
                                                    const uint8_t *frame, size_t length)
{
    struct channel *channel;
    enum turn turn = mbcf_channel_receive_quick(mbcf, frame, length, &channel, now_ns);

    if (turn == TURN_TO_COMPLETE) {
        mbcf_acks_take_quick(mbcf, channel, mbw_ack(frame + MBW_ETHERNET),
                             mbcf_operation_done_quick(mbcf, channel_first_place(channel)->name),
                             now_ns);
        count_received(mbcf, length);
        return true;
    }
    if (turn == TURN_TO_ANSWER) {
        if (!mbcf_answer_quick(mbcf, channel, frame + MBW_ETHERNET,
                               mbw_length(frame + MBW_ETHERNET), now_ns))
            return false;
        mbcf_channel_answered_quick(mbcf, channel, length);
        return true;
    }
    if (turn == TURN_TO_END) {
        if (!mbcf_operation_result_quick(mbcf, channel->node, frame + MBW_ETHERNET))
            return false;
        mbcf_channel_executed_quick(mbcf, channel, frame, length, now_ns);
        mbcf_acks_note(mbcf, channel, mbw_ack(frame + MBW_ETHERNET), now_ns);
        return true;
    }
    if (turn != TURN_TO_EXECUTE)
        return turn == TURN_OVER;
    if (!mbcf_execute_quick(mbcf, channel, frame + MBW_ETHERNET, mbw_length(frame + MBW_ETHERNET)))
        return false;
    mbcf_channel_executed_quick(mbcf, channel, frame, length, now_ns);
    expect_request(mbcf, channel, frame);
    return true;
}

/* To be called last by everything that may send: frames to the own node never see a wire. */
static void settle(struct mbcf *mbcf, uint64_t now_ns)
{
    struct sss_frame *frame;

    while ((frame = mbcf_loop_take(mbcf)) != NULL) {
        receive(mbcf, now_ns, &mbcf->channels[mbcf->config.node], frame->bytes, frame->length);
        mbcf_frame_put(mbcf, frame);
    }
    if (mbcf->scarce)
        due_by(mbcf, now_ns + SCARCE_NS);
    tell_touched(mbcf);
}

void mbcf_receive(struct mbcf *mbcf, uint64_t now_ns, const uint8_t *frame, size_t length)
{
    struct channel *channel;

    if (SHORT_WAYS && (take_expected_ack(mbcf, now_ns, frame, length) ||
                       take_expected_request(mbcf, now_ns, frame, length))) {
        tell_touched(mbcf);
        return;
    }
    expect_nothing(mbcf);
    if (SHORT_WAYS && receive_quick(mbcf, now_ns, frame, length)) {
        tell_touched(mbcf);
        return;
    }
    channel = length >= MBW_ETHERNET ? mbcf_channel_of(mbcf, frame) : NULL;
    if (channel != NULL) {
        receive(mbcf, now_ns, channel, frame, length);
        settle(mbcf, now_ns);
    } else {
        /* Not from a node that is known to us, or from ourselves, or not to us. */
        count_received(mbcf, length);
        mbcf->counters.foreign++;
    }
}

/* ---- what tasks do, beside what only declares ---- */

int mbcf_operate(struct mbcf *mbcf, uint16_t task, struct mb_operation *operation,
                 uint64_t *progress, uint64_t now_ns)
{
    int error;

    if (SHORT_WAYS && *progress == 0 && mbcf_operate_quick(mbcf, task, operation, now_ns))
        return 0;
    expect_nothing(mbcf);
    error = mbcf_operate_any(mbcf, task, operation, progress, now_ns);
    settle(mbcf, now_ns);
    return error;
}

int mbcf_close(struct mbcf *mbcf, uint16_t task, int ltn, uint64_t now_ns)
{
    int error;

    expect_nothing(mbcf);
    error = mbcf_connection_close(mbcf, task, ltn, now_ns);
    settle(mbcf, now_ns);
    return error;
}

void mbcf_task_close(struct mbcf *mbcf, uint16_t id, uint64_t now_ns)
{
    struct mbcf_task *task = task_of(mbcf, id);

    if (task == NULL)
        return;
    expect_nothing(mbcf);
    mbcf_operations_forget(mbcf, task);
    mbcf_segments_forget(mbcf, task, -1);
    mbcf_connection_task_ends(mbcf, task, now_ns);
    settle(mbcf, now_ns);
}

/* ---- time ---- */

uint64_t mbcf_next_timeout(const struct mbcf *mbcf)
{
    return mbcf->due_ns;
}

/* Buffers that others held may be back. */
static void try_again(struct mbcf *mbcf, uint64_t now_ns)
{
    mbcf->scarce = false;
    for (unsigned node = 1; node <= SSS_NODES; node++)
        if (mbcf->channels[node].known) {
            mbcf_acks_take_noted(mbcf, &mbcf->channels[node]);
            window_open(mbcf, &mbcf->channels[node], now_ns);
        }
}

void mbcf_timeout(struct mbcf *mbcf, uint64_t now_ns)
{
    if (now_ns < mbcf->due_ns)
        return;
    expect_nothing(mbcf);
    for (unsigned node = 1; node <= SSS_NODES; node++)
        if (mbcf->channels[node].known)
            mbcf_channel_timeout(mbcf, &mbcf->channels[node], now_ns);
    if (mbcf->scarce)
        try_again(mbcf, now_ns);
    mbcf->due_ns = NEVER;
    settle(mbcf, now_ns);
    for (unsigned node = 1; node <= SSS_NODES; node++)
        if (mbcf->channels[node].known)
            due_by(mbcf, mbcf_channel_due(mbcf, &mbcf->channels[node]));
}
