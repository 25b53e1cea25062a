/* SPDX-License-Identifier: Apache-2.0 */
/* Each row of the server's table of states (README.md), with a clock of whole seconds. */
#include "expect.h"
#include "rig.h"

#include <stdlib.h>

#define S DCE_SECOND_NS

static struct dce_server server;
static struct dce_packet packet;
static struct dce_activity *activity;
static uint8_t *memory, bytes[DCE_BODY_MOST];
static const struct dce_peer peer = {0x0a000010, 3000};
static const struct dce_uuid uuid = {{0xac, 1}};
enum { BOOT = 0x5eed, SEQ = 40, PLACES = 2, MOST = 40000 };

static bool has_operation(uint16_t opnum)
{
    return opnum == RIG_PUT;
}

static void open_server(void)
{
    static struct dce_interface interface;
    struct dce_server_settings settings = {
        .xmitq = {DCE_WINDOW, 4096, 2 * S},
        .offer = {32, 4096},
        .boot_time = BOOT,
        .conv_activity = {{0xc0}},
        .interfaces = &interface,
        .interface_count = 1,
        .activities = PLACES,
        .request_bytes = MOST,
        .response_bytes = MOST,
        .give_up_ns = 30 * S,
        .half_ns = 60 * S,
        .idle_ns = 300 * S,
    };

    interface = (struct dce_interface){rig_interface, 1 << 16 | 1, has_operation};
    free(memory);
    memory = calloc(1, dce_server_memory(&settings));
    if (memory == NULL)
        abort();
    dce_server_init(&server, &settings, memory);
}

static struct dce_pdu from_client(enum dce_ptype ptype, uint32_t seq, uint8_t flags)
{
    return (struct dce_pdu){.ptype = (uint8_t)ptype,
                            .flags1 = flags,
                            .interface = rig_interface,
                            .activity = uuid,
                            .version = 1,
                            .seq = seq,
                            .opnum = RIG_PUT,
                            .interface_hint = DCE_NO_HINT,
                            .activity_hint = DCE_NO_HINT,
                            .length = ptype == DCE_REQUEST ? 8 : 0,
                            .body = bytes};
}

static void comes(uint64_t now, const struct dce_pdu *pdu)
{
    server_machine_packet(&server, now, &peer, pdu);
}

static void comes_plain(uint64_t now, enum dce_ptype ptype, uint32_t seq, uint8_t flags)
{
    struct dce_pdu pdu = from_client(ptype, seq, flags);

    comes(now, &pdu);
}

static void comes_fragment(uint64_t now, uint16_t fragment, uint8_t flags, uint8_t semantics)
{
    struct dce_pdu pdu = from_client(DCE_REQUEST, SEQ, DCE_FRAGMENT | flags | semantics);

    pdu.fragment = pdu.serial = fragment;
    comes(now, &pdu);
}

static bool sends(uint64_t now, enum dce_ptype ptype)
{
    return dce_server_next(&server, now, &packet, &activity) == DCE_SEND &&
           packet.pdu.ptype == ptype && packet.pdu.boot_time == (ptype == DCE_REQUEST ? 0 : BOOT);
}

static bool runs(uint64_t now)
{
    return dce_server_next(&server, now, &packet, &activity) == DCE_RUN;
}

static bool waits(uint64_t now)
{
    return dce_server_next(&server, now, &packet, &activity) == DCE_WAIT;
}

static bool rejects(uint64_t now, uint32_t status)
{
    uint32_t said;

    return sends(now, DCE_REJECT) && dce_status_decode(&packet.pdu, &said) && said == status &&
           waits(now);
}

static void answer_way(uint64_t now, uint32_t seq, uint32_t status)
{
    const struct dce_conv_answer answer = {.seq = seq, .status = status};
    struct dce_pdu pdu = packet.pdu; /* the question */
    uint8_t body[DCE_CONV_OUT];

    pdu.ptype = DCE_RESPONSE;
    pdu.length = dce_conv_put_answer(&answer, pdu.opnum, body, false);
    pdu.body = body;
    comes(now, &pdu);
}

static void times_out(uint64_t at)
{
    EXPECT_OF(dce_server_deadline(&server) == at, "%.3f s, not %.3f",
              (double)dce_server_deadline(&server) / (double)S, (double)at / (double)S);
    dce_server_timeout(&server, at);
}

static enum dce_server_state state(void)
{
    return server.table[0].state;
}

/* A call that is at its procedure. */
static void open_running(uint8_t semantics)
{
    open_server();
    comes_plain(0, DCE_REQUEST, SEQ, semantics);
    if (semantics == 0) {
        EXPECT(sends(0, DCE_REQUEST));
        answer_way(0, SEQ, DCE_OK);
    }
    EXPECT(runs(0) && waits(0) && state() == DCE_SERVER_RUN);
}

static void open_final(size_t length)
{
    open_running(0);
    dce_server_result(&server, S, activity, DCE_OK, length);
    EXPECT(sends(S, DCE_RESPONSE) && packet.pdu.seq == SEQ && waits(S));
    EXPECT(state() == DCE_SERVER_FINAL);
}

/* ---- unknown, way ---- */

static void unknown_request_idempotent_enters(void)
{
    static const uint8_t kinds[] = {DCE_IDEMPOTENT, DCE_MAYBE, DCE_BROADCAST | DCE_IDEMPOTENT};

    for (unsigned i = 0; i < sizeof(kinds); i++) {
        open_server();
        comes_fragment(0, 0, 0, kinds[i] & (uint8_t)~DCE_BROADCAST);
        EXPECT(sends(0, DCE_FACK) && waits(0) && state() == DCE_SERVER_RECV);
        open_server();
        comes_plain(0, DCE_REQUEST, SEQ, kinds[i]);
        EXPECT(runs(0) && activity->recvq.length == 8);
    }
}

static void unknown_request_else_asks_who(void)
{
    struct dce_conv_question question;

    open_server();
    comes_fragment(0, 0, 0, 0);
    EXPECT(sends(0, DCE_FACK) && sends(0, DCE_REQUEST) && waits(0) && state() == DCE_SERVER_WAY);
    EXPECT(dce_uuid_equal(&packet.pdu.interface, &dce_conv_interface));
    EXPECT(packet.pdu.flags1 == DCE_IDEMPOTENT && packet.pdu.activity.bytes[0] == 0xc0);
    EXPECT(packet.pdu.length == DCE_CONV_IN && packet.pdu.version == 3 && packet.pdu.opnum == 0);
    EXPECT(dce_conv_get_question(&packet.pdu, &question) && question.boot_time == BOOT);
    EXPECT(dce_uuid_equal(&question.activity, &uuid));
    /* Fragments queue, and nothing runs. */
    comes_fragment(0, 1, DCE_NO_FACK | DCE_LAST, 0);
    EXPECT(waits(0) && state() == DCE_SERVER_WAY && server.table[0].recvq.complete);
    answer_way(0, SEQ, DCE_OK);
    EXPECT(runs(0) && activity->recvq.length == 16);
}

static void way_answer_continues_or_drops(void)
{
    static const struct {
        uint32_t seq, status;
        enum dce_server_state state;
    } answers[] = {{SEQ, DCE_OK, DCE_SERVER_RECV},
                   {SEQ + 1, DCE_OK, DCE_SERVER_FREE},
                   {SEQ - 1, DCE_OK, DCE_SERVER_FREE},
                   {SEQ, DCE_YOU_CRASHED, DCE_SERVER_FREE},
                   {SEQ, DCE_UNKNOWN_ACTIVITY, DCE_SERVER_FREE}};

    for (unsigned i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        open_server();
        comes_fragment(0, 0, DCE_NO_FACK, 0);
        EXPECT(sends(0, DCE_REQUEST));
        answer_way(0, answers[i].seq, answers[i].status);
        EXPECT_OF(state() == answers[i].state && waits(0), "%u", i);
    }
    /* The answer to an older question, and one to nobody's. */
    open_server();
    comes_fragment(0, 0, DCE_NO_FACK, 0);
    EXPECT(sends(0, DCE_REQUEST));
    packet.pdu.seq--;
    answer_way(0, SEQ, DCE_OK);
    packet.pdu.seq++;
    packet.pdu.activity.bytes[14] = 9;
    answer_way(0, SEQ, DCE_OK);
    EXPECT(state() == DCE_SERVER_WAY && server.counts.of[DCE_COUNT_strays] == 2);
}

static void way_without_an_answer_is_rejected(void)
{
    static const unsigned again[] = {2, 6, 14, 22};

    open_server();
    comes_plain(0, DCE_REQUEST, SEQ, 0);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    for (unsigned i = 0; i < 4; i++) {
        times_out(again[i] * S);
        EXPECT(sends(again[i] * S, DCE_REQUEST) && waits(again[i] * S));
    }
    times_out(30 * S);
    EXPECT(rejects(30 * S, DCE_WHO_ARE_YOU) && state() == DCE_SERVER_FREE);
}

/* ---- recv ---- */

static void recv_fragment_is_facked_if_it_asks(void)
{
    open_server();
    comes_fragment(0, 1, DCE_NO_FACK, DCE_IDEMPOTENT);
    EXPECT(waits(0));
    comes_fragment(0, 1, 0, DCE_IDEMPOTENT); /* a duplicate that asks */
    EXPECT(sends(0, DCE_FACK) && packet.pdu.fragment == 0xffff && packet.pdu.length == 20);
    comes_fragment(0, 97, 0, DCE_IDEMPOTENT); /* too far ahead */
    EXPECT(waits(0) && server.counts.of[DCE_COUNT_dropped] == 1);
    comes_fragment(0, 2, DCE_NO_FACK | DCE_LAST, DCE_IDEMPOTENT);
    EXPECT(waits(0));
    comes_fragment(0, 0, 0, DCE_IDEMPOTENT); /* it asks, but completes the request */
    EXPECT(runs(0) && waits(0) && activity->recvq.length == 24);
}

static void recv_ping_is_answered_by_a_nocall_with_a_body(void)
{
    struct dce_fack fack;
    bool has_body;

    open_server();
    comes_fragment(0, 0, DCE_NO_FACK, DCE_IDEMPOTENT);
    comes_fragment(0, 2, DCE_NO_FACK, DCE_IDEMPOTENT);
    comes_plain(0, DCE_PING, SEQ, 0);
    EXPECT(sends(0, DCE_NOCALL) && packet.pdu.fragment == 0 && waits(0));
    EXPECT(dce_fack_decode(&packet.pdu, &fack, &has_body) && has_body);
    EXPECT(fack.serial == 2 && fack.selack[0] == 2);
}

static void recv_half_a_request_is_forgotten(void)
{
    open_server();
    comes_fragment(0, 0, DCE_NO_FACK, DCE_IDEMPOTENT);
    comes_fragment(10 * S, 1, DCE_NO_FACK, DCE_IDEMPOTENT);
    times_out(70 * S);
    EXPECT(state() == DCE_SERVER_FREE && waits(70 * S));
    EXPECT(dce_server_deadline(&server) == DCE_NEVER);
}

static void recv_greater_seq_takes_its_place(void)
{
    open_server();
    comes_fragment(0, 0, DCE_NO_FACK, DCE_IDEMPOTENT);
    comes_plain(0, DCE_REQUEST, SEQ + 1, 0);
    EXPECT(runs(0) && activity->seq == SEQ + 1 && waits(0));
}

/* ---- run ---- */

static void run_ping_is_answered_by_working(void)
{
    open_running(0);
    comes_plain(0, DCE_PING, SEQ, 0);
    EXPECT(sends(0, DCE_WORKING) && packet.pdu.length == 0 && waits(0));
    comes_plain(0, DCE_REQUEST, SEQ, 0);
    EXPECT(waits(0) && server.counts.of[DCE_COUNT_duplicates] == 1);
}

static void run_result_idempotent_is_forgotten(void)
{
    open_running(DCE_IDEMPOTENT);
    dce_server_result(&server, S, activity, DCE_OK, 8);
    EXPECT(sends(S, DCE_RESPONSE) && packet.pdu.length == 8 && waits(S));
    EXPECT(state() == DCE_SERVER_IDLE && dce_server_kept(&server) == 0);
    open_running(DCE_MAYBE);
    dce_server_result(&server, S, activity, DCE_OK, 8);
    EXPECT(waits(S) && state() == DCE_SERVER_IDLE);
    /* What is longer than a fragment is kept until it is acknowledged. */
    open_running(DCE_IDEMPOTENT);
    dce_server_result(&server, S, activity, DCE_OK, 4017);
    EXPECT(sends(S, DCE_RESPONSE) && waits(S) && state() == DCE_SERVER_FINAL);
}

static void run_result_else_is_kept(void)
{
    open_final(8);
    EXPECT(dce_server_kept(&server) == 1 && dce_server_deadline(&server) == 3 * S);
    open_running(0);
    dce_server_result(&server, S, activity, DCE_INVALID_BOUND, 0);
    EXPECT(sends(S, DCE_FAULT) && packet.pdu.length == 4 && waits(S));
    EXPECT(packet.pdu.body[3] == 0x1c && state() == DCE_SERVER_FINAL);
}

static void run_greater_seq_orphans_the_call(void)
{
    open_running(0);
    comes_plain(0, DCE_REQUEST, SEQ + 1, 0);
    EXPECT(waits(0) && state() == DCE_SERVER_RUN && server.counts.of[DCE_COUNT_dropped] == 1);
    dce_server_result(&server, S, activity, DCE_OK, 8);
    EXPECT(waits(S) && state() == DCE_SERVER_IDLE);
    comes_plain(2 * S, DCE_REQUEST, SEQ + 1, 0); /* it comes again */
    EXPECT(runs(2 * S) && activity->seq == SEQ + 1);
}

static void run_tells_a_deadline_before_any_that_its_result_sets(void)
{
    open_running(0);
    EXPECT(dce_server_deadline(&server) == 2 * S);
    dce_server_result(&server, S, activity, DCE_OK, 8);
    EXPECT(sends(S, DCE_RESPONSE) && dce_server_deadline(&server) >= 2 * S);
    open_running(0);
    times_out(2 * S);
    times_out(4 * S);
    EXPECT(waits(4 * S) && state() == DCE_SERVER_RUN);
}

/* ---- final ---- */

static void final_request_or_ping_sends_what_is_kept(void)
{
    open_final(8);
    comes_plain(S, DCE_REQUEST, SEQ, 0);
    EXPECT(sends(S, DCE_RESPONSE) && packet.pdu.serial == 1 && waits(S));
    comes_plain(S, DCE_PING, SEQ, 0);
    EXPECT(sends(S, DCE_RESPONSE) && packet.pdu.serial == 2 && waits(S));
    EXPECT(server.counts.of[DCE_COUNT_fragments_resent] == 2);
}

static void final_fack_sends_the_next_burst(void)
{
    const struct dce_fack fack = {.window_kib = 32, .max_fragment = 4096, .has_serial = true};
    struct dce_pdu pdu = from_client(DCE_FACK, SEQ, 0);

    open_final(3 * 4016);
    pdu.length = dce_fack_encode(&fack, bytes, false);
    comes(S, &pdu);
    EXPECT(sends(S, DCE_RESPONSE) && packet.pdu.fragment == 1);
    EXPECT(sends(S, DCE_RESPONSE) && packet.pdu.fragment == 2 && waits(S));
}

static void final_resend_timer_sends_the_head(void)
{
    static const unsigned again[] = {3, 7, 15, 23};

    open_final(8);
    for (unsigned i = 0; i < 4; i++) {
        times_out(again[i] * S);
        EXPECT(sends(again[i] * S, DCE_RESPONSE) && packet.pdu.fragment == 0 &&
               waits(again[i] * S));
    }
    times_out(31 * S);
    EXPECT(waits(31 * S) && state() == DCE_SERVER_IDLE && dce_server_kept(&server) == 0);
}

static void final_ack_forgets(void)
{
    open_final(8);
    comes_plain(S, DCE_ACK, SEQ - 1, 0);
    EXPECT(state() == DCE_SERVER_FINAL);
    comes_plain(S, DCE_ACK, SEQ, 0);
    EXPECT(state() == DCE_SERVER_IDLE && waits(S));
}

static void final_or_idle_greater_seq_is_the_next_call(void)
{
    open_final(8);
    comes_plain(2 * S, DCE_REQUEST, SEQ + 1, 0);
    EXPECT(runs(2 * S) && activity->seq == SEQ + 1); /* no question: the activity is known */
    dce_server_result(&server, 2 * S, activity, DCE_OK, 0);
    EXPECT(sends(2 * S, DCE_RESPONSE) && waits(2 * S));
    comes_plain(2 * S, DCE_ACK, SEQ + 1, 0);
    comes_plain(3 * S, DCE_REQUEST, SEQ + 5, 0);
    EXPECT(runs(3 * S) && activity->seq == SEQ + 5);
}

/* ---- idle ---- */

static void idle_same_seq_is_rejected_or_runs_again(void)
{
    open_final(8);
    comes_plain(S, DCE_ACK, SEQ, 0);
    comes_plain(S, DCE_REQUEST, SEQ, 0);
    EXPECT(rejects(S, DCE_PROTOCOL_ERROR));
    comes_plain(S, DCE_REQUEST, SEQ, DCE_IDEMPOTENT);
    EXPECT(runs(S));
}

static void idle_is_forgotten_after_300_s(void)
{
    open_final(8);
    comes_plain(S, DCE_ACK, SEQ, 0);
    times_out(301 * S);
    EXPECT(state() == DCE_SERVER_FREE && dce_server_deadline(&server) == DCE_NEVER);
}

static void idle_ping_is_answered_by_a_nocall_without_body(void)
{
    open_final(8);
    comes_plain(S, DCE_ACK, SEQ, 0);
    comes_plain(S, DCE_PING, SEQ, 0);
    EXPECT(sends(S, DCE_NOCALL) && packet.pdu.length == 0 && waits(S));
    comes_plain(S, DCE_PING, SEQ + 1, 0); /* a call that never came */
    EXPECT(sends(S, DCE_NOCALL) && packet.pdu.length == 0 && waits(S));
    open_server();
    comes_plain(S, DCE_PING, SEQ, 0);
    EXPECT(sends(S, DCE_NOCALL) && packet.pdu.length == 0 && waits(S));
}

/* ---- any ---- */

static void any_smaller_seq_is_dropped(void)
{
    open_final(8);
    comes_plain(S, DCE_REQUEST, SEQ - 1, 0);
    comes_plain(S, DCE_REQUEST, SEQ - 1, DCE_IDEMPOTENT);
    comes_plain(S, DCE_PING, SEQ - 1, 0);
    comes_plain(S, DCE_REQUEST, SEQ - 1, DCE_MAYBE); /* not while another call is kept */
    EXPECT(waits(S) && state() == DCE_SERVER_FINAL);
    EXPECT(server.counts.of[DCE_COUNT_strays] == 4);
    comes_plain(S, DCE_ACK, SEQ, 0);
    comes_plain(S, DCE_REQUEST, SEQ - 1, DCE_MAYBE);
    EXPECT(runs(S) && activity->seq == SEQ);
}

static void any_what_cannot_be_served_is_rejected(void)
{
    struct dce_pdu pdu;

    open_server();
    pdu = from_client(DCE_REQUEST, SEQ, 0);
    pdu.boot_time = BOOT - 1;
    comes(0, &pdu);
    EXPECT(rejects(0, DCE_WRONG_BOOT_TIME));
    pdu.ptype = DCE_PING;
    comes(0, &pdu);
    EXPECT(rejects(0, DCE_WRONG_BOOT_TIME));
    pdu = from_client(DCE_REQUEST, SEQ, 0);
    pdu.interface.bytes[0] ^= 1;
    comes(0, &pdu);
    EXPECT(rejects(0, DCE_UNKNOWN_IF));
    pdu.flags1 = DCE_MAYBE; /* nobody waits for an answer */
    comes(0, &pdu);
    EXPECT(waits(0));
    pdu = from_client(DCE_REQUEST, SEQ, 0);
    pdu.version = 2; /* another major version; then a newer minor one; then an older */
    comes(0, &pdu);
    EXPECT(rejects(0, DCE_UNKNOWN_IF));
    pdu.version = 2 << 16 | 1;
    comes(0, &pdu);
    EXPECT(rejects(0, DCE_UNKNOWN_IF));
    pdu.version = 1 << 16 | 1;
    pdu.opnum = RIG_PUT + 1;
    comes(0, &pdu);
    EXPECT(rejects(0, DCE_OP_RANGE));
    pdu.opnum = RIG_PUT;
    pdu.auth = 10;
    comes(0, &pdu);
    EXPECT(rejects(0, DCE_UNKNOWN_AUTH));
    EXPECT(server.used == 0 && server.counts.of[DCE_COUNT_rejects] == 7);
    pdu = from_client(DCE_REQUEST, SEQ, DCE_BROADCAST | DCE_IDEMPOTENT | DCE_FRAGMENT);
    comes(0, &pdu);
    EXPECT(waits(0) && server.used == 0);
}

static void any_cancel_is_acknowledged(void)
{
    struct dce_cancel cancel = {.id = 7};
    struct dce_pdu pdu = from_client(DCE_CANCEL, SEQ, 0);
    uint8_t body[16];

    open_running(0);
    pdu.length = dce_cancel_encode(&cancel, false, body, false);
    pdu.body = body;
    comes(0, &pdu);
    EXPECT(sends(0, DCE_CANCEL_ACK) && dce_cancel_decode(&packet.pdu, &cancel) && waits(0));
    EXPECT(cancel.id == 7 && cancel.accepting && activity->cancel_pending);
    dce_server_result(&server, 0, activity, DCE_OK, 0);
    EXPECT(sends(0, DCE_RESPONSE) && packet.pdu.flags2 == DCE_CANCEL_PENDING);
    comes(0, &pdu); /* too late */
    EXPECT(sends(0, DCE_CANCEL_ACK) && dce_cancel_decode(&packet.pdu, &cancel) && waits(0));
    EXPECT(!cancel.accepting);
    /* A client that quits its call. */
    open_running(0);
    pdu.length = 0;
    comes(0, &pdu);
    EXPECT(sends(0, DCE_CANCEL_ACK) && packet.pdu.length == 0);
    dce_server_result(&server, 0, activity, DCE_OK, 0);
    EXPECT(waits(0) && state() == DCE_SERVER_IDLE);
}

static void places_are_those_of_idle_activities(void)
{
    struct dce_pdu pdu = from_client(DCE_REQUEST, SEQ, DCE_IDEMPOTENT);

    open_server();
    for (uint8_t i = 0; i < 3; i++) {
        pdu.activity.bytes[5] = i;
        comes(i, &pdu);
        if (i < PLACES)
            EXPECT(runs(i));
    }
    EXPECT(rejects(3, DCE_TOO_BUSY));
    dce_server_result(&server, 4, &server.table[1], DCE_OK, 0);
    EXPECT(sends(4, DCE_RESPONSE) && waits(4));
    comes(5, &pdu);
    EXPECT(runs(5) && activity == &server.table[1] && activity->uuid.bytes[5] == 2);
}

static void unexpected_types_are_strays(void)
{
    open_server();
    comes_plain(0, DCE_WORKING, SEQ, 0);
    comes_plain(0, DCE_NOCALL, SEQ, 0);
    comes_plain(0, DCE_CANCEL_ACK, SEQ, 0);
    comes_plain(0, DCE_FAULT, SEQ, 0);
    comes_plain(0, DCE_FACK, SEQ, 0);
    comes_plain(0, DCE_ACK, SEQ, 0);
    EXPECT(waits(0) && server.counts.of[DCE_COUNT_strays] == 6);
}

#define ROW(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }

int main(void)
{
    static const struct test tests[] = {
        ROW(unknown_request_idempotent_enters),
        ROW(unknown_request_else_asks_who),
        ROW(way_answer_continues_or_drops),
        ROW(way_without_an_answer_is_rejected),
        ROW(recv_fragment_is_facked_if_it_asks),
        ROW(recv_ping_is_answered_by_a_nocall_with_a_body),
        ROW(recv_half_a_request_is_forgotten),
        ROW(recv_greater_seq_takes_its_place),
        ROW(run_ping_is_answered_by_working),
        ROW(run_result_idempotent_is_forgotten),
        ROW(run_result_else_is_kept),
        ROW(run_greater_seq_orphans_the_call),
        ROW(run_tells_a_deadline_before_any_that_its_result_sets),
        ROW(final_request_or_ping_sends_what_is_kept),
        ROW(final_fack_sends_the_next_burst),
        ROW(final_resend_timer_sends_the_head),
        ROW(final_ack_forgets),
        ROW(final_or_idle_greater_seq_is_the_next_call),
        ROW(idle_same_seq_is_rejected_or_runs_again),
        ROW(idle_is_forgotten_after_300_s),
        ROW(idle_ping_is_answered_by_a_nocall_without_body),
        ROW(any_smaller_seq_is_dropped),
        ROW(any_what_cannot_be_served_is_rejected),
        ROW(any_cancel_is_acknowledged),
        ROW(places_are_those_of_idle_activities),
        ROW(unexpected_types_are_strays),
    };
    int status = run_tests(tests, sizeof(tests) / sizeof(*tests));

    free(memory);
    return status;
}
