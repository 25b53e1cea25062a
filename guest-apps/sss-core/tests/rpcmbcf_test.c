/* SPDX-License-Identifier: Apache-2.0 */

/* RPC over MBCF on the host: a client on one node, binder and server on another, over the wire in
 * the process. */
#include <stdlib.h>
#include <string.h>

#include "mbcf_cache.h"
#include "mbcf_client.h"
#include "pattern.h"
#include "rpcmbcf_rig.h"

enum { SERVER_NODE = 2, DEPTH = 32, ONE_WAY = 50, CACHE = 4 };

static const struct timeval patience = {.tv_sec = 20};

static void test_every_size_comes_back(enum mbcf_type type, bool ack)
{
    static const u_int sizes[] = {0,    1,    3,    4,    255,  1300, 1332,  1333,  1336,
                                  1364, 1365, 1408, 1409, 2816, 5000, 16384, 65535, 65536};
    struct clntmb_options options = {.type = type, .ack = ack};
    CLIENT *client = rig_client(&options);

    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if (type != MBCF1 || sizes[i] + 44 <= MBCF_1_MESSAGE_MOST)
            EXPECT(rig_echo(client, i, sizes[i]) == RPC_SUCCESS);
    rig_end_client(client);
}

/* Filled in while others are under way: each call has its own result. */
static void test_many_calls_under_way(enum mbcf_type type)
{
    struct clntmb_options options = {
        .type = type, .depth = DEPTH, .message_most = type == MBCF1 ? 0 : 4096};
    CLIENT *client = rig_client(&options);
    static char sent[DEPTH][1200], received[DEPTH][1200];
    echo_data data[DEPTH], back[DEPTH];
    struct rpc_call *calls[DEPTH];

    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < DEPTH; i++) {
            u_int size = 37 * i;

            pattern_fill(PATTERN_OPAQUE, i + round, 0, sent[i], size);
            data[i] = (echo_data){size, sent[i]};
            back[i] = (echo_data){0, received[i]};
            calls[i] = rpc_async(client, ECHO_OPAQUE, (xdrproc_t)xdr_echo_data, &data[i],
                                 (xdrproc_t)xdr_echo_data, &back[i]);
            EXPECT(calls[i] != NULL);
        }
        for (unsigned i = DEPTH; i-- > 0;) {
            EXPECT(rpc_wait(calls[i], 20 * SECOND) == RPC_SUCCESS);
            EXPECT(back[i].echo_data_len == 37 * i);
            EXPECT(pattern_matches(PATTERN_OPAQUE, i + round, 0, received[i], 37 * i));
        }
    }
    rig_end_client(client);
}

/* More at once than the handle's depth is refused; the others are not harmed. */
static void test_depth_is_a_limit(void)
{
    struct clntmb_options options = {.type = MBCF3, .depth = 2};
    CLIENT *client = rig_client(&options);
    struct rpc_call *calls[8];
    unsigned refused = 0;

    for (unsigned i = 0; i < 8; i++)
        calls[i] = rpc_async(client, ECHO_NULL, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void,
                             NULL);
    for (unsigned i = 0; i < 8; i++) {
        enum clnt_stat status = rpc_wait(calls[i], 20 * SECOND);

        EXPECT(status == RPC_SUCCESS || status == RPC_CANTSEND);
        refused += status == RPC_CANTSEND;
    }
    EXPECT(refused > 0 && refused < 7);
    rig_end_client(client);
}

static void test_one_way_calls_then_one_with_a_reply(enum mbcf_type type, bool ack)
{
    struct clntmb_options options = {.type = type, .ack = ack};
    CLIENT *client = rig_client(&options);
    const struct timeval none = {0};
    char byte[700] = {0};
    echo_data data = {sizeof(byte), byte};
    uint64_t before = rig.one_way;

    for (unsigned i = 0; i < ONE_WAY; i++)
        EXPECT(clnt_call(client, ECHO_SINK_ONE_WAY, (xdrproc_t)xdr_echo_data, &data,
                         (xdrproc_t)NULL, NULL, none) == RPC_SUCCESS);
    EXPECT(clnt_call(client, ECHO_NULL, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL,
                     patience) == RPC_SUCCESS);
    EXPECT(rig.one_way == before + ONE_WAY);
    rig_end_client(client);
}

static void test_what_cannot_be_sent_is_not_executed(void)
{
    struct clntmb_options options = {.type = MBCF1};
    CLIENT *client = rig_client(&options);
    static char large[RIG_PAYLOAD_MOST];
    echo_data data = {MBCF_1_MESSAGE_MOST, large}, back = {0};
    uint64_t before = rig.executed;

    EXPECT(clnt_call(client, ECHO_OPAQUE, (xdrproc_t)xdr_echo_data, &data, (xdrproc_t)xdr_echo_data,
                     &back, patience) == RPC_CANTENCODEARGS);
    EXPECT(clntmb_execution(client) == RPC_NOT_EXECUTED && rig.executed == before);
    EXPECT(clnt_call(client, 77, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, patience) ==
           RPC_PROCUNAVAIL);
    rig_end_client(client);
}

static void test_a_server_that_is_not_there(void)
{
    struct clntmb_options options = {.type = MBCF3, .connect_ns = SECOND};

    EXPECT(clntmb_create(SERVER_NODE, ECHO_PROGRAM, 99, &options) == NULL);
    EXPECT(rpc_createerr.cf_stat == RPC_PROGNOTREGISTERED);
    EXPECT(clntmb_create(SSS_NODES, ECHO_PROGRAM, ECHO_VERSION, &options) == NULL);
    EXPECT(rpc_createerr.cf_error.re_errno == MB_STATUS_BASE + MB_NO_NODE);
    options.type = MBCF3B;
    EXPECT(clntmb_create(SERVER_NODE, ECHO_PROGRAM, ECHO_VERSION, &options) == NULL);
}

/* Places are the server's: one client too many is refused, and one that goes makes room. */
static void test_places_are_given_back(void)
{
    struct clntmb_options options = {.type = MBCF3A, .connect_ns = SECOND};
    CLIENT *clients[4];
    CLIENT *late = NULL;

    for (unsigned round = 0; round < 3; round++) {
        unsigned made = 0;

        while (made < 4 && (clients[made] = rig_try_client(&options)) != NULL)
            EXPECT(rig_echo(clients[made++], round, 10) == RPC_SUCCESS);
        EXPECT(made > 0);
        late = rig_try_client(&options);
        EXPECT(late == NULL && rpc_createerr.cf_stat == RPC_FAILED);
        while (made > 0)
            rig_end_client(clients[--made]);
    }
}

/* What a type does not use any more is another one's to have, any number of times. */
static void test_types_take_one_anothers_places(void)
{
    for (unsigned round = 0; round < 100; round++) {
        struct clntmb_options options = {.type = round % 2 == 0 ? MBCF3 : MBCF3A,
                                         .connect_ns = 5 * SECOND};
        CLIENT *clients[4];

        for (unsigned i = 0; i < 4; i++)
            clients[i] = rig_client(&options);
        for (unsigned i = 0; i < 4; i++) {
            EXPECT(rig_echo(clients[i], round, 100) == RPC_SUCCESS);
            rig_end_client(clients[i]);
        }
    }
}

static int write_there(const CLIENT *client, uint64_t address)
{
    const struct clntmb *inside = client->cl_private;
    static struct mb_ack ack;
    uint64_t harm = 666;

    ack.state = MB_ACK_IDLE;
    EXPECT(mb_write(inside->ltn, address, &harm, sizeof(harm), &ack) == 0);
    return mb_ack_wait(&ack, 10 * SECOND);
}

/* Why kamesawa98 wants type 3a: who may write into the server's task may write everywhere in it. */
static void test_a_client_of_type_3_can_harm_the_server_and_one_of_3a_cannot(void)
{
    struct clntmb_options options = {.type = MBCF3A};
    CLIENT *client = rig_client(&options);

    EXPECT(write_there(client, (uintptr_t)&rig_precious) == MB_FAULT);
    EXPECT(rig_precious == 7);
    EXPECT(rig_echo(client, 1, 100) == RPC_SUCCESS);
    rig_end_client(client);
    options.type = MBCF3;
    client = rig_client(&options);
    EXPECT(write_there(client, (uintptr_t)&rig_precious) == MB_OK);
    EXPECT(rig_precious == 666);
    rig_end_client(client);
}

/* At most once is as good as its cache is large: kamesawa98 section 3.2. */
static void test_a_reply_that_has_given_way_is_not_found(void)
{
    struct mbm_cache *cache = mbm_cache_new(CACHE);
    struct mbm_caller caller = {.key = 9, .node = 1, .task = 20};
    uint32_t length = 0;

    for (caller.xid = 0; caller.xid < CACHE; caller.xid++)
        EXPECT(mbm_cache_keep(cache, &caller, &caller.xid, sizeof(caller.xid)));
    for (caller.xid = 0; caller.xid < CACHE; caller.xid++) {
        const uint32_t *reply = mbm_cache_find(cache, &caller, &length);

        EXPECT(reply != NULL && length == sizeof(*reply) && *reply == caller.xid);
    }
    EXPECT(mbm_cache_keep(cache, &caller, "new", 4));
    caller.xid = 0;
    EXPECT(mbm_cache_find(cache, &caller, &length) == NULL);
    caller.xid = 1;
    EXPECT(mbm_cache_find(cache, &caller, &length) != NULL);
    caller.key++;
    EXPECT(mbm_cache_find(cache, &caller, &length) == NULL);
    mbm_cache_free(cache);
}

/* Each part of a caller counts, also of two in one bucket. */
static void test_a_reply_is_one_callers(void)
{
    static const struct mbm_caller CALLER = {.key = 9, .node = 1, .task = 20, .xid = 5};
    struct mbm_caller others[] = {CALLER, CALLER, CALLER, CALLER};
    struct mbm_cache *cache = mbm_cache_new(CACHE);
    uint32_t length = 0;

    others[0].key += CACHE;
    others[1].node++;
    others[2].task++;
    others[3].xid += CACHE;
    EXPECT(mbm_cache_keep(cache, &CALLER, "own", 4));
    for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++)
        EXPECT_OF(mbm_cache_find(cache, &others[i], &length) == NULL, "part %u", i);
    EXPECT(mbm_cache_find(cache, &CALLER, &length) != NULL && length == 4);
    mbm_cache_free(cache);
}

static void test_all_of_each_type(void)
{
    for (enum mbcf_type type = MBCF1; type <= MBCF3A; type++) {
        test_every_size_comes_back(type, false);
        test_every_size_comes_back(type, true);
        test_many_calls_under_way(type);
        test_one_way_calls_then_one_with_a_reply(type, false);
        test_one_way_calls_then_one_with_a_reply(type, true);
    }
}

static void test_start(void)
{
    const struct svcmb_options options = {
        .types = 1 << MBCF1 | 1 << MBCF2 | 1 << MBCF12 | 1 << MBCF3 | 1 << MBCF3A, .clients = 4};

    rig_precious = 7;
    rig_start(&options);
}

int main(void)
{
    static const struct test tests[] = {
        {"start", test_start},
        {"each_type", test_all_of_each_type},
        {"depth", test_depth_is_a_limit},
        {"cannot_be_sent", test_what_cannot_be_sent_is_not_executed},
        {"not_there", test_a_server_that_is_not_there},
        {"places", test_places_are_given_back},
        {"types_and_places", test_types_take_one_anothers_places},
        {"attack", test_a_client_of_type_3_can_harm_the_server_and_one_of_3a_cannot},
        {"reply_caller", test_a_reply_is_one_callers},
        {"reply_cache", test_a_reply_that_has_given_way_is_not_found},
    };

    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
