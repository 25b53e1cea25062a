/* SPDX-License-Identifier: Apache-2.0 */

/* The node: its start, what comes in, what time does to it, and what can be seen of it. */
#include "bytes.h"

size_t mbcf_size(void)
{
    return sizeof(struct mbcf);
}

/* ---- pools ---- */

static void slots_init(struct free_slots *free, uint16_t *slots, unsigned size)
{
    *free = (struct free_slots){.slots = slots, .size = size};
    for (unsigned i = 0; i < size; i++)
        mbcf_slot_give(free, (uint16_t)i);
}

struct sss_frame *mbcf_frame_get(struct mbcf *mbcf)
{
    struct sss_frame *frame = TO(mbcf, frame_get)(mbcf->to.context);

    if (frame == NULL)
        mbcf->scarce = true;
    return frame;
}

/* ---- start ---- */

void mbcf_init(struct mbcf *mbcf, const struct mbcf_config *config,
               const struct mbcf_surroundings *surroundings)
{
    memset(mbcf, 0, sizeof(*mbcf));
    mbcf->to = *surroundings;
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
    mbcf->own_half = epoch_half(config->epoch);
    slots_init(&mbcf->free_connections, mbcf->free_connection_slots, MB_CONNECTIONS);
    slots_init(&mbcf->free_operations, mbcf->free_operation_slots, MB_OPERATIONS);
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
        memcpy(channel->from, mac, MBW_MAC);
        put_be16(channel->from + MBW_MAC, MBW_ETHERTYPE);
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
    enum { ANY = MBW_ACK_NOW | MBW_RETX | MBW_UNSURE };
    static const struct form forms[MBW_RESULT + 1] = {
        [MBW_ACK] = {0, 0, MBW_UNSURE, false, true},
        [MBW_SYN] = {0, 0, 0, false, true},
        [MBW_SYNACK] = {0, 0, 0, false, true},
        [MBW_RST] = {0, 0, 0, false, true},
        [MBW_PROBE] = {0, 0, MBW_UNSURE, false, true},
        [MBW_TASKQUE] = {MBW_TASKQUE_HEAD, MBW_PAYLOAD, ANY, true, true},
        [MBW_WRITE] = {0, MBW_PAYLOAD, ANY | MBW_MORE, true, true},
        [MBW_READ] = {MBW_READ_PAYLOAD, MBW_READ_PAYLOAD, ANY | MBW_MORE, true, true},
        [MBW_FIFO] = {0, MBW_PAYLOAD, ANY | MBW_MORE | MBW_PART, true, true},
        [MBW_SIGNAL] = {0, MBW_PAYLOAD, ANY, true, true},
        [MBW_SWAP] = {MBW_WORD_PAYLOAD, MBW_WORD_PAYLOAD, ANY | MBW_WIDE, true, true},
        [MBW_CAS] = {MBW_CAS_PAYLOAD, MBW_CAS_PAYLOAD, ANY | MBW_WIDE, true, true},
        [MBW_FETCH_ADD] = {MBW_WORD_PAYLOAD, MBW_WORD_PAYLOAD, ANY | MBW_WIDE, true, true},
        [MBW_CLOSE] = {0, 0, ANY, true, true},
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
    if (form->sequenced ? packet->seq == 0
                        : packet->seq != 0 && packet->op != MBW_SYN && packet->op != MBW_SYNACK)
        return false;
    /* Parts have a place in their segment; only they have. READ is nothing without its result,
     * which an operation waits for. */
    if (packet->op == MBW_FIFO)
        return packet->flags & MBW_PART ? packet->length >= MBW_PART_HEAD
                                        : !(packet->flags & MBW_MORE);
    return packet->op != MBW_READ || !(packet->op_id & NAME_CONNECTION);
}

static bool parse(struct packet *packet, const uint8_t *frame, size_t length)
{
    const uint8_t *header = frame + MBW_ETHERNET;

    if (length < MBW_ETHERNET + MBW_HEADER || length > MBW_FRAME_MOST ||
        get_be16(frame + MBW_ETHERTYPE_AT) != MBW_ETHERTYPE || mbw_version(header) != MBW_VERSION)
        return false;
    *packet = (struct packet){
        .op = mbw_op(header),
        .flags = mbw_flags(header),
        .status = mbw_status(header),
        .length = mbw_length(header),
        .node = mbw_source_node(header),
        .source = mbw_source_task(header),
        .destination = mbw_target_task(header),
        .ack_epoch = mbw_ack_epoch(header),
        .epoch = mbw_epoch(header),
        .seq = mbw_seq(header),
        .ack = mbw_ack(header),
        .op_id = mbw_op_id(header),
        .key = mbw_key(header),
        .address = mbw_address(header),
        .payload = header + MBW_HEADER,
    };
    return packet->length == length - MBW_ETHERNET - MBW_HEADER && has_form(packet);
}

/* Not inline: what comes the short way shall not pay for it. */
static __attribute__((noinline)) void receive(struct mbcf *mbcf, uint64_t now_ns,
                                              const uint8_t *frame, size_t length)
{
    struct packet packet;
    struct channel *channel;

    mbcf->counters.frames_received++;
    mbcf->counters.bytes_received += length;
    if (!parse(&packet, frame, length)) {
        mbcf->counters.malformed++;
        return;
    }
    channel = packet.node <= SSS_NODES ? &mbcf->channels[packet.node] : &mbcf->channels[0];
    if (!channel->known || memcmp(channel->ethernet, frame + MBW_SOURCE_MAC_AT, MBW_MAC) != 0 ||
        mbw_target_node(frame + MBW_ETHERNET) != mbcf->config.node) {
        mbcf->counters.foreign++;
        return;
    }
    mbcf_channel_receive(mbcf, channel, &packet, now_ns);
}

/* ---- the own node: frames to it never see a wire ---- */

void mbcf_loop(struct mbcf *mbcf, struct sss_frame *frame)
{
    /* What finds no place is lost, as on a wire. */
    if (mbcf->loop_end - mbcf->loop_first < LOOP) {
        frame->users++;
        mbcf->loop[mbcf->loop_end++ % LOOP] = frame;
    }
}

void mbcf_settle(struct mbcf *mbcf, uint64_t now_ns)
{
    while (mbcf->loop_first != mbcf->loop_end) {
        struct sss_frame *frame = mbcf->loop[mbcf->loop_first++ % LOOP];

        receive(mbcf, now_ns, frame->bytes, frame->length);
        TO(mbcf, frame_put)(mbcf->to.context, frame);
    }
    if (mbcf->scarce)
        due_by(mbcf, now_ns + SCARCE_NS);
    tell_touched(mbcf);
}

void mbcf_receive(struct mbcf *mbcf, uint64_t now_ns, const uint8_t *frame, size_t length)
{
    if (mbcf_channel_receive_quick(mbcf, frame, length, now_ns)) {
        tell_touched(mbcf);
        return;
    }
    /* A frame from the own node on the wire is somebody else's. */
    if (length >= MBW_ETHERNET &&
        memcmp(frame + MBW_SOURCE_MAC_AT, mbcf->config.mac, MBW_MAC) == 0) {
        mbcf->counters.frames_received++;
        mbcf->counters.bytes_received += length;
        mbcf->counters.foreign++;
        return;
    }
    receive(mbcf, now_ns, frame, length);
    mbcf_settle(mbcf, now_ns);
}

/* ---- places and operations that fell free ---- */

void mbcf_wake(struct mbcf *mbcf)
{
    mbcf->starved = false;
    TO(mbcf, window_open)(mbcf->to.context);
}

void mbcf_window_open(struct mbcf *mbcf, struct channel *channel, uint64_t now_ns)
{
    if (mbcf->chores != 0) {
        mbcf_operation_chores(mbcf, channel, now_ns);
        mbcf_connection_chores(mbcf, channel, now_ns);
    }
    if (mbcf->starved)
        mbcf_wake(mbcf);
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
            mbcf_channel_take_noted(mbcf, &mbcf->channels[node]);
            mbcf_window_open(mbcf, &mbcf->channels[node], now_ns);
        }
}

void mbcf_timeout(struct mbcf *mbcf, uint64_t now_ns)
{
    if (now_ns < mbcf->due_ns)
        return;
    for (unsigned node = 1; node <= SSS_NODES; node++)
        if (mbcf->channels[node].known)
            mbcf_channel_timeout(mbcf, &mbcf->channels[node], now_ns);
    if (mbcf->scarce)
        try_again(mbcf, now_ns);
    mbcf->due_ns = NEVER;
    mbcf_settle(mbcf, now_ns);
    for (unsigned node = 1; node <= SSS_NODES; node++)
        if (mbcf->channels[node].known)
            due_by(mbcf, mbcf_channel_due(mbcf, &mbcf->channels[node]));
}

/* ---- looking at it ---- */

const struct mbcf_counters *mbcf_counters(const struct mbcf *mbcf)
{
    return &mbcf->counters;
}

bool mbcf_channel_at(const struct mbcf *mbcf, unsigned index, struct mbcf_channel_info *info)
{
    for (unsigned node = 1; node <= SSS_NODES; node++) {
        const struct channel *channel = &mbcf->channels[node];

        if (!channel->known || index-- != 0)
            continue;
        *info = (struct mbcf_channel_info){
            .node = channel->node,
            .state = channel->state,
            .epoch = mbcf->config.epoch,
            .peer_epoch = channel->peer_epoch,
            .next_seq = channel->next_seq,
            .acked = channel->acked,
            .received = channel->received,
            .in_flight = channel->end - channel->first,
            .rto_ns = channel->rto_ns,
            .srtt_ns = channel->srtt_ns,
        };
        return true;
    }
    return false;
}

bool mbcf_connection_at(const struct mbcf *mbcf, unsigned index, struct mbcf_connection_at *info)
{
    for (unsigned i = 0; i < MB_CONNECTIONS; i++) {
        const struct connection *connection = &mbcf->connections[i];

        if (connection->phase == CONNECTION_FREE || index-- != 0)
            continue;
        info->task = connection->task;
        info->ltn = mbcf_connection_ltn(mbcf, connection);
        mbcf_connection_describe(connection, &info->connection);
        return true;
    }
    return false;
}

bool mbcf_fifo_at(const struct mbcf *mbcf, unsigned index, struct mbcf_fifo_at *info)
{
    for (unsigned i = 0; i < TASK_SLOTS; i++) {
        const struct task *task = &mbcf->tasks[i];
        const struct ring *ring;

        if (task->id == 0 || task->gone)
            continue;
        for (unsigned at = 0; at < MB_FIFOS + 2; at++) {
            ring = at == 0 ? &task->taskque : at == 1 ? &task->signal_queue : &task->fifos[at - 2];
            if (ring->address == 0 || index-- != 0)
                continue;
            *info = (struct mbcf_fifo_at){.task = task->id,
                                          .kind = (uint16_t)(at == 0   ? 1
                                                             : at == 1 ? 2
                                                                       : 0),
                                          .address = ring->address,
                                          .size = ring->size,
                                          .used = mbcf_ring_used(mbcf, task, ring)};
            return true;
        }
    }
    return false;
}
