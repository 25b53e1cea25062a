/* SPDX-License-Identifier: Apache-2.0 */

/* ShrimpRPC over pairs: a service as a task of node 2 in a thread, and clients of nodes 1 and 3. */
#include <pthread.h>
#include <string.h>

#include "echo_procedures.h"
#include "expect.h"
#include "pattern.h"
#include "vmmc_rig.h"

enum { NODES = 3, SERVER = 2, KEY = 5, CLIENTS_MOST = SHRIMP_PEERS + 1 };
#define MS 1000000ull

/* ---- the service ---- */

static struct {
    pthread_t thread;
    struct shrimp_service service;
    struct echo_work work;
    volatile uint32_t ready, asked, done, stuck, slept;
    volatile int calling; /* its first client seems to call this before each turn; 0: it does not */
    int error;
} server;

static const struct shrimp_options usual = {.key = KEY, .timeout_ns = 30000 * MS};

/* As if a client, which may be gone, had stored the flag of its next call. */
static void call_as_client(const struct shrimp_server *of, uint16_t procedure)
{
    uint64_t next = (of->seen / SHRIMP_NEXT + 1) * SHRIMP_NEXT | procedure;

    __atomic_store_n((uint64_t *)(uintptr_t)of->in, next, __ATOMIC_RELEASE);
}

static void *run_server(void *unused)
{
    struct shrimp_options options = usual;

    (void)unused;
    vmmc_rig_task(SERVER);
    options.context = &server.work;
    server.error = shrimp_offer(&server.service, &echo_shrimp, &options);
    __atomic_store_n(&server.ready, 1, __ATOMIC_RELEASE);
    while (!server.asked) {
        if (server.calling && server.service.count > 0)
            call_as_client(&server.service.peers[0]->server, (uint16_t)server.calling);
        if (server.stuck)
            sss_yield();
        else if (shrimp_turn(&server.service, 20 * MS))
            echo_after(&server.work);
        else
            server.slept++;
    }
    /* 1: as a program that ends itself; 2: as one that is ended. */
    if (server.asked == 1)
        shrimp_withdraw(&server.service);
    vmmc_rig_end();
    return NULL;
}

static void start_server(void)
{
    memset(&server, 0, sizeof(server));
    echo_begin(&server.work);
    pthread_create(&server.thread, NULL, run_server, NULL);
    while (!server.ready)
        sss_yield();
    EXPECT(server.error == 0);
}

static void end_server(unsigned how)
{
    server.asked = how;
    pthread_join(server.thread, NULL);
    if (how == 2)
        shrimp_withdraw(&server.service); /* its memory: the exports are not there any more */
}

static void await(const volatile uint64_t *count, uint64_t value)
{
    for (uint64_t end = sss_now_ns() + 30000 * MS; *count != value && sss_now_ns() < end;)
        sss_yield();
    EXPECT_OF(*count == value, "%llu", (unsigned long long)*count);
}

/* ---- clients ---- */

static int bind_to(struct shrimp_binding *binding, const struct shrimp_options *options)
{
    return shrimp_bind(binding, SERVER, &echo_shrimp_identity, options);
}

static void call_each(struct shrimp_binding *binding, uint32_t size, uint32_t sequence)
{
    static uint8_t sent[ECHO_LIMIT + 1];
    struct shrimp_client *client = &binding->client;
    const uint8_t *back;
    uint32_t length = 1;

    pattern_fill(PATTERN_OPAQUE, sequence, 0, sent, size);
    EXPECT(echo_null(client) == SHRIMP_OK);
    EXPECT(echo_in(client, sent, size) == SHRIMP_OK);
    EXPECT(echo_out(client, sequence, size, &back, &length) == SHRIMP_OK);
    EXPECT(length == size && pattern_matches(PATTERN_OPAQUE, sequence, 0, back, size));
    EXPECT(echo_inout(client, sent, size, &back, &length) == SHRIMP_OK);
    EXPECT(length == size && pattern_matches(PATTERN_OPAQUE, sequence, 0, back, size));
}

static void call_fixed(struct shrimp_binding *binding)
{
    uint8_t sent[64];
    const uint8_t *back;

    pattern_fill(PATTERN_OPAQUE, 9, 0, sent, sizeof(sent));
    EXPECT(echo_in_64(&binding->client, sent) == SHRIMP_OK);
    EXPECT(echo_out_64(&binding->client, &back) == SHRIMP_OK);
    EXPECT(pattern_matches(PATTERN_OPAQUE, 0, 0, back, 64));
    EXPECT(echo_inout_64(&binding->client, sent, &back) == SHRIMP_OK);
    EXPECT(pattern_matches(PATTERN_OPAQUE, 9, 0, back, 64));
}

static void test_calls(void)
{
    static const uint32_t SIZES[] = {0, 1, 7, 8, 64, 4096, 4097, ECHO_LIMIT};
    struct shrimp_binding binding;
    const uint8_t *back;
    uint32_t length;

    start_server();
    EXPECT(bind_to(&binding, &usual) == 0);
    for (uint32_t i = 0; i < sizeof(SIZES) / sizeof(*SIZES); i++)
        for (uint32_t again = 0; again < 3; again++)
            call_each(&binding, SIZES[i], again);
    call_fixed(&binding);
    EXPECT(echo_out(&binding.client, 0, ECHO_LIMIT + 1, &back, &length) == SHRIMP_GARBAGE);
    EXPECT(echo_in(&binding.client, back, ECHO_LIMIT + 1) == SHRIMP_TOO_LONG);
    EXPECT(shrimp_polls(&binding) < 1000000000);
    shrimp_unbind(&binding);
    await(&server.service.unbound, 1);
    EXPECT(server.service.calls == 8 * 3 * 4 + 4 && server.work.counts.bad_payload == 0);
    EXPECT(server.work.counts.by_procedure[ECHO_INOUT] == 24);
    end_server(1);
    EXPECT(vmmc_rig_imports() == 0 && vmmc_rig_exports() == 0);
}

static void test_a_wrong_payload_is_counted(void)
{
    static const uint8_t wrong[16] = {1, 2, 3};
    struct shrimp_binding binding;

    start_server();
    EXPECT(bind_to(&binding, &usual) == 0);
    EXPECT(echo_in(&binding.client, wrong, sizeof(wrong)) == SHRIMP_OK);
    await(&server.work.counts.bad_payload, 1);
    shrimp_unbind(&binding);
    end_server(1);
}

static void test_another_interface_is_a_mismatch(void)
{
    struct shrimp_identity other = echo_shrimp_identity;
    struct shrimp_binding binding;
    int error;

    start_server();
    other.hash ^= 1;
    error = shrimp_bind(&binding, SERVER, &other, &usual);
    EXPECT(error == -(VMMC_REFUSED + VMMC_MISMATCH));
    EXPECT(strncmp(shrimp_error_text(error), "MISMATCH", 8) == 0);
    await(&server.service.refused, 1);
    /* It goes on serving. */
    EXPECT(bind_to(&binding, &usual) == 0);
    call_each(&binding, 64, 0);
    shrimp_unbind(&binding);
    end_server(1);
}

static void test_without_a_service(void)
{
    struct shrimp_options options = {.key = KEY, .timeout_ns = 20 * MS};
    struct shrimp_binding binding;

    EXPECT(bind_to(&binding, &options) == -(VMMC_REFUSED + VMMC_NO_NAME));
    EXPECT(vmmc_rig_exports() == 0);
}

static void test_no_reply_in_time(void)
{
    struct shrimp_options options = {.key = KEY, .timeout_ns = 50 * MS};
    struct shrimp_binding binding;

    for (unsigned notify = 0; notify < 2; notify++) {
        options.notify = notify != 0;
        start_server();
        EXPECT(bind_to(&binding, &options) == 0);
        call_each(&binding, 8, 0);
        server.stuck = 1;
        while (echo_null(&binding.client) == SHRIMP_OK)
            continue; /* until the service has seen that it is stuck */
        EXPECT(echo_null(&binding.client) == SHRIMP_TIMED_OUT);
        server.stuck = 0;
        EXPECT(echo_null(&binding.client) == SHRIMP_TIMED_OUT); /* never again */
        shrimp_unbind(&binding);
        end_server(1);
    }
}

struct ender {
    pthread_t thread;
    uint64_t after_ns;
};

static void *run_ender(void *argument)
{
    static const volatile uint32_t nothing;
    struct ender *ender = argument;

    sss_wait_word(&nothing, 0, ender->after_ns);
    server.asked = 2;
    return NULL;
}

static void test_the_server_ends_in_a_call(void)
{
    struct shrimp_options options = usual;
    struct shrimp_binding binding;

    for (unsigned notify = 0; notify < 2; notify++) {
        struct ender ender = {.after_ns = 20 * MS};
        uint16_t status;

        options.notify = notify != 0;
        start_server();
        EXPECT(bind_to(&binding, &options) == 0);
        server.stuck = 1;
        pthread_create(&ender.thread, NULL, run_ender, &ender);
        do
            status = echo_null(&binding.client);
        while (status == SHRIMP_OK);
        EXPECT_OF(status == SHRIMP_GONE, "%x", status);
        EXPECT(echo_null(&binding.client) == SHRIMP_GONE);
        pthread_join(ender.thread, NULL);
        end_server(2);
        shrimp_unbind(&binding);
        EXPECT(vmmc_rig_imports() == 0 && vmmc_rig_exports() == 0);
    }
}

static void test_notifications_in_place_of_polling(void)
{
    struct shrimp_options options = usual;
    struct shrimp_binding binding, other;
    uint32_t slept;

    start_server();
    options.notify = true;
    EXPECT(bind_to(&binding, &options) == 0);
    for (uint32_t i = 0; i < 20; i++)
        call_each(&binding, 4096, i);
    slept = server.slept;
    EXPECT(server.service.polling == 0);
    for (uint64_t end = sss_now_ns() + 2000 * MS; server.slept == slept && sss_now_ns() < end;)
        sss_yield();
    EXPECT(server.slept > slept);
    /* One of each kind. */
    EXPECT(bind_to(&other, &usual) == 0);
    for (uint32_t i = 0; i < 20; i++) {
        call_each(&binding, 64, i);
        call_each(&other, 64, i);
    }
    shrimp_unbind(&other);
    await(&server.service.unbound, 1);
    EXPECT(server.service.polling == 0);
    call_each(&binding, 64, 0);
    shrimp_unbind(&binding);
    await(&server.service.unbound, 2);
    end_server(1);
}

struct caller {
    pthread_t thread;
    uint16_t node;
    unsigned calls;
    int error;
    bool right;
};

static void *run_caller(void *argument)
{
    struct caller *caller = argument;
    struct shrimp_binding binding;
    uint8_t sent[64];
    const uint8_t *back;
    uint32_t length;

    vmmc_rig_task(caller->node);
    caller->error = bind_to(&binding, &usual);
    caller->right = caller->error == 0;
    for (uint32_t i = 0; caller->right && i < caller->calls; i++) {
        pattern_fill(PATTERN_OPAQUE, i + caller->node, 0, sent, sizeof(sent));
        caller->right = echo_inout(&binding.client, sent, sizeof(sent), &back, &length) == 0 &&
                        length == sizeof(sent) && memcmp(back, sent, length) == 0;
    }
    vmmc_rig_end(); /* without a word */
    return NULL;
}

static void test_many_clients(void)
{
    static struct caller callers[CLIENTS_MOST];

    start_server();
    /* More than there are places: the last ones come when others have ended. */
    for (unsigned i = 0; i < CLIENTS_MOST; i++) {
        callers[i] = (struct caller){.node = i % 2 ? 1 : 3, .calls = 20};
        pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]);
    }
    for (unsigned i = 0; i < CLIENTS_MOST; i++) {
        pthread_join(callers[i].thread, NULL);
        EXPECT_OF(callers[i].right, "%u: %d", i, callers[i].error);
    }
    await(&server.service.unbound, CLIENTS_MOST);
    EXPECT(server.service.calls == 20 * CLIENTS_MOST && server.work.counts.bad_payload == 0);
    end_server(1);
}

static void *run_crashing(void *argument)
{
    const struct shrimp_options *options = argument;
    struct shrimp_binding binding;

    vmmc_rig_task(1);
    for (unsigned i = 0; i < SHRIMP_PEERS; i++) {
        EXPECT(bind_to(&binding, options) == 0);
        EXPECT(echo_null(&binding.client) == SHRIMP_OK);
        vmmc_rig_crash();
        shrimp_unbind(&binding);
    }
    return NULL;
}

/* Their places are had when a client wants one. */
static void test_clients_whose_nodes_crash(void)
{
    struct shrimp_options options = usual;
    struct shrimp_binding binding;
    pthread_t thread;

    for (unsigned notify = 0; notify < 2; notify++) {
        options.notify = notify != 0;
        start_server();
        pthread_create(&thread, NULL, run_crashing, &options);
        pthread_join(thread, NULL);
        await(&server.service.bound, SHRIMP_PEERS);
        EXPECT(server.service.unbound == 0);
        EXPECT(bind_to(&binding, &options) == 0);
        call_each(&binding, 64, 0);
        EXPECT(server.service.unbound == SHRIMP_PEERS);
        shrimp_unbind(&binding);
        end_server(1);
        EXPECT(vmmc_rig_imports() == 0 && vmmc_rig_exports() == 0);
    }
}

/* It still finds the clients that come and go. */
static void test_a_service_that_is_never_idle(void)
{
    const volatile uint64_t *calls = &server.service.calls;
    struct shrimp_binding busy, other;
    struct shrimp_options options = usual;

    for (unsigned notify = 0; notify < 2; notify++) {
        options.notify = notify != 0;
        start_server();
        EXPECT(bind_to(&busy, &options) == 0);
        EXPECT(echo_null(&busy.client) == SHRIMP_OK);
        server.calling = ECHO_IN;
        while (*calls < 2)
            sss_yield();
        EXPECT(bind_to(&other, &options) == 0);
        call_each(&other, 64, 0);
        shrimp_unbind(&other);
        await(&server.service.unbound, 1);
        /* And lets go of one whose call it has just served. */
        shrimp_unbind(&busy);
        await(&server.service.unbound, 2);
        end_server(1);
        EXPECT(vmmc_rig_imports() == 0 && vmmc_rig_exports() == 0);
    }
}

/* Flags and lengths as no stub stores them. */
static void test_a_client_of_ill_will(void)
{
    struct shrimp_binding binding, other;

    start_server();
    EXPECT(bind_to(&binding, &usual) == 0);
    EXPECT(shrimp_call(&binding.client, 0x7fff) == SHRIMP_BAD_PROCEDURE);
    binding.client.out[-1] = ECHO_LIMIT + 1;
    EXPECT(shrimp_call(&binding.client, ECHO_IN) == SHRIMP_GARBAGE);
    binding.client.out[-1] = UINT32_MAX;
    EXPECT(shrimp_call(&binding.client, ECHO_INOUT) == SHRIMP_GARBAGE);
    for (unsigned i = 1; i < ECHO_SHRIMP_PAGES * VMMC_PAGE / 8; i++)
        binding.client.out[-(int)i] = UINT64_MAX;
    for (uint16_t procedure = 1; procedure < 4; procedure++)
        EXPECT(shrimp_call(&binding.client, procedure) == SHRIMP_GARBAGE);
    /* Others are served as before. */
    EXPECT(bind_to(&other, &usual) == 0);
    call_each(&other, 100, 1);
    shrimp_unbind(&other);
    shrimp_unbind(&binding);
    end_server(1);
}

int main(void)
{
    static const struct test tests[] = {
        {"calls", test_calls},
        {"a_wrong_payload_is_counted", test_a_wrong_payload_is_counted},
        {"another_interface_is_a_mismatch", test_another_interface_is_a_mismatch},
        {"without_a_service", test_without_a_service},
        {"no_reply_in_time", test_no_reply_in_time},
        {"the_server_ends_in_a_call", test_the_server_ends_in_a_call},
        {"notifications_in_place_of_polling", test_notifications_in_place_of_polling},
        {"many_clients", test_many_clients},
        {"clients_whose_nodes_crash", test_clients_whose_nodes_crash},
        {"a_service_that_is_never_idle", test_a_service_that_is_never_idle},
        {"a_client_of_ill_will", test_a_client_of_ill_will},
    };

    vmmc_rig_start(NODES);
    vmmc_rig_task(1);
    return run_tests(tests, sizeof(tests) / sizeof(*tests));
}
