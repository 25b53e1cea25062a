/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <stdlib.h>

enum { SERVER = RIG_CLIENTS, SERVER_ADDRESS = 0x0a000001, CLIENT_ADDRESS = 0x0a000010 };

const struct dce_uuid rig_interface = {{0x2f, 0x5c, 0x16, 0x9e, 0x8b, 0x1d, 0x4a, 0x73, 0x9e, 0x0c,
                                        0x51, 0xd7, 0x6a, 0x3b, 0x84, 0xf2}};

static bool has_operation(uint16_t opnum)
{
    return opnum <= RIG_FAULT;
}

static const struct dce_interface interfaces[] = {{{{0}}, 1, has_operation}};
static struct dce_interface served[1];

uint64_t rig_random(struct rig *rig)
{
    /* xorshift64* */
    rig->random ^= rig->random >> 12;
    rig->random ^= rig->random << 25;
    rig->random ^= rig->random >> 27;
    return rig->random * 0x2545f4914f6cdd1du >> 16;
}

uint8_t rig_byte(uint32_t seq, size_t at)
{
    return (uint8_t)(seq * 131 + at * 7 + (at >> 8));
}

static void fill(uint8_t *bytes, uint32_t seq, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = rig_byte(seq, i);
}

static bool matches(const uint8_t *bytes, uint32_t seq, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != rig_byte(seq, i))
            return false;
    return true;
}

static void *need(size_t bytes)
{
    void *memory = calloc(1, bytes);

    if (memory == NULL)
        abort();
    return memory;
}

static void start_server(struct rig *rig)
{
    const struct rig_settings *from = &rig->settings;
    struct dce_server_settings settings = {
        .xmitq = {from->policy, from->fragment, 2 * DCE_SECOND_NS},
        .offer = {(uint16_t)from->window_kib, from->fragment},
        .big_endian = from->server_big,
        .boot_time = rig->boot_time,
        .conv_activity = {{0xc0, 1, 2, 3}},
        .interfaces = served,
        .interface_count = 1,
        .activities = RIG_ACTIVITIES,
        .request_bytes = RIG_MOST,
        .response_bytes = RIG_MOST,
        .give_up_ns = 30 * DCE_SECOND_NS,
        .half_ns = 60 * DCE_SECOND_NS,
        .idle_ns = 300 * DCE_SECOND_NS,
    };

    free(rig->server_memory);
    rig->server_memory = need(dce_server_memory(&settings));
    dce_server_init(&rig->server, &settings, rig->server_memory);
    rig->running = 0;
}

void rig_restart_server(struct rig *rig)
{
    rig->boot_time++;
    start_server(rig);
}

void rig_open(struct rig *rig, const struct rig_settings *settings)
{
    *rig = (struct rig){.settings = *settings, .random = 88172645463325252u, .boot_time = 0x5eed};
    served[0] = interfaces[0];
    served[0].uuid = rig_interface;
    rig->now = 7 * DCE_SECOND_NS;
    rig->arguments = need((RIG_MOST + 1) * (size_t)RIG_CLIENTS);
    start_server(rig);
    for (unsigned i = 0; i < settings->clients; i++) {
        struct dce_client_settings client = {
            .xmitq = {settings->policy, settings->fragment, 2 * DCE_SECOND_NS},
            .offer = {(uint16_t)settings->window_kib, settings->fragment},
            .big_endian = settings->client_big,
            .activity = {{0xac, (uint8_t)i, 3, 4, 5, 6, 7, 8, 9}},
            .server = {SERVER_ADDRESS, 2001},
            .ping_ns = 2 * DCE_SECOND_NS,
            .ack_delay_ns = DCE_SECOND_NS,
            .give_up_ns = 30 * DCE_SECOND_NS,
            .broadcast_ns = 5 * DCE_SECOND_NS,
            .cancel_ns = DCE_SECOND_NS,
        };

        rig->memory[i] = need(dce_xmitq_memory(&client.xmitq));
        rig->results[i] = need(dce_recvq_room(RIG_MOST));
        dce_client_init(&rig->client[i], &client, rig->memory[i], rig->results[i],
                        dce_recvq_room(RIG_MOST));
    }
}

void rig_close(struct rig *rig)
{
    for (unsigned i = 0; i < rig->on_wire; i++)
        free(rig->wire[i].bytes);
    free(rig->wire);
    for (unsigned i = 0; i < rig->settings.clients; i++) {
        free(rig->memory[i]);
        free(rig->results[i]);
    }
    free(rig->arguments);
    free(rig->server_memory);
}

/* ---- the wire ---- */

static void put_on_wire(struct rig *rig, uint64_t at, unsigned from, const struct dce_peer *to,
                        const uint8_t *bytes, size_t length)
{
    struct rig_packet *packet;

    if (rig->on_wire == rig->wire_room) {
        rig->wire_room = rig->wire_room * 2 + 16;
        rig->wire = realloc(rig->wire, rig->wire_room * sizeof(*rig->wire));
        if (rig->wire == NULL)
            abort();
    }
    packet = &rig->wire[rig->on_wire++];
    *packet = (struct rig_packet){.at = at, .order = rig->order++, .length = length};
    packet->to = to->address == SERVER_ADDRESS ? SERVER : to->address - CLIENT_ADDRESS;
    packet->from = from == SERVER
                       ? (struct dce_peer){SERVER_ADDRESS, 2001}
                       : (struct dce_peer){CLIENT_ADDRESS + from, (uint16_t)(3000 + from)};
    packet->bytes = need(length + 1);
    memcpy(packet->bytes, bytes, length);
}

struct sender {
    struct rig *rig;
    unsigned from;
};

static void send_packet(void *context, const struct dce_peer *to, const uint8_t *bytes,
                        size_t length)
{
    const struct sender *sender = context;
    struct rig *rig = sender->rig;
    uint64_t *free_at = &rig->free_at[sender->from], at;
    enum rig_fate fate = RIG_PASS;
    struct dce_pdu pdu;

    if (!dce_pdu_decode(bytes, length, &pdu))
        abort();
    rig->sent_of[pdu.ptype]++;
    if (rig->settings.fate != NULL)
        fate = rig->settings.fate(rig, rig->sent, &pdu);
    rig->sent++;
    *free_at = (*free_at > rig->now ? *free_at : rig->now) + length * rig->settings.byte_ns;
    at = *free_at + rig->settings.latency_ns;
    if (fate == RIG_DAMAGE) {
        /* What the parser refuses: other damage is what UDP has a checksum for. */
        static const struct {
            unsigned at;
            uint8_t flip;
        } damages[] = {{0, 0x02}, {1, 0x80}, {4, 0x40}, {5, 0x01}, {74, 0xff}, {75, 0xff}};
        uint64_t which = rig_random(rig) % (sizeof(damages) / sizeof(*damages) + 1);
        uint8_t damaged[DCE_HEADER + DCE_BODY_MOST];
        size_t left = length;

        memcpy(damaged, bytes, length);
        if (which == sizeof(damages) / sizeof(*damages))
            left = rig_random(rig) % DCE_HEADER;
        else
            damaged[damages[which].at] ^= damages[which].flip;
        if (!dce_pdu_decode(damaged, left, &pdu))
            put_on_wire(rig, at, sender->from, to, damaged, left);
        return;
    }
    if (fate == RIG_DROP)
        return;
    if (fate == RIG_LATE)
        at += rig_random(rig) % (3 * DCE_SECOND_NS);
    put_on_wire(rig, at, sender->from, to, bytes, length);
    if (fate == RIG_DOUBLE)
        put_on_wire(rig, at + rig_random(rig) % DCE_SECOND_NS, sender->from, to, bytes, length);
}

/* ---- both sides ---- */

static void begin_call(struct rig *rig, unsigned i)
{
    struct rig_call *call = &rig->call[i];
    struct dce_client *client = &rig->client[i];
    struct dce_operation operation = {.interface = rig_interface,
                                      .version = 1,
                                      .opnum = call->opnum,
                                      .semantics = rig->settings.semantics};
    uint8_t *arguments = rig->arguments + i * (size_t)(RIG_MOST + 1);
    bool in = call->opnum == RIG_PUT || call->opnum == RIG_ECHO;

    fill(arguments, client->called ? client->seq + 1 : client->settings.seq, in ? call->size : 0);
    dce_client_call(client, rig->now, &operation, arguments, in ? call->size : 0);
}

static void end_call(struct rig *rig, unsigned i)
{
    struct rig_call *call = &rig->call[i];
    struct dce_client *client = &rig->client[i];
    bool out = call->opnum == RIG_GET || call->opnum == RIG_ECHO;

    call->status = client->status;
    if (client->status != DCE_OK)
        call->failed++;
    else if ((rig->settings.semantics & DCE_MAYBE) == 0 &&
             (client->recvq.length != (out ? call->size : 0) ||
              !matches(rig->results[i], client->seq, client->recvq.length)))
        rig->wrong_bytes = true;
    call->done++;
    if (--call->calls != 0)
        begin_call(rig, i);
}

static void drain_client(struct rig *rig, unsigned i)
{
    struct sender sender = {rig, i};
    struct dce_packet packet;

    for (;;)
        switch (dce_client_next(&rig->client[i], rig->now, &packet)) {
        case DCE_SEND:
            xmitq_send(&packet, send_packet, &sender);
            break;
        case DCE_DONE:
            end_call(rig, i);
            break;
        default:
            return;
        }
}

static void note_execution(struct rig *rig, const struct dce_activity *activity)
{
    for (unsigned i = 0; i < rig->executions; i++)
        if (rig->executed[i].seq == activity->header.seq &&
            dce_uuid_equal(&rig->executed[i].activity, &activity->uuid)) {
            rig->executed[i].times++;
            return;
        }
    if (rig->executions == RIG_EXECUTIONS)
        abort();
    rig->executed[rig->executions].activity = activity->uuid;
    rig->executed[rig->executions].seq = activity->header.seq;
    rig->executed[rig->executions++].times = 1;
}

unsigned rig_most_executed(const struct rig *rig)
{
    unsigned most = 0;

    for (unsigned i = 0; i < rig->executions; i++)
        if (rig->executed[i].times > most)
            most = rig->executed[i].times;
    return most;
}

static size_t size_asked(const struct rig *rig, const struct dce_activity *activity)
{
    return rig->call[activity->uuid.bytes[1]].size;
}

static void end_run(struct rig *rig, unsigned which)
{
    struct dce_activity *activity = rig->runs[which];
    uint16_t opnum = activity->header.opnum;
    bool in = opnum == RIG_PUT || opnum == RIG_ECHO, out = opnum == RIG_GET || opnum == RIG_ECHO;
    size_t size = size_asked(rig, activity);

    rig->runs[which] = rig->runs[--rig->running];
    rig->run_ends[which] = rig->run_ends[rig->running];
    if (activity->recvq.length != (in ? size : 0) ||
        !matches(activity->recvq.buffer, activity->header.seq, activity->recvq.length))
        rig->wrong_bytes = true;
    note_execution(rig, activity);
    fill(activity->response, activity->header.seq, out ? size : 0);
    dce_server_result(&rig->server, rig->now, activity,
                      opnum == RIG_FAULT ? DCE_INVALID_BOUND : DCE_OK, out ? size : 0);
}

static void drain_server(struct rig *rig)
{
    struct sender sender = {rig, SERVER};
    struct dce_activity *activity;
    struct dce_packet packet;

    for (;;)
        switch (dce_server_next(&rig->server, rig->now, &packet, &activity)) {
        case DCE_SEND:
            xmitq_send(&packet, send_packet, &sender);
            break;
        case DCE_RUN:
            rig->runs[rig->running] = activity;
            rig->run_ends[rig->running++] = rig->now + rig->settings.work_ns;
            break;
        default:
            return;
        }
}

/* ---- time ---- */

void rig_call(struct rig *rig, unsigned i, uint16_t opnum, size_t size, unsigned calls)
{
    rig->call[i] = (struct rig_call){.opnum = opnum, .size = size, .calls = calls};
    begin_call(rig, i);
    drain_client(rig, i);
}

static unsigned first_on_wire(const struct rig *rig)
{
    unsigned first = 0;

    for (unsigned i = 1; i < rig->on_wire; i++)
        if (rig->wire[i].at < rig->wire[first].at ||
            (rig->wire[i].at == rig->wire[first].at && rig->wire[i].order < rig->wire[first].order))
            first = i;
    return first;
}

static void deliver(struct rig *rig, unsigned which)
{
    struct rig_packet packet = rig->wire[which];
    struct dce_pdu pdu;

    rig->wire[which] = rig->wire[--rig->on_wire];
    if (!dce_pdu_decode(packet.bytes, packet.length, &pdu)) {
        free(packet.bytes);
        return;
    }
    if (packet.to == SERVER) {
        server_machine_packet(&rig->server, rig->now, &packet.from, &pdu);
        drain_server(rig);
    } else {
        client_machine_packet(&rig->client[packet.to], rig->now, &packet.from, &pdu);
        drain_client(rig, packet.to);
    }
    free(packet.bytes);
}

static bool is_quiet(const struct rig *rig)
{
    bool quiet = rig->on_wire == 0 && rig->running == 0 && dce_server_kept(&rig->server) == 0;

    for (unsigned i = 0; i < rig->settings.clients; i++)
        quiet = quiet && rig->call[i].calls == 0 && rig->client[i].state == DCE_CLIENT_IDLE;
    return quiet;
}

/* By the rows of the README's table of states. */
static uint64_t timer_of(const struct dce_server_settings *settings,
                         const struct dce_activity *activity)
{
    uint64_t half = dce_later(activity->used_ns, settings->half_ns);
    uint64_t asked = dce_earlier(activity->way_at,
                                 dce_later(activity->way_ns, settings->give_up_ns));
    uint64_t kept = dce_later(activity->kept_ns, settings->give_up_ns);
    const uint64_t timers[] = {
        [DCE_SERVER_FREE] = DCE_NEVER,
        [DCE_SERVER_WAY] = dce_earlier(half, asked),
        [DCE_SERVER_RECV] = half,
        [DCE_SERVER_RUN] = activity->check_ns,
        [DCE_SERVER_FINAL] = dce_earlier(dce_xmitq_deadline(&activity->xmitq), kept),
        [DCE_SERVER_IDLE] = dce_later(activity->used_ns, settings->idle_ns),
    };

    return timers[activity->state];
}

uint64_t rig_deadline(const struct dce_server *server)
{
    uint64_t first = DCE_NEVER;

    for (unsigned i = 0; i < server->used; i++)
        first = dce_earlier(first, timer_of(&server->settings, &server->table[i]));
    return first;
}

/* Everything that is due at `at`; what arrives comes first. */
static void step(struct rig *rig, uint64_t at)
{
    rig->now = at;
    if (rig->on_wire != 0 && rig->wire[first_on_wire(rig)].at <= at) {
        deliver(rig, first_on_wire(rig));
        return;
    }
    for (unsigned i = 0; i < rig->running; i++)
        if (rig->run_ends[i] <= at) {
            end_run(rig, i);
            drain_server(rig);
            return;
        }
    if (dce_server_deadline(&rig->server) <= at) {
        dce_server_timeout(&rig->server, at);
        drain_server(rig);
    }
    for (unsigned i = 0; i < rig->settings.clients; i++)
        if (dce_client_deadline(&rig->client[i]) <= at) {
            dce_client_timeout(&rig->client[i], at);
            drain_client(rig, i);
        }
}

bool rig_run(struct rig *rig, uint64_t most_ns)
{
    uint64_t end = rig->now + most_ns, steps = 0;

    while (!is_quiet(rig)) {
        uint64_t at = dce_server_deadline(&rig->server);

        if (at != rig_deadline(&rig->server))
            return false;
        for (unsigned i = 0; i < rig->settings.clients; i++)
            at = dce_earlier(at, dce_client_deadline(&rig->client[i]));
        for (unsigned i = 0; i < rig->running; i++)
            at = dce_earlier(at, rig->run_ends[i]);
        if (rig->on_wire != 0)
            at = dce_earlier(at, rig->wire[first_on_wire(rig)].at);
        if (at < rig->now)
            at = rig->now;
        /* Timers that do not advance would go on for ever. */
        if (at > end || steps++ > 1000000)
            return false;
        step(rig, at);
    }
    return true;
}
