/* SPDX-License-Identifier: Apache-2.0 */

/* vRPC on the rig, over VMMC and over MBCF: a server's task and a binder on node 2, clients on node
 * 1. The argument is how both wait: "poll" or "notify". */
#include <pthread.h>
#include <rpc/async.h>
#include <rpc/mbcf_binder.h>
#include <rpc/vrpc.h>
#include <string.h>

#include "client.h"
#include "echo_rig.h"
#include "pattern.h"
#include "vmmc_rig.h"
#include "vrpc_carriers.h"

enum { SERVER = 2, CLIENT_NODE = 1, CLIENTS = 5, CRASHING = 6 };

static const struct timeval patience = {.tv_sec = 20};
static enum vrpc_wait way;
static SVCXPRT *transport;
static volatile uint32_t server_ready;

/* ---- the server's node ---- */

static int become_binder(void)
{
    return vmmc_rig_task_of(SERVER, MB_BINDER_TASK);
}

static void *run_server(void *unused)
{
    struct svcvrpc_options options = {.over_vmmc = true,
                                      .over_mbcf = true,
                                      .wait = way,
                                      .deliberate_above = VRPC_DELIBERATE_ABOVE};
    struct svcmb_options over_mbcf = {0};
    const char *error = NULL;
    SVCXPRT *mbcf;

    (void)unused;
    vmmc_rig_task(SERVER);
    transport = svcvrpc_create(&options);
    rig_must(transport != NULL &&
                 svc_register(transport, ECHO_PROGRAM, ECHO_VERSION, rig_dispatch, 0),
             "the rings");
    over_mbcf.rings = transport;
    mbcf = svcmb_create(&over_mbcf, &error);
    rig_must(mbcf != NULL, error);
    rig_must(svcmb_register(mbcf, ECHO_PROGRAM, ECHO_VERSION, rig_dispatch), "registering");
    server_ready = 1;
    svc_run();
    return NULL;
}

/* ---- clients ---- */

static CLIENT *try_client(bool over_mbcf, rpcprog_t program, enum vrpc_wait wait)
{
    struct clntvrpc_options options = {.over_mbcf = over_mbcf,
                                       .wait = wait,
                                       .deliberate_above = VRPC_DELIBERATE_ABOVE,
                                       .connect_ns = 2 * SECOND};

    return clntvrpc_create(SERVER, program, ECHO_VERSION, &options);
}

static CLIENT *new_client(bool over_mbcf)
{
    CLIENT *client = try_client(over_mbcf, ECHO_PROGRAM, way);

    rig_must(client != NULL, clntvrpc_create_error());
    return client;
}

static enum clnt_stat null(CLIENT *client)
{
    return clnt_call(client, ECHO_NULL, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL,
                     patience);
}

#define BOTH(name)                                                                                 \
    static void name##_over_vmmc(void)                                                             \
    {                                                                                              \
        name(false);                                                                               \
    }                                                                                              \
    static void name##_over_mbcf(void)                                                             \
    {                                                                                              \
        name(true);                                                                                \
    }

/* ---- tests ---- */

/* On both sides of what goes by deliberate update, and of a page, a quarter and half the ring. */
static void test_sizes(bool over_mbcf)
{
    static const u_int sizes[] = {0,     1,     3,     4,     5,     40,    979,  980,
                                  981,   984,   1024,  1356,  1364,  4044,  4052, 4096,
                                  16340, 32724, 32768, 40001, 65533, 65535, 65536};
    CLIENT *client = new_client(over_mbcf);

    EXPECT(null(client) == RPC_SUCCESS);
    for (unsigned round = 0; round < 3; round++)
        for (uint32_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
            EXPECT_OF(rig_echo(client, i + round, sizes[i]) == RPC_SUCCESS, "%u bytes", sizes[i]);
    rig_end_client(client);
}
BOTH(test_sizes)

/* Other tasks of both nodes have all transfers: calls and replies are sent when one is over. */
static void test_long_messages_that_find_no_place(void)
{
    CLIENT *client = new_client(false);

    for (uint32_t i = 1; i <= 20; i++) {
        vmmc_rig_busy(i);
        EXPECT_OF(rig_echo(client, i, 3000 * i) == RPC_SUCCESS, "%u refused", i);
    }
    rig_end_client(client);
}

/* Sizes that do not divide the ring: its end comes at every place. */
static void test_many_turns_of_the_ring(bool over_mbcf)
{
    CLIENT *client = new_client(over_mbcf);
    uint64_t bytes = 0;

    for (uint32_t i = 0; bytes < 20 * VRPC_RING; i++) {
        u_int size = (i * 7919u) % (i % 5 == 0 ? 60000 : 900);

        EXPECT_OF(rig_echo(client, i, size) == RPC_SUCCESS, "call %u of %u bytes", i, size);
        bytes += size;
    }
    rig_end_client(client);
}
BOTH(test_many_turns_of_the_ring)

/* More than both rings hold, of which nothing is taken while they are started. */
static void test_calls_under_way(bool over_mbcf)
{
    enum { DEPTH = 40, SIZE = 2900 };
    static char sent[SIZE], received[DEPTH][SIZE];
    struct rpc_call *calls[DEPTH];
    echo_data back[DEPTH];
    CLIENT *client = new_client(over_mbcf);

    for (unsigned i = 0; i < DEPTH; i++) {
        echo_data data = {SIZE, sent};

        pattern_fill(PATTERN_OPAQUE, i, 0, sent, SIZE);
        back[i] = (echo_data){0, received[i]};
        calls[i] = rpc_async(client, ECHO_OPAQUE, (xdrproc_t)xdr_echo_data, &data,
                             (xdrproc_t)xdr_echo_data, &back[i]);
    }
    for (unsigned i = DEPTH; i-- > 0;) {
        EXPECT(rpc_wait(calls[i], 20 * SECOND) == RPC_SUCCESS);
        EXPECT(back[i].echo_data_len == SIZE &&
               pattern_matches(PATTERN_OPAQUE, i, 0, received[i], SIZE));
    }
    rig_end_client(client);
}
BOTH(test_calls_under_way)

/* Of two rings full of replies that are not taken, the server still serves others. */
static void test_replies_that_are_not_taken(bool over_mbcf)
{
    enum { CALLS = 6, SIZE = 40000 };
    static char sent[SIZE];
    CLIENT *lazy = new_client(over_mbcf), *other = new_client(over_mbcf);
    echo_data data = {SIZE, sent};
    struct timeval none = {0, 0};

    for (unsigned i = 0; i < CALLS; i++)
        clnt_call(lazy, ECHO_OPAQUE, (xdrproc_t)xdr_echo_data, &data, (xdrproc_t)xdr_echo_data,
                  &data, none);
    EXPECT(rig_echo(other, 1, 100) == RPC_SUCCESS);
    EXPECT(rig_echo(lazy, 2, SIZE) == RPC_SUCCESS);
    rig_end_client(lazy);
    rig_end_client(other);
}
BOTH(test_replies_that_are_not_taken)

static void test_one_way_calls(bool over_mbcf)
{
    enum { CALLS = 200, SIZE = 3000 };
    static char sent[SIZE];
    CLIENT *client = new_client(over_mbcf);
    echo_data data = {SIZE, sent};
    uint64_t before = rig.one_way;

    for (unsigned i = 0; i < CALLS; i++)
        EXPECT(rpc_one_way(client, ECHO_SINK_ONE_WAY, (xdrproc_t)xdr_echo_data, &data) ==
               RPC_SUCCESS);
    EXPECT(null(client) == RPC_SUCCESS); /* in order, so all of them have been executed */
    EXPECT(rig.one_way == before + CALLS);
    rig_end_client(client);
}
BOTH(test_one_way_calls)

static bool_t cannot_be_encoded(XDR *xdrs, void *unused)
{
    (void)xdrs, (void)unused;
    return FALSE;
}

static void test_what_cannot_be_called(bool over_mbcf)
{
    static char large[100000];
    echo_data data = {sizeof(large), large};
    CLIENT *client = new_client(over_mbcf);

    EXPECT(clnt_call(client, 77, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, patience) ==
           RPC_PROCUNAVAIL);
    EXPECT(clnt_call(client, ECHO_OPAQUE, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL,
                     patience) == RPC_CANTDECODEARGS);
    EXPECT(clnt_call(client, ECHO_OPAQUE, (xdrproc_t)cannot_be_encoded, NULL, (xdrproc_t)xdr_void,
                     NULL, patience) == RPC_CANTENCODEARGS);
    EXPECT(clnt_call(client, ECHO_OPAQUE, (xdrproc_t)xdr_echo_data, &data, (xdrproc_t)xdr_void,
                     NULL, patience) == RPC_CANTENCODEARGS);
    EXPECT(null(client) == RPC_SUCCESS);
    rig_end_client(client);
    EXPECT(try_client(over_mbcf, ECHO_PROGRAM + 1, way) == NULL &&
           *clntvrpc_create_error() != '\0');
}
BOTH(test_what_cannot_be_called)

static void test_who_waits_otherwise_is_refused(void)
{
    EXPECT(try_client(false, ECHO_PROGRAM, way == VRPC_POLL ? VRPC_NOTIFY : VRPC_POLL) == NULL);
}

struct caller {
    pthread_t thread;
    bool over_mbcf;
    unsigned failed;
};

static void *run_caller(void *argument)
{
    struct caller *caller = argument;
    CLIENT *client;

    vmmc_rig_task(CLIENT_NODE);
    client = new_client(caller->over_mbcf);
    for (uint32_t i = 0; i < 100; i++)
        caller->failed += rig_echo(client, i, i * 97 % 5000) != RPC_SUCCESS;
    rig_end_client(client);
    vmmc_rig_end();
    return NULL;
}

static void test_many_clients(bool over_mbcf)
{
    const struct svcvrpc_counters *counters = svcvrpc_counters(transport);
    uint64_t before = counters->clients;
    struct caller callers[CLIENTS] = {0};

    for (unsigned i = 0; i < CLIENTS; i++) {
        callers[i].over_mbcf = over_mbcf;
        pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        pthread_join(callers[i].thread, NULL);
        EXPECT_OF(callers[i].failed == 0, "%u failed", callers[i].failed);
    }
    EXPECT(counters->clients == before + CLIENTS && counters->malformed == 0);
}
BOTH(test_many_clients)

static CLIENT *patient_client(void)
{
    struct clntvrpc_options options = {
        .wait = way, .deliberate_above = VRPC_DELIBERATE_ABOVE, .connect_ns = 30 * SECOND};
    CLIENT *client = clntvrpc_create(SERVER, ECHO_PROGRAM, ECHO_VERSION, &options);

    rig_must(client != NULL, clntvrpc_create_error());
    return client;
}

/* Until the server has no more clients than these -> how many have left it. One that sleeps looks
 * when it is called, by `waking`. */
static uint64_t await_ends(unsigned clients, CLIENT *waking)
{
    const struct svcvrpc_counters *counters = svcvrpc_counters(transport);
    uint64_t deadline = sss_now_ns() + 30 * SECOND;

    do {
        if (waking == NULL || null(waking) != RPC_SUCCESS)
            sss_yield();
    } while (counters->clients - counters->clients_gone > clients && sss_now_ns() < deadline);
    return counters->clients_gone;
}

static void *run_crashing(void *unused)
{
    CLIENT *client;

    (void)unused;
    vmmc_rig_task(CLIENT_NODE);
    for (unsigned i = 0; i < CRASHING; i++) {
        client = patient_client();
        EXPECT(null(client) == RPC_SUCCESS);
        vmmc_rig_crash();
        rig_end_client(client);
    }
    return NULL;
}

/* Where the server can offer no place more, those of clients whose nodes have crashed are had. */
static void test_clients_whose_nodes_crash(void)
{
    const struct svcvrpc_counters *counters = svcvrpc_counters(transport);
    CLIENT *first = patient_client(), *last, *next;
    uint64_t gone = await_ends(1, first), clients = counters->clients;
    pthread_t thread;

    pthread_create(&thread, NULL, run_crashing, NULL);
    pthread_join(thread, NULL);
    EXPECT(counters->clients == clients + CRASHING && counters->clients_gone == gone);
    vmmc_rig_full(SERVER, true);
    last = patient_client();
    EXPECT(null(last) == RPC_SUCCESS);
    EXPECT(counters->clients_gone == gone);
    next = patient_client();
    EXPECT(null(next) == RPC_SUCCESS && null(last) == RPC_SUCCESS);
    EXPECT(counters->clients_gone == gone + CRASHING);
    vmmc_rig_full(SERVER, false);
    rig_end_client(next);
    rig_end_client(last);
    rig_end_client(first);
}

static CLIENT *volatile calling; /* NULL: none */

/* In the server's task: each call that it serves brings the next one. */
static void call_again(void)
{
    CLIENT *client = calling;
    echo_data none = {0};

    if (client != NULL)
        rpc_one_way(client, ECHO_SINK_ONE_WAY, (xdrproc_t)xdr_echo_data, &none);
}

/* It still finds the clients that come and go. */
static void test_a_server_that_is_never_idle(void)
{
    CLIENT *busy = patient_client(), *first = patient_client(), *other;
    uint64_t gone = await_ends(2, first);

    calling = busy;
    rig.before = call_again;
    EXPECT(null(first) == RPC_SUCCESS);
    other = patient_client();
    EXPECT(null(other) == RPC_SUCCESS);
    rig_end_client(other);
    EXPECT(await_ends(2, NULL) == gone + 1);
    calling = NULL;
    EXPECT(null(first) == RPC_SUCCESS); /* from here on the server's task leaves `busy` alone */
    rig_end_client(first);
    rig_end_client(busy);
}

/* What a client writes into its rings harms no other, and ends its line. */
static void test_a_broken_ring_ends_its_line(void)
{
    const struct svcvrpc_counters *counters = svcvrpc_counters(transport);
    uint64_t gone = counters->clients_gone, malformed = counters->malformed;
    uint64_t deadline = sss_now_ns() + 10 * SECOND;
    CLIENT *client = new_client(false), *other = new_client(false);
    /* the line is the member behind what all clients have */
    struct vrpc_line *line =
        *(struct vrpc_line **)(void *)((struct client_base *)client->cl_private + 1);

    *(volatile uint64_t *)(void *)(line->out + RING_TAIL) = ring_tail_word(3 * VRPC_RING);
    while (counters->malformed == malformed && sss_now_ns() < deadline)
        null(other);
    EXPECT(clnt_call(client, ECHO_NULL, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL,
                     (struct timeval){.tv_sec = 5}) != RPC_SUCCESS);
    EXPECT(null(other) == RPC_SUCCESS);
    EXPECT(counters->clients_gone > gone && counters->malformed == malformed + 1);
    rig_end_client(client);
    rig_end_client(other);
}

static void die(void)
{
    vmmc_rig_end();
    pthread_exit(NULL);
}

/* The last test. */
static void test_a_server_that_dies_in_a_call(void)
{
    CLIENT *client = new_client(false);
    uint64_t begin = sss_now_ns();

    EXPECT(null(client) == RPC_SUCCESS);
    rig.before = die;
    EXPECT(null(client) == RPC_CANTRECV);
    EXPECT(null(client) == RPC_CANTSEND);
    EXPECT(sss_now_ns() - begin < 10 * SECOND);
    rig_end_client(client);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        {"sizes over VMMC", test_sizes_over_vmmc},
        {"sizes over MBCF", test_sizes_over_mbcf},
        {"long messages that find no place", test_long_messages_that_find_no_place},
        {"many turns of the ring over VMMC", test_many_turns_of_the_ring_over_vmmc},
        {"many turns of the ring over MBCF", test_many_turns_of_the_ring_over_mbcf},
        {"calls under way over VMMC", test_calls_under_way_over_vmmc},
        {"calls under way over MBCF", test_calls_under_way_over_mbcf},
        {"replies that are not taken over VMMC", test_replies_that_are_not_taken_over_vmmc},
        {"replies that are not taken over MBCF", test_replies_that_are_not_taken_over_mbcf},
        {"one-way calls over VMMC", test_one_way_calls_over_vmmc},
        {"one-way calls over MBCF", test_one_way_calls_over_mbcf},
        {"what cannot be called over VMMC", test_what_cannot_be_called_over_vmmc},
        {"what cannot be called over MBCF", test_what_cannot_be_called_over_mbcf},
        {"who waits otherwise is refused", test_who_waits_otherwise_is_refused},
        {"many clients over VMMC", test_many_clients_over_vmmc},
        {"many clients over MBCF", test_many_clients_over_mbcf},
        {"clients whose nodes crash", test_clients_whose_nodes_crash},
        {"a server that is never idle", test_a_server_that_is_never_idle},
        {"a broken ring ends its line", test_a_broken_ring_ends_its_line},
        {"a server that dies in a call", test_a_server_that_dies_in_a_call},
    };

    way = argc > 1 && strcmp(argv[1], "notify") == 0 ? VRPC_NOTIFY : VRPC_POLL;
    vmmc_rig_start(2);
    vmmc_rig_task(CLIENT_NODE);
    rig_binder(become_binder);
    rig_thread(run_server, &server_ready);
    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
