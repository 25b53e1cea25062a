/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that no peer would send: at the parsers, and as packets at both machines. What was decoded
 * is encoded to the same again, queues stay within their bounds, and time goes on.
 *
 *   fuzz TARGET [RUNS [SEED]]      without a fuzzer's help: inputs from a generator
 *
 * With -DDCE_LIBFUZZER=fuzz_TARGET the same runs under libFuzzer.
 */
#include "../client_machine.h"
#include "../conv.h"
#include "../epm.h"
#include "../server_machine.h"
#include "../twelve_ndr.h"
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>

enum { STREAM = 20000, ACTIVITIES = 3, EVENTS = 200, ACTIONS = 2000, INPUT = 4096 };

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* ---- the input, as numbers: zeros when it is over ---- */

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t take8(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

static uint16_t take16(struct input *input)
{
    uint16_t high = take8(input);

    return (uint16_t)(high << 8 | take8(input));
}

static uint32_t take32(struct input *input)
{
    uint32_t high = take16(input);

    return high << 16 | take16(input);
}

static const uint8_t *take_bytes(struct input *input, size_t most, uint16_t *length)
{
    const uint8_t *at = input->at;
    size_t got = most < input->left ? most : input->left;

    input->at += got;
    input->left -= got;
    *length = (uint16_t)got;
    return at;
}

/* ---- parsers ---- */

static void fuzz_pdu(const uint8_t *data, size_t size)
{
    uint8_t header[DCE_HEADER], again[DCE_HEADER];
    struct dce_pdu pdu, second;

    if (!dce_pdu_decode(data, size, &pdu))
        return;
    MUST(pdu.body + pdu.length <= data + size);
    dce_pdu_encode(&pdu, header);
    /* But for the high bits of the version and the reserved byte of the representation. */
    MUST(memcmp(header + 1, data + 1, 5) == 0 && memcmp(header + 7, data + 7, DCE_HEADER - 7) == 0);
    pdu.big_endian = !pdu.big_endian;
    dce_pdu_encode(&pdu, header);
    pdu.length = 0;
    dce_pdu_encode(&pdu, header);
    MUST(dce_pdu_decode(header, sizeof(header), &second));
    dce_pdu_encode(&second, again);
    MUST(memcmp(header, again, sizeof(header)) == 0);
}

/* Bodies of all control PDUs. */
static void fuzz_fack(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    uint8_t kind = take8(&input), body[DCE_CONTROL_BODY], big = kind & 1;
    struct dce_pdu pdu = {.ptype = kind / 2 % DCE_PTYPES, .big_endian = big};
    struct dce_conv_question question;
    struct dce_conv_answer answer;
    struct dce_cancel cancel;
    struct dce_fack fack, second;
    uint32_t status;
    bool has_body;

    pdu.body = take_bytes(&input, 200, &pdu.length);
    if (dce_fack_decode(&pdu, &fack, &has_body) && fack.has_serial) {
        struct dce_pdu back = {.big_endian = big, .body = body};

        MUST(fack.selack_words <= DCE_SELACK_WORDS);
        back.length = dce_fack_encode(&fack, body, big);
        MUST(back.length <= DCE_CONTROL_BODY && dce_fack_decode(&back, &second, &has_body));
        MUST(second.serial == fack.serial && second.window_kib == fack.window_kib &&
             second.selack_words == fack.selack_words);
        MUST(memcmp(second.selack, fack.selack, sizeof(fack.selack)) == 0);
    }
    if (dce_cancel_decode(&pdu, &cancel))
        MUST(dce_cancel_encode(&cancel, pdu.ptype == DCE_CANCEL_ACK, body, big) <= sizeof(body));
    dce_status_decode(&pdu, &status);
    if (dce_conv_get_question(&pdu, &question))
        MUST(dce_conv_put_question(&question, body, big) == DCE_CONV_IN &&
             memcmp(body, pdu.body, DCE_CONV_IN) == 0);
    pdu.opnum = kind >> 7;
    if (dce_conv_get_answer(&pdu, &answer)) {
        uint16_t length = dce_conv_put_answer(&answer, pdu.opnum, body, big);

        MUST(memcmp(body, pdu.body, length) == 0);
    }
}

/* A row of reads, which the input chooses, of bytes that it chooses. */
static void fuzz_ndr(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    uint8_t count = take8(&input), kinds[32], written[INPUT];
    struct dce_referents seen = {.count = 0};
    struct dce_ndr in, out;
    struct dce_uuid uuid;
    const uint8_t *bytes;
    const char *text;
    uint16_t length;
    unsigned index;
    size_t got;

    for (unsigned i = 0; i < sizeof(kinds); i++)
        kinds[i] = take8(&input);
    bytes = take_bytes(&input, INPUT / 2, &length);
    in = dce_ndr_reader(bytes, length, count & 1);
    out = dce_ndr_writer(written, sizeof(written), count & 1);
    for (unsigned i = 0; i < sizeof(kinds) && i < count / 2; i++) {
        MUST(in.at <= in.length && out.at <= out.length);
        switch (kinds[i] % 10) {
        case 0:
            dce_ndr_put8(&out, dce_ndr_get8(&in));
            break;
        case 1:
            dce_ndr_put16(&out, dce_ndr_get16(&in));
            break;
        case 2:
            dce_ndr_put32(&out, dce_ndr_get32(&in));
            break;
        case 3:
            dce_ndr_get_uuid(&in, &uuid);
            dce_ndr_put_uuid(&out, &uuid);
            break;
        case 4:
            bytes = dce_ndr_get_bytes(&in, kinds[i] / 8u);
            if (bytes != NULL)
                dce_ndr_put_bytes(&out, bytes, kinds[i] / 8u);
            break;
        case 5:
            bytes = dce_ndr_get_array(&in, kinds[i], &got);
            MUST(got <= kinds[i] && (bytes != NULL || in.failed));
            if (bytes != NULL)
                dce_ndr_put_array(&out, bytes, got);
            break;
        case 6:
            dce_ndr_put64(&out, dce_ndr_get64(&in));
            break;
        case 7:
            text = dce_ndr_get_string(&in, kinds[i]);
            MUST((text == NULL) == in.failed && (in.failed || strlen(text) <= kinds[i]));
            if (text != NULL)
                dce_ndr_put_string(&out, text);
            break;
        case 8:
            dce_ndr_put_unique(&out, !dce_ndr_get_unique(&in));
            break;
        default:
            dce_ndr_put_full(
                &out, dce_ndr_get_full(&in, &seen, &index) == DCE_FULL_NULL ? 0 : seen.ids[index]);
            MUST(seen.count <= DCE_REFERENTS && index < DCE_REFERENTS);
        }
        if (in.failed)
            return;
        MUST(!out.failed && out.at == in.at);
    }
}

/* What was read is written to bytes that are read as the same value again. */
static void fuzz_twelve(const uint8_t *data, size_t size)
{
    static struct dce_value value, again;
    static uint8_t bytes[DCE_TWELVE_MOST];
    struct input input = {data, size};
    uint8_t kind = take8(&input);
    enum function function = (enum function)(1 + kind % FUNCTIONS);
    enum dce_way way = kind & 0x80 ? DCE_ARGUMENTS : DCE_RESULTS;
    bool big = kind & 0x40;
    size_t length;

    memset(&value, 0, sizeof(value));
    value.count = again.count = FUNCTION_ELEMENTS;
    if (!dce_twelve_get(function, way, &value, input.at, input.left, big))
        return;
    MUST(value.count <= FUNCTION_ELEMENTS);
    length = dce_twelve_put(function, way, &value, bytes, big);
    MUST(length <= input.left && length <= DCE_TWELVE_MOST);
    again = value;
    MUST(dce_twelve_get(function, way, &again, bytes, length, big));
    MUST(dce_twelve_put(function, way, &again, bytes, big) == length);
}

static void fuzz_tower(const uint8_t *data, size_t size)
{
    static const struct dce_tower registered[] = {{{{1, 2, 3}}, 1, 2001, 0}, {{{0}}, 0, 1, 0}};
    struct input input = {data, size};
    uint8_t kind = take8(&input), octets[DCE_TOWER], results[DCE_EPM_BODY], again[DCE_EPM_BODY];
    struct dce_tower tower, second;
    uint32_t status;
    uint16_t port;
    size_t length;

    if (dce_tower_decode(input.at, input.left, &tower)) {
        dce_tower_encode(&tower, octets);
        MUST(dce_tower_decode(octets, sizeof(octets), &second));
        MUST(dce_uuid_equal(&tower.interface, &second.interface) && tower.port == second.port &&
             tower.version == second.version && tower.address == second.address);
        length = dce_epm_put_map(&tower, results, kind & 1);
        length = dce_epm_serve(&tower, 1, results, length, kind & 1, again, kind & 2);
        MUST(dce_epm_get_map(again, length, kind & 2, &port, &status));
        MUST(status == DCE_OK && port == tower.port);
    }
    dce_epm_get_map(input.at, input.left, kind & 1, &port, &status);
    length = dce_epm_serve(registered, 2, input.at, input.left, kind & 1, results, kind & 2);
    MUST(length <= sizeof(results));
    if (length != 0)
        MUST(dce_epm_get_map(results, length, kind & 2, &port, &status));
}

/* ---- machines ---- */

static void check_xmitq(const struct dce_xmitq *queue)
{
    unsigned kept = (uint16_t)(queue->next - queue->base);
    unsigned sent = (uint16_t)(queue->unsent - queue->base);

    MUST(kept <= queue->slots && sent <= kept && queue->outstanding <= kept);
    MUST(queue->asks <= queue->outstanding && queue->copied <= queue->total);
    MUST(queue->window <= queue->slots && queue->fragment <= queue->settings.fragment);
}

static void check_recvq(const struct dce_recvq *queue)
{
    unsigned early = 0;

    for (unsigned i = 0; i < DCE_EARLY_SLOTS; i++) {
        early += queue->early[i].present;
        MUST(!queue->early[i].present ||
             (queue->early[i].offset >= queue->early_at &&
              queue->early[i].offset + queue->early[i].length <= queue->room));
    }
    MUST(early == queue->early_count && queue->length <= queue->early_at &&
         queue->early_at <= queue->room);
}

/* A PDU of which most fields are right: what is wrong in all of them does not come far. */
static struct dce_pdu some_pdu(struct input *input, const struct dce_uuid *activity, uint32_t seq,
                               uint32_t boot_time, uint8_t *wrong)
{
    struct dce_pdu pdu = {.ptype = take8(input) % (DCE_PTYPES + 1),
                          .flags1 = take8(input),
                          .interface = rig_interface,
                          .activity = *activity,
                          .boot_time = boot_time,
                          .version = 1,
                          .seq = seq,
                          .opnum = RIG_PUT,
                          .interface_hint = DCE_NO_HINT,
                          .activity_hint = take8(input)};
    uint16_t most;

    *wrong = take8(input);
    *wrong &= take8(input); /* a quarter of the bits */
    pdu.serial = take8(input);
    pdu.fragment = (uint16_t)(take8(input) - 1);
    if (*wrong & 1)
        pdu.seq += (uint32_t)take8(input) - 128;
    if (*wrong & 2)
        pdu.activity.bytes[take8(input) % 16] ^= take8(input);
    if (*wrong & 4)
        pdu.boot_time = take32(input);
    if (*wrong & 8)
        pdu.interface = dce_conv_interface;
    if (*wrong & 16)
        pdu.opnum = take8(input) % 8;
    pdu.big_endian = *wrong >> 5 & 1;
    if (*wrong & 64) {
        pdu.fragment = take16(input);
        pdu.serial = take16(input);
        pdu.auth = take8(input);
    }
    most = take8(input);
    if (*wrong & 128)
        most = take16(input);
    pdu.body = take_bytes(input, most, &pdu.length);
    return pdu;
}

static void discard(void *context, const struct dce_peer *to, const uint8_t *bytes, size_t length)
{
    struct dce_pdu pdu;

    (void)to;
    MUST(dce_pdu_decode(bytes, length, &pdu));
    ++*(uint64_t *)context;
}

static uint64_t packets_sent;

/* Machines under fuzz have got their first packets, so that more than strays comes in. */
static void fuzz_client(const uint8_t *data, size_t size)
{
    static uint8_t memory[DCE_SLOTS * 2048], results[STREAM + DCE_BODY_MOST], arguments[STREAM];
    static const struct dce_peer server = {1, 2001}, other = {2, 2001};
    static struct dce_client client;
    struct input input = {data, size};
    uint8_t kind = take8(&input);
    const struct dce_client_settings settings = {
        .xmitq = {kind % DCE_POLICIES, 1464, 2 * DCE_SECOND_NS},
        .offer = {32, 1464},
        .activity = {{0xac}},
        .server = server,
        .ping_ns = 2 * DCE_SECOND_NS,
        .ack_delay_ns = DCE_SECOND_NS,
        .give_up_ns = 30 * DCE_SECOND_NS,
        .broadcast_ns = 5 * DCE_SECOND_NS,
        .cancel_ns = DCE_SECOND_NS,
    };
    struct dce_operation operation = {.interface = rig_interface, .version = 1, .opnum = RIG_PUT};
    uint64_t now = 0;

    dce_client_init(&client, &settings, memory, results, sizeof(results));
    for (unsigned event = 0; event < EVENTS && input.left != 0; event++) {
        uint8_t what = take8(&input), wrong;
        unsigned actions = 0;
        struct dce_packet packet;
        enum dce_action action;

        if (what < 16 || !client.called) {
            static const uint8_t semantics[] = {0, DCE_IDEMPOTENT, DCE_MAYBE,
                                                DCE_BROADCAST | DCE_IDEMPOTENT};

            operation.semantics = semantics[what % 4];
            dce_client_call(&client, now, &operation, arguments,
                            what / 4 == 0 ? 0 : take16(&input) % STREAM);
        } else if (what < 32) {
            dce_client_cancel(&client, now);
        } else if (what < 80) {
            uint64_t deadline = dce_client_deadline(&client);

            if (deadline != DCE_NEVER) {
                now = deadline > now ? deadline : now;
                dce_client_timeout(&client, now);
            }
        } else {
            struct dce_pdu pdu = some_pdu(&input, &settings.activity, client.seq, client.boot_time,
                                          &wrong);

            now += what * UINT64_C(1000000);
            client_machine_packet(&client, now, what == 255 ? &other : &server, &pdu);
        }
        while ((action = dce_client_next(&client, now, &packet)) != DCE_WAIT) {
            MUST(actions++ < ACTIONS);
            if (action == DCE_SEND)
                xmitq_send(&packet, discard, &packets_sent);
        }
        check_xmitq(&client.xmitq);
        check_recvq(&client.recvq);
        MUST(client.outbox.count == 0);
        /* Nothing is due that does not come due again later. */
        if (dce_client_deadline(&client) <= now) {
            dce_client_timeout(&client, now);
            MUST(dce_client_deadline(&client) > now);
        }
    }
    /* Left alone, every call ends. */
    for (unsigned i = 0; dce_client_deadline(&client) != DCE_NEVER; i++) {
        struct dce_packet packet;

        MUST(i < ACTIONS);
        now = dce_earlier(dce_client_deadline(&client), DCE_NEVER);
        dce_client_timeout(&client, now);
        while (dce_client_next(&client, now, &packet) != DCE_WAIT)
            continue;
    }
    MUST(!client.called || client.state == DCE_CLIENT_IDLE);
}

static bool has_operation(uint16_t opnum)
{
    return opnum <= RIG_FAULT;
}

static void fuzz_server(const uint8_t *data, size_t size)
{
    static const struct dce_peer peer = {1, 3000};
    static struct dce_interface interface;
    static struct dce_server server;
    static uint8_t *memory;
    struct input input = {data, size};
    struct dce_server_settings settings = {
        .xmitq = {take8(&input) % DCE_POLICIES, 1464, 2 * DCE_SECOND_NS},
        .offer = {32, 1464},
        .boot_time = 0x5eed,
        .conv_activity = {{0xc0}},
        .interfaces = &interface,
        .interface_count = 1,
        .activities = ACTIVITIES,
        .request_bytes = STREAM,
        .response_bytes = STREAM,
        .give_up_ns = 30 * DCE_SECOND_NS,
        .half_ns = 60 * DCE_SECOND_NS,
        .idle_ns = 300 * DCE_SECOND_NS,
    };
    struct dce_activity *running[ACTIVITIES];
    unsigned runs = 0;
    uint64_t now = 0;

    interface = (struct dce_interface){rig_interface, 1, has_operation};
    if (memory == NULL)
        memory = calloc(1, dce_server_memory(&settings));
    MUST(memory != NULL);
    memset(memory, 0, ACTIVITIES * sizeof(struct dce_activity));
    dce_server_init(&server, &settings, memory);
    for (unsigned event = 0; event < EVENTS && input.left != 0; event++) {
        uint8_t what = take8(&input), wrong;
        struct dce_packet packet;
        struct dce_activity *activity;
        enum dce_action action;
        unsigned actions = 0;

        if (what < 40 && runs != 0) {
            activity = running[--runs];
            dce_server_result(&server, now, activity, what % 4 == 0 ? DCE_INVALID_BOUND : DCE_OK,
                              take16(&input) % STREAM);
        } else if (what < 80) {
            uint64_t deadline = dce_server_deadline(&server);

            if (deadline != DCE_NEVER) {
                now = deadline > now ? deadline : now;
                dce_server_timeout(&server, now);
            }
        } else {
            const struct dce_uuid who = {{0xac, what % 5}}, conv = {{0xc0}};
            struct dce_pdu pdu = some_pdu(&input, &who, 7u + what % 3, what & 8 ? 0x5eed : 0,
                                          &wrong);

            if (wrong & 8) { /* an answer to a question */
                uint8_t index = take8(&input) % (ACTIVITIES + 1);

                pdu.activity = conv;
                pdu.activity.bytes[15] = index;
                if (index < ACTIVITIES)
                    pdu.seq = server.table[index].way_seq;
                pdu.ptype = DCE_RESPONSE;
            }
            now += what * UINT64_C(1000000);
            server_machine_packet(&server, now, &peer, &pdu);
        }
        MUST(dce_server_deadline(&server) == rig_deadline(&server));
        while ((action = dce_server_next(&server, ++now, &packet, &activity)) != DCE_WAIT) {
            MUST(actions++ < ACTIONS);
            if (action == DCE_SEND) {
                xmitq_send(&packet, discard, &packets_sent);
            } else {
                MUST(activity->recvq.complete && activity->state == DCE_SERVER_RUN);
                MUST(runs < ACTIVITIES);
                running[runs++] = activity;
            }
            MUST(dce_server_deadline(&server) == rig_deadline(&server));
        }
        for (unsigned i = 0; i < server.used; i++) {
            check_xmitq(&server.table[i].xmitq);
            check_recvq(&server.table[i].recvq);
        }
        MUST(server.outbox.count == 0 && server.queue_count == 0);
        MUST(dce_server_deadline(&server) == rig_deadline(&server));
        if (dce_server_deadline(&server) <= now) {
            dce_server_timeout(&server, now);
            MUST(dce_server_deadline(&server) == rig_deadline(&server));
            MUST(dce_server_deadline(&server) > now);
        }
    }
    /* Left alone, it forgets all but what runs. */
    for (unsigned i = 0; i < ACTIONS && dce_server_deadline(&server) != DCE_NEVER; i++) {
        struct dce_activity *activity;
        struct dce_packet packet;

        now = dce_server_deadline(&server);
        dce_server_timeout(&server, now);
        while (dce_server_next(&server, now, &packet, &activity) != DCE_WAIT)
            continue;
    }
    for (unsigned i = 0; i < server.used; i++)
        MUST(server.table[i].state == DCE_SERVER_FREE || server.table[i].state == DCE_SERVER_RUN);
}

#ifdef DCE_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DCE_LIBFUZZER(data, size);
    return 0;
}
#else

static const struct {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
} targets[] = {
    {"pdu", fuzz_pdu},       {"fack", fuzz_fack},     {"ndr", fuzz_ndr},
    {"tower", fuzz_tower},   {"client", fuzz_client}, {"server", fuzz_server},
    {"twelve", fuzz_twelve},
};

/* Up to three wrong bits. */
static void damage(struct rig *random, uint8_t *bytes, size_t length)
{
    for (uint64_t wrong = rig_random(random) % 4; wrong != 0; wrong--)
        bytes[rig_random(random) % length] ^= (uint8_t)(1u << rig_random(random) % 8);
}

/* A right representation behind the byte that says of what. */
static size_t make_twelve(struct rig *random, uint8_t *bytes)
{
    enum function function = (enum function)(1 + bytes[0] % FUNCTIONS);
    enum dce_way way = bytes[0] & 0x80 ? DCE_ARGUMENTS : DCE_RESULTS;
    uint8_t whole[DCE_TWELVE_MOST];
    struct dce_value value;
    size_t length;

    dce_twelve_value(function, way, &value);
    value.count = (uint32_t)(rig_random(random) % 150); /* of strings as many as have room */
    length = dce_twelve_put(function, way, &value, whole, bytes[0] & 0x40);
    memcpy(bytes + 1, whole, length);
    return 1 + length;
}

/* Random bytes with what is often right at its place: a version, a tower, small numbers. */
static size_t make_input(struct rig *random, unsigned target, uint8_t *bytes)
{
    static const struct dce_tower tower = {{{1, 2, 3}}, 1, 2001, 0};
    size_t most = target < 4 ? 300 : INPUT, length = rig_random(random) % most;
    bool small = rig_random(random) % 2 != 0;

    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(small && rig_random(random) % 4 != 0 ? rig_random(random) % 8
                                                                  : rig_random(random));
    if (target == 0 && length >= DCE_HEADER) {
        static const uint8_t begin[] = {4, 0, 0, 0, 0x10, 0};

        memcpy(bytes, begin, sizeof(begin));
        bytes[1] = (uint8_t)(rig_random(random) % 12);
        bytes[75] &= 1;
    }
    if (target == 3 && length > DCE_TOWER + 1) {
        if (small)
            dce_tower_encode(&tower, bytes + 1);
        else
            length = 1 + dce_epm_put_map(&tower, bytes + 1, bytes[0] & 1);
        damage(random, bytes, length);
    }
    if (target == 6 && length > 0 && !small) {
        length = make_twelve(random, bytes);
        damage(random, bytes, length);
    }
    return length;
}

int main(int argc, char **argv)
{
    unsigned long long runs = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    struct rig random = {.random = argc > 3 ? strtoull(argv[3], NULL, 10) : 1};

    for (unsigned target = 0; argc > 1 && target < sizeof(targets) / sizeof(*targets); target++) {
        if (strcmp(argv[1], targets[target].name) != 0)
            continue;
        for (unsigned long long run = 0; run < runs; run++) {
            uint8_t bytes[INPUT];
            size_t length = make_input(&random, target, bytes);
            /* Of exactly this size, so that one byte too far is seen. */
            uint8_t *exact = malloc(length + 1);

            MUST(exact != NULL);
            memcpy(exact + 1, bytes, length);
            targets[target].run(exact + 1, length);
            free(exact);
        }
        printf("@T fuzz_%s ok %llu runs, %llu packets out\n", argv[1], runs,
               (unsigned long long)packets_sent);
        return 0;
    }
    fprintf(stderr, "usage: fuzz pdu|fack|ndr|tower|client|server|twelve [RUNS [SEED]]\n");
    return 2;
}
#endif
