/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What RPC over MBCF promises where frames are lost, doubled and overtaken, and where a server is
 * slow: how often each call is executed. The argument names the semantics, for a process has one
 * server.
 */
#include <stdlib.h>
#include <string.h>

#include "node.h"
#include "pattern.h"
#include "rpcmbcf_rig.h"

enum { DEPTH = 32, CALLS = 9, ONE_WAY = 40, TRIES = 5, CACHE = 256, MESSAGE = 4096 };
#define PATIENCE (30 * SECOND)

static const struct node_faults some = {.seed = 1, .lost = 50, .duplicated = 50, .reordered = 50};
static const struct node_faults many = {
    .seed = 2, .lost = 300, .duplicated = 300, .reordered = 300};

static uint64_t before;

static uint64_t executed(void)
{
    return rig.executed - before;
}

/* ---- exactly once ---- */

static void each_size_is_executed_once(enum mbcf_type type, const struct node_faults *faults)
{
    static const u_int sizes[] = {0, 4, 1000, 1332, 1364, 1409, 5000, 20000, 65536};
    struct clntmb_options options = {.type = type, .connect_ns = PATIENCE};
    CLIENT *client;
    unsigned calls = 0;

    node_group_faults(faults);
    client = rig_client(&options);
    before = rig.executed;
    for (unsigned i = 0; i < CALLS; i++) {
        u_int size = sizes[i % (sizeof(sizes) / sizeof(*sizes))];

        if (type == MBCF1 && size + 44 > MBCF_1_MESSAGE_MOST)
            continue;
        EXPECT(rig_echo(client, i, size) == RPC_SUCCESS);
        calls++;
    }
    EXPECT(executed() == calls);
    rig_end_client(client);
}

static void many_under_way_are_executed_once(enum mbcf_type type, const struct node_faults *faults,
                                             bool ack)
{
    struct clntmb_options options = {.type = type,
                                     .depth = DEPTH,
                                     .ack = ack,
                                     .connect_ns = PATIENCE,
                                     .message_most = type == MBCF1 ? 0 : MESSAGE};
    static char sent[DEPTH][1200], received[DEPTH][1200];
    echo_data data[DEPTH], back[DEPTH];
    struct rpc_call *calls[DEPTH];
    unsigned counted = 0, total = 0;
    CLIENT *client;

    node_group_faults(faults);
    client = rig_client(&options);
    before = rig.executed;
    for (unsigned i = 0; i < DEPTH; i++) {
        pattern_fill(PATTERN_OPAQUE, i, 0, sent[i], 37 * i);
        data[i] = (echo_data){37 * i, sent[i]};
        back[i] = (echo_data){0, received[i]};
        calls[i] = rpc_async(client, ECHO_OPAQUE, (xdrproc_t)xdr_echo_data, &data[i],
                             (xdrproc_t)xdr_echo_data, &back[i]);
    }
    for (unsigned i = 0; i < DEPTH; i++) {
        uint32_t again;

        EXPECT(rpc_wait_counted(calls[i], PATIENCE, &again) == RPC_SUCCESS);
        counted += again;
        EXPECT(back[i].echo_data_len == 37 * i &&
               pattern_matches(PATTERN_OPAQUE, i, 0, received[i], 37 * i));
    }
    EXPECT(executed() == DEPTH);
    EXPECT(clnt_control(client, CLGET_RETRANSMITS, &total) && counted == total);
    rig_end_client(client);
}

static void one_way_calls_are_executed_once(enum mbcf_type type, const struct node_faults *faults)
{
    struct clntmb_options options = {.type = type, .connect_ns = PATIENCE};
    const struct timeval none = {0}, patience = {.tv_sec = 30};
    char bytes[700] = {0};
    echo_data data = {sizeof(bytes), bytes};
    uint64_t one_way;
    CLIENT *client;

    node_group_faults(faults);
    client = rig_client(&options);
    one_way = rig.one_way;
    for (unsigned i = 0; i < ONE_WAY; i++)
        EXPECT(clnt_call(client, ECHO_SINK_ONE_WAY, (xdrproc_t)xdr_echo_data, &data,
                         (xdrproc_t)NULL, NULL, none) == RPC_SUCCESS);
    EXPECT(clnt_call(client, ECHO_NULL, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL,
                     patience) == RPC_SUCCESS);
    EXPECT(rig.one_way == one_way + ONE_WAY);
    rig_end_client(client);
}

static void test_exactly_once(void)
{
    static const struct node_faults *const all[] = {NULL, &some, &many};

    for (enum mbcf_type type = MBCF1; type <= MBCF3A; type++)
        for (unsigned i = 0; i < 3; i++) {
            each_size_is_executed_once(type, all[i]);
            many_under_way_are_executed_once(type, all[i], i % 2 != 0);
            one_way_calls_are_executed_once(type, all[i]);
        }
    node_group_faults(NULL);
}

/* The client gives up before the server is done: it cannot know, and says so; nothing is executed
 * twice. */
static void test_who_gives_up_says_maybe(void)
{
    for (enum mbcf_type type = MBCF1; type <= MBCF3A; type++) {
        struct clntmb_options options = {.type = type};
        const struct timeval little = {.tv_usec = 20000};
        CLIENT *client = rig_client(&options);

        before = rig.executed;
        rig.slow_ns = SECOND / 5;
        EXPECT(clnt_call(client, ECHO_NULL, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL,
                         little) == RPC_TIMEDOUT);
        EXPECT(clntmb_execution(client) == RPC_MAYBE_EXECUTED);
        rig.slow_ns = 0;
        /* the late reply is not taken for this one's */
        EXPECT(rig_echo(client, 3, 100) == RPC_SUCCESS);
        EXPECT(executed() == 2);
        rig_end_client(client);
    }
}

/* ---- calls that are sent again ---- */

/* Two calls at a time from a client that has less patience than the server takes for one. */
static void call_a_slow_server(enum mbcf_type type, enum rpc_semantics semantics)
{
    struct clntmb_options options = {.type = type,
                                     .semantics = semantics,
                                     .depth = 2,
                                     .retry_ns = SECOND / 50,
                                     .connect_ns = PATIENCE};
    CLIENT *client = rig_client(&options);
    unsigned again = 0;

    before = rig.executed;
    rig.slow_ns = SECOND / 20;
    for (unsigned i = 0; i < TRIES; i++) {
        struct rpc_call *calls[2];

        for (unsigned k = 0; k < 2; k++)
            calls[k] = rpc_async(client, ECHO_NULL, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void,
                                 NULL);
        for (unsigned k = 0; k < 2; k++)
            EXPECT(rpc_wait(calls[k], PATIENCE) == RPC_SUCCESS);
    }
    rig.slow_ns = 0;
    EXPECT(rig_echo(client, 1, 10) == RPC_SUCCESS); /* all that came before it has been served */
    EXPECT(clnt_control(client, CLGET_RETRANSMITS, &again) && again > 0);
    rig_end_client(client);
}

enum { SLOW_CALLS = 2 * TRIES + 1 };

static void test_at_most_once(void)
{
    for (enum mbcf_type type = MBCF1; type <= MBCF3A; type++) {
        call_a_slow_server(type, RPC_AT_MOST_ONCE);
        EXPECT(executed() == SLOW_CALLS);
    }
}

/* A cache of one reply: the repetition of the first call comes when its reply has given way to the
 * second's. */
static void test_at_most_once_is_as_good_as_its_cache(void)
{
    call_a_slow_server(MBCF3, RPC_AT_MOST_ONCE);
    EXPECT(executed() > SLOW_CALLS);
}

static void test_at_least_once(void)
{
    for (enum mbcf_type type = MBCF1; type <= MBCF3A; type++) {
        call_a_slow_server(type, RPC_AT_LEAST_ONCE);
        EXPECT(executed() > SLOW_CALLS);
    }
}

static void test_each_succeeds_under_faults(void)
{
    for (enum mbcf_type type = MBCF1; type <= MBCF3A; type++)
        each_size_is_executed_once(type, &some);
    node_group_faults(NULL);
}

/* ---- one process for each ---- */

static const struct {
    const char *name;
    enum rpc_semantics semantics;
    unsigned cache;
    struct test tests[2];
    unsigned count;
} modes[] = {
    {"exactly_once",
     RPC_EXACTLY_ONCE,
     0,
     {{"exactly_once", test_exactly_once}, {"maybe", test_who_gives_up_says_maybe}},
     2},
    {"at_most_once",
     RPC_AT_MOST_ONCE,
     CACHE,
     {{"at_most_once", test_at_most_once}, {"faults", test_each_succeeds_under_faults}},
     2},
    {"small_cache",
     RPC_AT_MOST_ONCE,
     1,
     {{"small_cache", test_at_most_once_is_as_good_as_its_cache}},
     1},
    {"at_least_once", RPC_AT_LEAST_ONCE, 0, {{"at_least_once", test_at_least_once}}, 1},
};

int main(int argc, char **argv)
{
    struct svcmb_options options = {.types = 1 << MBCF1 | 1 << MBCF2 | 1 << MBCF12 | 1 << MBCF3 |
                                             1 << MBCF3A};

    for (unsigned i = 0; argc == 2 && i < sizeof(modes) / sizeof(*modes); i++)
        if (strcmp(argv[1], modes[i].name) == 0) {
            options.semantics = modes[i].semantics;
            options.cache = modes[i].cache;
            rig_start(&options);
            return run_tests(modes[i].tests, modes[i].count);
        }
    fprintf(stderr, "usage: %s exactly_once|at_most_once|small_cache|at_least_once\n", argv[0]);
    return 2;
}
