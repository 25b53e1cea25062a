/* SPDX-License-Identifier: Apache-2.0 */

/* Pairs on the rig: a server's task of node 2 and tasks of nodes 1 and 3 in threads. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "expect.h"
#include "sss/vmmc_pair.h"
#include "vmmc_rig.h"

enum { NODES = 3, SERVER = 2, PAGES = 3, HASH = 0x1234, KEY = 77, DATA = VMMC_PAGE };
#define SECOND 1000000000ull

static struct vmmc_pair_setup usual(void)
{
    return (struct vmmc_pair_setup){.name = "shrimp.1.1",
                                    .key = KEY,
                                    .hash = HASH,
                                    .pages = PAGES,
                                    .use = VMMC_SHRIMPRPC,
                                    .combine = true,
                                    .timeout_ns = 5 * SECOND};
}

/* A client that connects, in a thread of its own: as a task of its own. */
struct client {
    pthread_t thread;
    struct vmmc_pair_setup setup;
    struct vmmc_pair pair;
    uint16_t node, server;
    int task, error;
    bool stays; /* the task lives until `released` */
    volatile uint32_t connected, released;
};

static void *run_client(void *argument)
{
    struct client *client = argument;

    client->task = vmmc_rig_task(client->node);
    client->error = vmmc_pair_connect(&client->pair, client->server, &client->setup);
    __atomic_store_n(&client->connected, 1, __ATOMIC_RELEASE);
    while (client->stays && !client->released)
        sss_yield();
    vmmc_rig_end();
    return NULL;
}

static void start_client(struct client *client)
{
    client->node = client->node ? client->node : 1;
    client->server = client->server ? client->server : SERVER;
    pthread_create(&client->thread, NULL, run_client, client);
}

static int end_client(struct client *client)
{
    client->released = 1;
    pthread_join(client->thread, NULL);
    return client->error;
}

static int accept_until(struct vmmc_pair *pair)
{
    int result = 0;

    for (uint64_t end = sss_now_ns() + 10 * SECOND; result == 0 && sss_now_ns() < end;) {
        result = vmmc_pair_accept(pair);
        sss_yield();
    }
    return result;
}

static void open_pair(struct vmmc_pair *pair, const struct vmmc_pair_setup *setup,
                      struct client *client)
{
    vmmc_pair_offer(pair, setup);
    start_client(client);
    EXPECT(accept_until(pair) == 1);
    while (!client->connected)
        sss_yield();
}

static bool is_left_nothing(void)
{
    return vmmc_rig_exports() == 0 && vmmc_rig_imports() == 0;
}

static void test_stores_appear_at_the_other_side(void)
{
    struct client client = {.setup = usual(), .stays = true};
    struct vmmc_pair_setup setup = usual();
    struct vmmc_pair pair;
    volatile uint64_t *there, *back;

    EXPECT(vmmc_pair_offer(&pair, &setup) == 0);
    EXPECT(vmmc_pair_accept(&pair) == 0);
    start_client(&client);
    EXPECT(accept_until(&pair) == 1);
    while (!client.connected)
        sss_yield();
    EXPECT(client.error == 0);
    EXPECT(pair.peer == 1 && pair.peer_task == client.task && client.pair.peer == SERVER);
    there = (volatile uint64_t *)(client.pair.out + DATA);
    back = (volatile uint64_t *)(pair.out + DATA + 2 * VMMC_PAGE + 8);
    EXPECT(*(volatile uint64_t *)(pair.in + DATA) == 0);
    *there = 0x1122334455667788;
    *back = 99;
    EXPECT(*(volatile uint64_t *)(pair.in + DATA) == 0x1122334455667788);
    EXPECT(*(volatile uint64_t *)(client.pair.in + DATA + 2 * VMMC_PAGE + 8) == 99);
    /* Behind the words of the pair itself the control page is the user's. */
    for (unsigned i = VMMC_PAIR_OWN; i < VMMC_PAGE; i++)
        EXPECT(pair.in[i] == 0 && client.pair.in[i] == 0);
    EXPECT(pair.notified == 0 && client.pair.notified == 0);
    EXPECT(!vmmc_pair_ended(&pair) && !vmmc_pair_ended(&client.pair));
    end_client(&client);
    EXPECT(vmmc_pair_ended(&pair));
    *back = 100; /* goes nowhere, and is not a fault */
    vmmc_pair_close(&pair);
    EXPECT(is_left_nothing());
}

static void test_who_closes_ends_it_for_the_other(void)
{
    struct client client = {.setup = usual(), .stays = true};
    struct vmmc_pair_setup setup = usual();
    struct vmmc_pair pair;

    open_pair(&pair, &setup, &client);
    vmmc_pair_close(&pair);
    EXPECT(vmmc_pair_ended(&client.pair));
    end_client(&client);
    EXPECT(is_left_nothing());
}

static void test_another_hash_is_a_mismatch(void)
{
    struct client client = {.setup = usual()};
    struct vmmc_pair_setup setup = usual();
    struct vmmc_pair pair;

    client.setup.hash++;
    vmmc_pair_offer(&pair, &setup);
    start_client(&client);
    EXPECT(accept_until(&pair) == -(VMMC_REFUSED + VMMC_MISMATCH));
    EXPECT(end_client(&client) == -(VMMC_REFUSED + VMMC_MISMATCH));
    EXPECT(is_left_nothing());
}

static void test_another_size_is_a_mismatch(void)
{
    struct client client = {.setup = usual()};
    struct vmmc_pair_setup setup = usual();
    struct vmmc_pair pair;

    client.setup.pages++;
    vmmc_pair_offer(&pair, &setup);
    start_client(&client);
    EXPECT(end_client(&client) == -(VMMC_REFUSED + VMMC_MISMATCH));
    EXPECT(accept_until(&pair) == -(VMMC_REFUSED + VMMC_GONE));
    EXPECT(is_left_nothing());
}

static void test_another_key_is_refused_at_once(void)
{
    struct client client = {.setup = usual()};
    struct vmmc_pair_setup setup = usual();
    struct vmmc_pair pair;

    client.setup.key++;
    vmmc_pair_offer(&pair, &setup);
    start_client(&client);
    EXPECT(end_client(&client) == -(VMMC_REFUSED + VMMC_NO_KEY));
    EXPECT(vmmc_pair_accept(&pair) == 0);
    vmmc_pair_close(&pair);
    EXPECT(is_left_nothing());
}

static void test_without_a_server_it_ends_in_time(void)
{
    struct client unnamed = {.setup = usual()}, mute = {.setup = usual()};
    struct vmmc_pair_setup setup = usual();
    struct vmmc_pair pair;

    unnamed.setup.timeout_ns = SECOND / 50;
    start_client(&unnamed);
    EXPECT(end_client(&unnamed) == -(VMMC_REFUSED + VMMC_NO_NAME));
    mute.setup.timeout_ns = SECOND / 50;
    vmmc_pair_offer(&pair, &setup); /* and never accepts */
    start_client(&mute);
    EXPECT(end_client(&mute) == -SSS_ETIMEDOUT);
    EXPECT(vmmc_pair_accept(&pair) == -(VMMC_REFUSED + VMMC_GONE));
    EXPECT(is_left_nothing());
}

static void test_two_clients_get_a_pair_each(void)
{
    struct client clients[2] = {{.setup = usual(), .stays = true},
                                {.setup = usual(), .node = 3, .stays = true}};
    struct vmmc_pair_setup setup = usual();
    struct vmmc_pair pairs[2];

    for (unsigned i = 0; i < 2; i++)
        start_client(&clients[i]);
    for (unsigned i = 0; i < 2; i++) {
        vmmc_pair_offer(&pairs[i], &setup);
        EXPECT(accept_until(&pairs[i]) == 1);
    }
    EXPECT(pairs[0].peer != pairs[1].peer);
    for (unsigned i = 0; i < 2; i++)
        EXPECT(end_client(&clients[i]) == 0);
    for (unsigned i = 0; i < 2; i++)
        vmmc_pair_close(&pairs[i]);
    EXPECT(is_left_nothing());
}

/* Who imports a pair and says nothing, or nonsense, does not keep others from the server. */
static void test_a_client_of_ill_will(void)
{
    static const uint64_t SAID[] = {0, UINT64_C(0x6f6c6c6568)};
    struct vmmc_pair_setup setup = usual();
    struct vmmc_pair pair;

    setup.timeout_ns = SECOND / 100;
    for (unsigned i = 0; i < 2; i++) {
        struct vmmc_import_setup import = {.node = SERVER, .key = KEY, .name = "shrimp.1.1"};
        uint64_t *out;
        int error, handle;

        vmmc_pair_offer(&pair, &setup);
        handle = vmmc_import(&import);
        EXPECT(handle >= 0);
        out = vmmc_bind(NULL, 1, handle, 0, 0, &error);
        memset(out, 0xa5, 56);
        out[7] = SAID[i];
        error = accept_until(&pair);
        EXPECT(error == (SAID[i] ? -SSS_EINVAL : -SSS_ETIMEDOUT));
        vmmc_unimport(handle);
    }
    EXPECT(is_left_nothing());
}

static void test_notifications(void)
{
    static volatile uint32_t notified;
    struct client client = {.setup = usual(), .stays = true};
    struct vmmc_pair_setup setup = usual();
    struct vmmc_pair pair;
    uint32_t before;

    setup.notified = &notified;
    client.setup.notify = VMMC_PAIR_NOTIFY_CONTROL | VMMC_PAIR_NOTIFY_END;
    open_pair(&pair, &setup, &client);
    before = notified;
    EXPECT(before == 8); /* the hello */
    *(volatile uint64_t *)(client.pair.out + VMMC_PAIR_OWN) = 1;
    EXPECT(notified == before + 1);
    *(volatile uint64_t *)(client.pair.out + DATA) = 1;
    EXPECT(notified == before + 1);
    *(volatile uint64_t *)(client.pair.out + DATA + PAGES * VMMC_PAGE - 8) = 5;
    EXPECT(notified == before + 2);
    EXPECT(*(volatile uint64_t *)(pair.in + DATA + PAGES * VMMC_PAGE - 8) == 5);
    EXPECT(sss_wait_word(&notified, before, SECOND) == 0);
    EXPECT(client.pair.notified == 1); /* the welcome: the server does as the client */
    *(volatile uint64_t *)(pair.out + DATA + PAGES * VMMC_PAGE - 8) = 5;
    EXPECT(client.pair.notified == 2);
    end_client(&client);
    vmmc_pair_close(&pair);
    EXPECT(is_left_nothing());
}

static void test_deliberate_updates(void)
{
    static _Alignas(VMMC_PAGE) uint8_t source[2 * VMMC_PAGE];
    struct client client = {.setup = usual(), .stays = true};
    struct vmmc_pair_setup setup = usual();
    struct vmmc_pair pair;
    int slot;

    memset(source, 0x5a, sizeof(source));
    open_pair(&pair, &setup, &client);
    slot = vmmc_source(pair.handle, source, 2);
    EXPECT(slot == 0);
    vmmc_send(pair.du, (unsigned)slot, 8, DATA + 24, 4096, true);
    EXPECT(vmmc_pending(pair.du) == 0 && vmmc_errors(pair.du) == 0);
    EXPECT(client.pair.in[DATA + 23] == 0 && client.pair.in[DATA + 24] == 0x5a);
    EXPECT(client.pair.in[DATA + 24 + 4095] == 0x5a && client.pair.in[DATA + 24 + 4096] == 0);
    EXPECT(client.pair.notified == 1);
    vmmc_send(pair.du, (unsigned)slot, 8192, DATA, 8, false);
    vmmc_send(pair.du, (unsigned)slot, 0, (1 + PAGES) * VMMC_PAGE, 8, false);
    EXPECT(vmmc_errors(pair.du) == 2);
    end_client(&client);
    vmmc_pair_close(&pair);
    EXPECT(is_left_nothing());
}

/* Other tasks have all transfers of the node: what is sent waits for a place, or for the end. */
static void test_deliberate_updates_that_find_no_place(void)
{
    static _Alignas(VMMC_PAGE) uint8_t source[VMMC_PAGE];
    struct client client = {.setup = usual(), .stays = true};
    struct vmmc_pair_setup setup = usual();
    struct vmmc_pair pair;
    int slot;

    memset(source, 0x5a, sizeof(source));
    open_pair(&pair, &setup, &client);
    slot = vmmc_source(pair.handle, source, 1);
    for (unsigned refused = 0; refused < 4; refused++) {
        uint64_t errors = vmmc_errors(pair.du);
        unsigned notified = client.pair.notified;

        vmmc_rig_busy(refused);
        vmmc_pair_send(&pair, (unsigned)slot, 0, DATA + refused * 8, 8, true);
        EXPECT(vmmc_errors(pair.du) == errors + refused);
        EXPECT(client.pair.in[DATA + refused * 8 + 7] == 0x5a);
        EXPECT(client.pair.in[DATA + refused * 8 + 8] == 0);
        EXPECT(client.pair.notified == notified + 1);
    }
    end_client(&client);
    vmmc_rig_busy(1000);
    vmmc_pair_send(&pair, (unsigned)slot, 0, DATA, 8, true);
    vmmc_rig_busy(0);
    vmmc_pair_close(&pair);
    EXPECT(is_left_nothing());
}

int main(void)
{
    static const struct test tests[] = {
        {"stores_appear_at_the_other_side", test_stores_appear_at_the_other_side},
        {"who_closes_ends_it_for_the_other", test_who_closes_ends_it_for_the_other},
        {"another_hash_is_a_mismatch", test_another_hash_is_a_mismatch},
        {"another_size_is_a_mismatch", test_another_size_is_a_mismatch},
        {"another_key_is_refused_at_once", test_another_key_is_refused_at_once},
        {"without_a_server_it_ends_in_time", test_without_a_server_it_ends_in_time},
        {"two_clients_get_a_pair_each", test_two_clients_get_a_pair_each},
        {"a_client_of_ill_will", test_a_client_of_ill_will},
        {"notifications", test_notifications},
        {"deliberate_updates", test_deliberate_updates},
        {"deliberate_updates_that_find_no_place", test_deliberate_updates_that_find_no_place},
    };

    vmmc_rig_start(NODES);
    vmmc_rig_task(SERVER);
    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
