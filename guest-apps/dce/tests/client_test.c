/* SPDX-License-Identifier: Apache-2.0 */
/* Each row of the client's table of states (README.md), with a clock of whole seconds. */
#include "expect.h"
#include "rig.h"

#define S DCE_SECOND_NS

static struct dce_client client;
static uint8_t memory[DCE_SLOTS * 4096], results[50000], arguments[50000];
static struct dce_packet packet;
static const struct dce_peer server = {0x0a000001, 2001}, other_port = {0x0a000001, 2077},
                             stranger = {0x0a000009, 2001};
static const struct dce_uuid activity = {{0xac, 1}};
enum { BOOT = 0x5eed, SEQ = 40 };

static void begin_of(uint8_t semantics, size_t length)
{
    const struct dce_client_settings settings = {
        .xmitq = {DCE_WINDOW, 4096, 2 * S},
        .offer = {32, 4096},
        .activity = activity,
        .server = server,
        .seq = SEQ,
        .ping_ns = 2 * S,
        .ack_delay_ns = S,
        .give_up_ns = 30 * S,
        .broadcast_ns = 5 * S,
        .cancel_ns = S,
    };
    const struct dce_operation operation = {
        .interface = rig_interface, .version = 1, .opnum = RIG_PUT, .semantics = semantics};

    dce_client_init(&client, &settings, memory, results, sizeof(results));
    dce_client_call(&client, 0, &operation, arguments, length);
}

static bool sends(uint64_t now, enum dce_ptype ptype)
{
    return dce_client_next(&client, now, &packet) == DCE_SEND && packet.pdu.ptype == ptype;
}

static bool waits(uint64_t now)
{
    return dce_client_next(&client, now, &packet) == DCE_WAIT;
}

static bool ends(uint64_t now, uint32_t status)
{
    return dce_client_next(&client, now, &packet) == DCE_DONE && client.status == status &&
           waits(now);
}

static struct dce_pdu from_server(enum dce_ptype ptype)
{
    return (struct dce_pdu){.ptype = (uint8_t)ptype,
                            .interface = rig_interface,
                            .activity = activity,
                            .boot_time = BOOT,
                            .version = 1,
                            .seq = client.seq,
                            .opnum = RIG_PUT,
                            .interface_hint = 3,
                            .activity_hint = 4};
}

static void comes(uint64_t now, const struct dce_pdu *pdu)
{
    client_machine_packet(&client, now, &server, pdu);
}

static void comes_plain(uint64_t now, enum dce_ptype ptype)
{
    struct dce_pdu pdu = from_server(ptype);

    comes(now, &pdu);
}

static void comes_response(uint64_t now, uint16_t fragment, uint8_t flags)
{
    struct dce_pdu pdu = from_server(DCE_RESPONSE);

    pdu.flags1 = flags;
    pdu.fragment = pdu.serial = fragment;
    pdu.length = 8;
    pdu.body = arguments;
    comes(now, &pdu);
}

static void comes_fack(uint64_t now, enum dce_ptype ptype, uint16_t fragment, uint16_t serial,
                       uint32_t selack)
{
    const struct dce_fack fack = {.window_kib = 32,
                                  .max_fragment = 4096,
                                  .serial = serial,
                                  .selack_words = selack != 0,
                                  .selack = {selack}};
    struct dce_pdu pdu = from_server(ptype);
    uint8_t body[DCE_CONTROL_BODY];

    pdu.fragment = fragment;
    pdu.length = dce_fack_encode(&fack, body, false);
    pdu.body = body;
    comes(now, &pdu);
}

static void comes_status(uint64_t now, enum dce_ptype ptype, uint32_t status)
{
    struct dce_pdu pdu = from_server(ptype);
    uint8_t body[4];

    dce_put32(body, status, false);
    pdu.length = 4;
    pdu.body = body;
    comes(now, &pdu);
}

static void times_out(uint64_t at)
{
    EXPECT_OF(dce_client_deadline(&client) == at, "%.3f s, not %.3f",
              (double)dce_client_deadline(&client) / (double)S, (double)at / (double)S);
    dce_client_timeout(&client, at);
}

/* ---- idle ---- */

static void idle_call_sends_the_first_burst(void)
{
    begin_of(0, 4016);
    EXPECT(client.state == DCE_CLIENT_XMIT);
    EXPECT(sends(0, DCE_REQUEST) && packet.pdu.seq == SEQ && packet.pdu.flags1 == 0);
    EXPECT(packet.pdu.boot_time == 0 && packet.pdu.interface_hint == 0xffff &&
           packet.pdu.activity_hint == 0xffff);
    EXPECT(waits(0) && client.state == DCE_CLIENT_RECV);
    begin_of(DCE_MAYBE, 4017);
    EXPECT(sends(0, DCE_REQUEST));
    EXPECT(packet.pdu.flags1 == (DCE_MAYBE | DCE_FRAGMENT) && packet.pdu.length == 4016);
    EXPECT(waits(0) && client.state == DCE_CLIENT_XMIT);
}

/* ---- xmit ---- */

static void xmit_fack_sends_the_next_burst(void)
{
    begin_of(0, 12048);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_fack(1, DCE_FACK, 0, 0, 0);
    EXPECT(sends(1, DCE_REQUEST) && packet.pdu.fragment == 1 && packet.pdu.serial == 1);
    EXPECT(packet.pdu.flags1 == (DCE_FRAGMENT | DCE_NO_FACK));
    /* What the server said of itself goes back to it. */
    EXPECT(packet.pdu.boot_time == BOOT && packet.pdu.activity_hint == 4);
    EXPECT(sends(1, DCE_REQUEST) && packet.pdu.fragment == 2);
    EXPECT(packet.pdu.flags1 == (DCE_FRAGMENT | DCE_NO_FACK | DCE_LAST));
    EXPECT(waits(1) && client.state == DCE_CLIENT_RECV);
}

static void xmit_fack_with_holes_sends_them_again(void)
{
    begin_of(0, 8 * 4016);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_fack(1, DCE_FACK, 0, 0, 0);
    EXPECT(sends(1, DCE_REQUEST) && sends(1, DCE_REQUEST) && waits(1));
    comes_fack(2, DCE_FACK, 0, 2, 2); /* fragment 2 has come, 1 has not */
    EXPECT(sends(2, DCE_REQUEST) && packet.pdu.fragment == 1 && packet.pdu.serial == 3);
    EXPECT(waits(2) && client.state == DCE_CLIENT_XMIT);
}

static void xmit_resend_timer_sends_the_oldest(void)
{
    begin_of(0, 50000);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_fack(0, DCE_FACK, 0, 0, 0);
    EXPECT(sends(0, DCE_REQUEST) && sends(0, DCE_REQUEST) && waits(0));
    for (unsigned i = 0, now = 2; i < 4; now += i == 0 ? 4 : 8, i++) { /* 2, 6, 14, 22 */
        times_out(now * S);
        EXPECT(sends(now * S, DCE_REQUEST) && packet.pdu.fragment == 1);
        EXPECT(packet.pdu.serial == 3 + i && (packet.pdu.flags1 & DCE_NO_FACK) == 0);
        EXPECT(waits(now * S));
    }
    comes_fack(23 * S, DCE_FACK, 2, 6, 0); /* the burst begins with one again, and doubles */
    EXPECT(sends(23 * S, DCE_REQUEST) && sends(23 * S, DCE_REQUEST) && waits(23 * S));
    times_out(25 * S);
}

static void xmit_silence_ends_the_call(void)
{
    begin_of(0, 50000);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    while (dce_client_deadline(&client) < 30 * S) {
        uint64_t now = dce_client_deadline(&client);

        dce_client_timeout(&client, now);
        EXPECT(sends(now, DCE_REQUEST) && waits(now));
    }
    times_out(30 * S);
    EXPECT(ends(30 * S, DCE_COMM_FAILURE) && client.state == DCE_CLIENT_IDLE);
    EXPECT(dce_client_deadline(&client) == DCE_NEVER);
}

/* ---- recv ---- */

static void recv_response_fragment_is_facked_if_it_asks(void)
{
    begin_of(0, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_response(1, 0, DCE_FRAGMENT);
    EXPECT(sends(1, DCE_FACK) && packet.pdu.fragment == 0 && packet.pdu.length == 16 && waits(1));
    EXPECT(dce_xmitq_is_empty(&client.xmitq)); /* it acknowledges the request */
    comes_response(1, 2, DCE_FRAGMENT | DCE_NO_FACK);
    EXPECT(waits(1));
    comes_response(1, 2, DCE_FRAGMENT); /* again, and asking */
    EXPECT(sends(1, DCE_FACK) && packet.pdu.fragment == 0 && packet.pdu.length == 20 && waits(1));
    comes_response(1, 3, DCE_FRAGMENT | DCE_NO_FACK | DCE_LAST);
    EXPECT(waits(1));
    comes_response(1, 1, DCE_FRAGMENT); /* the last one that was missing */
    EXPECT(ends(1, DCE_OK) && client.recvq.length == 32);
}

static void recv_complete_idempotent_goes_idle(void)
{
    begin_of(DCE_IDEMPOTENT, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_response(1, 0, 0);
    EXPECT(ends(1, DCE_OK) && client.state == DCE_CLIENT_IDLE && client.recvq.length == 8);
    EXPECT(dce_client_deadline(&client) == DCE_NEVER);
}

static void xmit_maybe_ends_when_all_is_sent(void)
{
    begin_of(DCE_MAYBE, 4017);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_fack(1, DCE_FACK, 0, 0, 0);
    EXPECT(sends(1, DCE_REQUEST) && ends(1, DCE_OK) && client.state == DCE_CLIENT_IDLE);
}

static void recv_complete_else_arms_the_ack(void)
{
    begin_of(0, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_response(5 * S, 0, 0);
    EXPECT(ends(5 * S, DCE_OK) && client.state == DCE_CLIENT_FINAL);
    EXPECT(dce_client_deadline(&client) == 6 * S);
}

static void recv_ping_timer_pings_then_gives_up(void)
{
    static const unsigned pings[] = {2, 6, 14, 22}; /* the next one would be at 30 */

    begin_of(0, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    for (unsigned i = 0; i < 4; i++) {
        times_out(pings[i] * S);
        EXPECT(sends(pings[i] * S, DCE_PING) && packet.pdu.seq == SEQ && waits(pings[i] * S));
    }
    times_out(30 * S);
    EXPECT(ends(30 * S, DCE_COMM_FAILURE) && client.state == DCE_CLIENT_IDLE);
}

static void recv_working_frees_and_pings_later(void)
{
    begin_of(0, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    times_out(2 * S);
    EXPECT(sends(2 * S, DCE_PING));
    comes_plain(2 * S, DCE_WORKING);
    EXPECT(waits(2 * S) && dce_xmitq_is_empty(&client.xmitq));
    times_out(5 * S); /* 3 s later; a call of 10 s: 10; of 30 s: 30 */
    EXPECT(sends(5 * S, DCE_PING));
    comes_plain(10 * S, DCE_WORKING);
    times_out(20 * S);
    EXPECT(sends(20 * S, DCE_PING));
    comes_plain(30 * S, DCE_WORKING);
    times_out(60 * S);
    /* Its silence is counted from this ping on, not from its last word. */
    EXPECT(sends(60 * S, DCE_PING));
    times_out(64 * S);
    EXPECT(sends(64 * S, DCE_PING) && client.state == DCE_CLIENT_RECV);
    begin_of(DCE_IDEMPOTENT, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_plain(S, DCE_WORKING);
    EXPECT(!dce_xmitq_is_empty(&client.xmitq));
}

static void recv_nocall_without_body_sends_all_that_is_kept(void)
{
    begin_of(0, 3 * 4016);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_fack(0, DCE_FACK, 0, 0, 0);
    EXPECT(sends(0, DCE_REQUEST) && sends(0, DCE_REQUEST) && waits(0));
    times_out(2 * S);
    EXPECT(sends(2 * S, DCE_PING));
    comes_plain(3 * S, DCE_NOCALL);
    EXPECT(sends(3 * S, DCE_REQUEST) && packet.pdu.fragment == 1);
    EXPECT(sends(3 * S, DCE_REQUEST) && packet.pdu.fragment == 2 && waits(3 * S));
    times_out(5 * S); /* pinging begins again */
    EXPECT(sends(5 * S, DCE_PING));
    begin_of(DCE_IDEMPOTENT, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_plain(1, DCE_NOCALL);
    EXPECT(sends(1, DCE_REQUEST) && packet.pdu.fragment == 0 && packet.pdu.serial == 1 && waits(1));
}

/* Its server forgets it at once, and acknowledged fragments are not kept for another time. */
static void idempotent_call_of_several_fragments_goes_at_most_once(void)
{
    begin_of(DCE_IDEMPOTENT, 4017);
    EXPECT(sends(0, DCE_REQUEST) && packet.pdu.flags1 == DCE_FRAGMENT && waits(0));
    comes_fack(0, DCE_FACK, 0, 0, 0);
    EXPECT(sends(0, DCE_REQUEST) && (packet.pdu.flags1 & DCE_IDEMPOTENT) == 0 && waits(0));
    comes_response(0, 0, 0);
    EXPECT(ends(0, DCE_OK) && client.state == DCE_CLIENT_FINAL);
}

static void recv_nocall_after_the_response_has_begun_is_late(void)
{
    begin_of(DCE_IDEMPOTENT, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_response(1, 0, DCE_FRAGMENT | DCE_NO_FACK);
    comes_plain(1, DCE_NOCALL);
    EXPECT(waits(1) && client.counts.of[DCE_COUNT_strays] == 1);
    comes_response(1, 1, DCE_FRAGMENT | DCE_NO_FACK | DCE_LAST);
    EXPECT(ends(1, DCE_OK) && client.recvq.length == 16);
}

static void recv_nocall_without_news_does_not_go_on_for_ever(void)
{
    uint64_t now = 0;

    begin_of(0, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_fack(1, DCE_NOCALL, 0, 0, 0);
    while (client.state != DCE_CLIENT_IDLE && now < 100 * S) {
        now = dce_client_deadline(&client);
        dce_client_timeout(&client, now);
        if (sends(now, DCE_PING))
            comes_fack(now, DCE_NOCALL, 0, 0, 0);
    }
    EXPECT(client.status == DCE_COMM_FAILURE && now <= 40 * S);
}

static void recv_nocall_with_body_sends_what_it_does_not_name(void)
{
    begin_of(0, 3 * 4016);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_fack(0, DCE_FACK, 0, 0, 0);
    EXPECT(sends(0, DCE_REQUEST) && sends(0, DCE_REQUEST) && waits(0));
    times_out(2 * S);
    EXPECT(sends(2 * S, DCE_PING));
    comes_fack(2 * S, DCE_NOCALL, 0, 2, 2);
    EXPECT(sends(2 * S, DCE_REQUEST) && packet.pdu.fragment == 1 && waits(2 * S));
}

static void fault_of_a_call_is_acknowledged_later(void)
{
    begin_of(0, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_status(S, DCE_FAULT, DCE_INVALID_BOUND);
    EXPECT(ends(S, DCE_INVALID_BOUND) && client.state == DCE_CLIENT_FINAL);
    times_out(2 * S);
    EXPECT(sends(2 * S, DCE_ACK) && waits(2 * S) && client.state == DCE_CLIENT_IDLE);
    begin_of(DCE_IDEMPOTENT, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_status(S, DCE_FAULT, DCE_INVALID_BOUND);
    EXPECT(ends(S, DCE_INVALID_BOUND) && client.state == DCE_CLIENT_IDLE);
}

static void reject_is_never_acknowledged(void)
{
    begin_of(0, 50000);
    EXPECT(sends(0, DCE_REQUEST) && waits(0)); /* still in xmit */
    comes_status(S, DCE_REJECT, DCE_UNKNOWN_IF);
    EXPECT(ends(S, DCE_UNKNOWN_IF) && client.rejected && client.state == DCE_CLIENT_IDLE);
    EXPECT(dce_client_deadline(&client) == DCE_NEVER);
}

/* ---- who are you ---- */

static struct dce_pdu ask(uint32_t boot, uint8_t body[DCE_CONV_IN], uint16_t opnum)
{
    const struct dce_conv_question question = {activity, boot};
    struct dce_pdu pdu = {.ptype = DCE_REQUEST,
                          .flags1 = DCE_IDEMPOTENT,
                          .interface = dce_conv_interface,
                          .activity = {{0xc0}},
                          .version = 3,
                          .seq = 9,
                          .opnum = opnum,
                          .body = body};

    pdu.length = dce_conv_put_question(&question, body, false);
    return pdu;
}

static bool answers(uint32_t status, uint16_t opnum)
{
    struct dce_conv_answer answer;

    return sends(0, DCE_RESPONSE) && packet.to.port == other_port.port && packet.pdu.seq == 9 &&
           packet.pdu.activity.bytes[0] == 0xc0 && packet.pdu.opnum == opnum &&
           dce_conv_get_answer(&packet.pdu, &answer) && answer.seq == client.seq &&
           answer.status == status;
}

static void who_are_you_from_any_port_of_the_host(void)
{
    uint8_t body[DCE_CONV_IN];
    struct dce_pdu pdu = ask(BOOT, body, DCE_CONV_WHO_ARE_YOU);

    begin_of(0, 50000);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    client_machine_packet(&client, 0, &other_port, &pdu);
    EXPECT(answers(DCE_OK, DCE_CONV_WHO_ARE_YOU) && client.boot_time == BOOT);
    pdu = ask(BOOT, body, DCE_CONV_WHO_ARE_YOU2);
    client_machine_packet(&client, 0, &other_port, &pdu);
    EXPECT(answers(DCE_OK, DCE_CONV_WHO_ARE_YOU2) && packet.pdu.length == DCE_CONV_OUT2);
    /* Another boot of the server, which must not execute the call once more. */
    pdu = ask(BOOT + 1, body, DCE_CONV_WHO_ARE_YOU);
    client_machine_packet(&client, 0, &other_port, &pdu);
    EXPECT(answers(DCE_YOU_CRASHED, DCE_CONV_WHO_ARE_YOU) && client.boot_time == BOOT);
    comes_status(1, DCE_FAULT, DCE_INVALID_BOUND);
    EXPECT(ends(1, DCE_INVALID_BOUND));
    /* A late copy of a request makes a server ask when the call is over. */
    pdu = ask(BOOT, body, DCE_CONV_WHO_ARE_YOU);
    client_machine_packet(&client, 1, &other_port, &pdu);
    EXPECT(answers(DCE_UNKNOWN_ACTIVITY, DCE_CONV_WHO_ARE_YOU));
    /* About others. */
    body[0] ^= 1;
    client_machine_packet(&client, 1, &other_port, &pdu);
    EXPECT(waits(1) && client.counts.of[DCE_COUNT_strays] == 1);
}

/* ---- final ---- */

static void final_ack_timer_or_next_call(void)
{
    static const struct dce_operation next = {.interface = {{1}}, .version = 1};

    begin_of(0, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_response(0, 0, 0);
    EXPECT(ends(0, DCE_OK));
    times_out(S);
    EXPECT(sends(S, DCE_ACK) && packet.pdu.seq == SEQ && packet.pdu.length == 0 && waits(S));
    EXPECT(client.state == DCE_CLIENT_IDLE);
    /* The server has not got it: it sends the response again. */
    comes_response(3 * S, 0, 0);
    EXPECT(sends(3 * S, DCE_ACK) && waits(3 * S));

    begin_of(0, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_response(0, 0, 0);
    EXPECT(ends(0, DCE_OK));
    dce_client_call(&client, S / 2, &next, arguments, 0);
    EXPECT(sends(S / 2, DCE_REQUEST) && packet.pdu.seq == SEQ + 1 && packet.pdu.boot_time == BOOT);
    EXPECT(waits(S / 2) && dce_client_deadline(&client) == S / 2 + 2 * S);
}

/* ---- the rest ---- */

static void cancel_is_sent_each_second_until_acknowledged(void)
{
    struct dce_cancel cancel;

    begin_of(0, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    dce_client_cancel(&client, S / 2);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT(sends(i * S + S / 2, DCE_CANCEL) && dce_cancel_decode(&packet.pdu, &cancel));
        EXPECT(cancel.id == 1 && !cancel.orphan && waits(i * S + S / 2));
        if (i == 0)
            times_out(S + S / 2);
    }
    comes_plain(S + S / 2, DCE_CANCEL_ACK);
    EXPECT(dce_client_deadline(&client) == 2 * S); /* the first ping */
    comes_status(2 * S, DCE_FAULT, DCE_CANCELLED);
    EXPECT(ends(2 * S, DCE_CANCELLED));
}

static void others_and_older_ones_are_dropped_and_counted(void)
{
    struct dce_pdu pdu;

    begin_of(0, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    pdu = from_server(DCE_RESPONSE);
    pdu.activity.bytes[15] ^= 1;
    comes(1, &pdu);
    pdu = from_server(DCE_RESPONSE);
    pdu.seq--;
    comes(1, &pdu);
    pdu.seq += 2;
    comes(1, &pdu);
    pdu = from_server(DCE_RESPONSE);
    client_machine_packet(&client, 1, &stranger, &pdu);
    comes_plain(1, DCE_PING); /* a server's business */
    comes_plain(1, DCE_ACK);
    EXPECT(waits(1) && client.state == DCE_CLIENT_RECV);
    EXPECT(client.counts.of[DCE_COUNT_strays] == 6);
}

static void a_changed_boot_time_ends_the_call(void)
{
    struct dce_pdu pdu;

    begin_of(0, 50000);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    comes_fack(1, DCE_FACK, 0, 0, 0);
    pdu = from_server(DCE_WORKING);
    pdu.boot_time++;
    comes(1, &pdu);
    while (dce_client_next(&client, 1, &packet) == DCE_SEND)
        continue;
    EXPECT(client.status == DCE_WRONG_BOOT_TIME && client.state == DCE_CLIENT_IDLE);
    EXPECT(client.boot_time == 0 && client.activity_hint == DCE_NO_HINT);
}

static void broadcast_takes_the_first_answer_within_5_s(void)
{
    struct dce_pdu pdu;

    begin_of(DCE_BROADCAST | DCE_IDEMPOTENT, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    times_out(5 * S); /* no ping, nothing is sent again */
    EXPECT(ends(5 * S, DCE_COMM_FAILURE));
    begin_of(DCE_BROADCAST | DCE_IDEMPOTENT, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    pdu = from_server(DCE_RESPONSE);
    client_machine_packet(&client, 1, &stranger, &pdu);
    EXPECT(ends(1, DCE_OK) && client.server.address == stranger.address);
}

static void results_that_are_too_long_are_a_failure(void)
{
    static uint8_t body[8000];
    struct dce_pdu pdu;

    begin_of(0, 8);
    EXPECT(sends(0, DCE_REQUEST) && waits(0));
    for (uint16_t i = 0; i < 8; i++) {
        pdu = from_server(DCE_RESPONSE);
        pdu.flags1 = (uint8_t)(DCE_FRAGMENT | DCE_NO_FACK | (i == 7 ? DCE_LAST : 0));
        pdu.fragment = i;
        pdu.length = sizeof(body);
        pdu.body = body;
        comes(1, &pdu);
    }
    EXPECT(ends(1, DCE_OUT_OF_RANGE));
}

#define ROW(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }

int main(void)
{
    static const struct test tests[] = {
        ROW(idle_call_sends_the_first_burst),
        ROW(xmit_fack_sends_the_next_burst),
        ROW(xmit_fack_with_holes_sends_them_again),
        ROW(xmit_resend_timer_sends_the_oldest),
        ROW(xmit_silence_ends_the_call),
        ROW(xmit_maybe_ends_when_all_is_sent),
        ROW(recv_response_fragment_is_facked_if_it_asks),
        ROW(recv_complete_idempotent_goes_idle),
        ROW(recv_complete_else_arms_the_ack),
        ROW(recv_ping_timer_pings_then_gives_up),
        ROW(recv_working_frees_and_pings_later),
        ROW(recv_nocall_without_body_sends_all_that_is_kept),
        ROW(recv_nocall_with_body_sends_what_it_does_not_name),
        ROW(idempotent_call_of_several_fragments_goes_at_most_once),
        ROW(recv_nocall_after_the_response_has_begun_is_late),
        ROW(recv_nocall_without_news_does_not_go_on_for_ever),
        ROW(fault_of_a_call_is_acknowledged_later),
        ROW(reject_is_never_acknowledged),
        ROW(who_are_you_from_any_port_of_the_host),
        ROW(final_ack_timer_or_next_call),
        ROW(cancel_is_sent_each_second_until_acknowledged),
        ROW(others_and_older_ones_are_dropped_and_counted),
        ROW(a_changed_boot_time_ends_the_call),
        ROW(broadcast_takes_the_first_answer_within_5_s),
        ROW(results_that_are_too_long_are_a_failure),
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
