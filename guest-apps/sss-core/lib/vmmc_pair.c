/* SPDX-License-Identifier: Apache-2.0 */
#include "sss/vmmc_pair.h"

#include <stdio.h>
#include <string.h>

#include "sss/system.h"

enum { TURNS = 2000, OWN_WORDS = 8, STATUS_SHIFT = 32 };
#define PAUSE_NS      1000000ull
#define PAUSE_MOST_NS 100000000ull

/* What a client says of itself, at the begin of the control page; `said` is stored last. */
struct hello {
    uint64_t hash;
    uint64_t key; /* of its export */
    char name[VMMC_NAME];
    uint16_t node, task;
    uint32_t notify; /* enum vmmc_pair_notify: of what both store */
    uint64_t said;
};
_Static_assert(sizeof(struct hello) == OWN_WORDS * sizeof(uint64_t), "hello");
#define SAID_HELLO UINT64_C(0x6f6c6c6568)
/* The server's answer is one word: this, and a refusal in the upper half. */
#define SAID_WELCOME UINT64_C(0x656d6f63)

static int refusal(int reason)
{
    return -(VMMC_REFUSED + reason);
}

static bool has_passed(uint64_t deadline_ns)
{
    return sss_now_ns() >= deadline_ns;
}

static void pause_for(uint64_t ns)
{
    static const volatile uint32_t nothing;

    sss_wait_word(&nothing, 0, ns);
}

static uint64_t deadline_of(uint64_t timeout_ns)
{
    uint64_t now = sss_now_ns();

    return timeout_ns > SSS_FOREVER - now ? SSS_FOREVER : now + timeout_ns;
}

/* ---- both sides ---- */

static size_t bytes_of(const struct vmmc_pair *pair)
{
    return (size_t)(1 + pair->setup.pages) * VMMC_PAGE;
}

static void begin(struct vmmc_pair *pair, const struct vmmc_pair_setup *setup)
{
    *pair = (struct vmmc_pair){.setup = *setup, .handle = -1, .export_id = -1};
}

static int export_buffer(struct vmmc_pair *pair, const char *name, uint64_t key, uint64_t allow)
{
    struct vmmc_export_setup setup = {
        .pages = 1 + pair->setup.pages,
        .flags = VMMC_SINGLE,
        .use = pair->setup.use,
        .key = key,
        .allow = allow,
        .notified = pair->setup.notified ? pair->setup.notified : &pair->notified,
        .imported = &pair->imported,
        .wanted = pair->setup.wanted,
    };

    if (pair->setup.pages == 0 || pair->setup.pages > VMMC_PAIR_PAGES)
        return -SSS_EINVAL;
    setup.address = sss_map(NULL, bytes_of(pair), SSS_READ | SSS_WRITE);
    if (!setup.address)
        return -SSS_ENOMEM;
    pair->in = setup.address;
    memcpy(setup.name, name, VMMC_NAME);
    pair->export_id = vmmc_export(&setup);
    return pair->export_id < 0 ? pair->export_id : 0;
}

static int import_buffer(struct vmmc_pair *pair, uint16_t node, const char *name, uint64_t key,
                         uint64_t timeout_ns)
{
    struct vmmc_import_setup setup = {
        .node = node, .key = key, .timeout_ns = timeout_ns, .gone = &pair->gone};

    memcpy(setup.name, name, VMMC_NAME);
    pair->handle = vmmc_import(&setup);
    if (pair->handle < 0)
        return pair->handle;
    pair->peer = node;
    pair->du = setup.du;
    return setup.pages == 1 + pair->setup.pages ? 0 : refusal(VMMC_MISMATCH);
}

static int bind_pages(struct vmmc_pair *pair, uint8_t *at, uint32_t first, uint32_t pages,
                      unsigned flags)
{
    int error = 0;

    if (pages > 0 &&
        !vmmc_bind(at + (size_t)first * VMMC_PAGE, pages, pair->handle, first, flags, &error))
        return error;
    return 0;
}

static int bind_buffer(struct vmmc_pair *pair)
{
    /* Addresses are given once only: these stay free for the bindings. */
    uint8_t *at = sss_map(NULL, bytes_of(pair), SSS_READ);
    unsigned data = pair->setup.combine ? VMMC_COMBINED : 0;
    bool notify_end = (pair->setup.notify & VMMC_PAIR_NOTIFY_END) != 0;
    uint32_t alike = pair->setup.pages - notify_end;
    int error;

    if (!at)
        return -SSS_ENOMEM;
    sss_unmap(at, bytes_of(pair));
    error = bind_pages(pair, at, 0, 1,
                       pair->setup.notify & VMMC_PAIR_NOTIFY_CONTROL ? VMMC_NOTIFY : 0);
    if (!error)
        error = bind_pages(pair, at, 1, alike, data);
    if (!error)
        error = bind_pages(pair, at, 1 + alike, notify_end, data | VMMC_NOTIFY);
    if (!error)
        pair->out = at;
    return error;
}

void vmmc_pair_close(struct vmmc_pair *pair)
{
    if (pair->handle >= 0)
        vmmc_unimport(pair->handle);
    if (pair->export_id >= 0)
        vmmc_unexport(pair->export_id);
    if (pair->in)
        sss_unmap((void *)(uintptr_t)pair->in, bytes_of(pair));
    pair->handle = pair->export_id = -1;
    pair->in = pair->out = NULL;
}

static int failed(struct vmmc_pair *pair, int error)
{
    vmmc_pair_close(pair);
    return error;
}

/* Not inlined: without it a start is a few instructions. */
__attribute__((noinline, cold)) void vmmc_pair_send_again(const struct vmmc_pair *pair,
                                                          unsigned slot, uint32_t from, uint32_t to,
                                                          uint32_t length, bool notify)
{
    uint64_t errors;

    do {
        sss_yield();
        errors = vmmc_errors(pair->du);
        vmmc_send(pair->du, slot, from, to, length, notify);
    } while (vmmc_errors(pair->du) != errors && !vmmc_pair_ended(pair));
}

/* ---- the server ---- */

int vmmc_pair_offer(struct vmmc_pair *pair, const struct vmmc_pair_setup *setup)
{
    int error;

    begin(pair, setup);
    error = export_buffer(pair, setup->name, setup->key, ~UINT64_C(0));
    return error ? failed(pair, error) : 0;
}

static int welcome(struct vmmc_pair *pair, const struct hello *hello)
{
    bool same = hello->hash == pair->setup.hash;
    int error;

    if (!memchr(hello->name, '\0', VMMC_NAME))
        return failed(pair, -SSS_EINVAL);
    pair->peer_task = hello->task;
    pair->setup.notify = hello->notify;
    error = import_buffer(pair, hello->node, hello->name, hello->key, pair->setup.timeout_ns);
    if (!error)
        error = bind_buffer(pair);
    if (error)
        return failed(pair, error);
    *(volatile uint64_t *)pair->out = SAID_WELCOME |
                                      (same ? 0 : (uint64_t)VMMC_MISMATCH << STATUS_SHIFT);
    return same ? 1 : failed(pair, refusal(VMMC_MISMATCH));
}

int vmmc_pair_hear(struct vmmc_pair *pair)
{
    const volatile uint64_t *words = (const volatile uint64_t *)pair->in;
    uint64_t copy[OWN_WORDS];
    struct hello hello;

    if (pair->imported_ns == 0)
        pair->imported_ns = sss_now_ns();
    if (vmmc_pair_ended(pair))
        return failed(pair, refusal(VMMC_GONE));
    if (__atomic_load_n(&words[OWN_WORDS - 1], __ATOMIC_ACQUIRE) != SAID_HELLO) {
        if (sss_now_ns() - pair->imported_ns < pair->setup.timeout_ns)
            return 0;
        return failed(pair, -SSS_ETIMEDOUT);
    }
    /* Once: the client may store on. */
    for (unsigned i = 0; i < OWN_WORDS; i++)
        copy[i] = words[i];
    memcpy(&hello, copy, sizeof(hello));
    return welcome(pair, &hello);
}

/* ---- the client ---- */

static void say_hello(const struct vmmc_pair *pair, const char *name, uint64_t key)
{
    volatile uint64_t *words = (volatile uint64_t *)pair->out;
    uint64_t copy[OWN_WORDS];
    struct hello hello = {
        .hash = pair->setup.hash,
        .key = key,
        .node = SSS_INFO->node,
        .task = SSS_INFO->task,
        .notify = pair->setup.notify,
        .said = SAID_HELLO,
    };

    memcpy(hello.name, name, VMMC_NAME);
    memcpy(copy, &hello, sizeof(copy));
    for (unsigned i = 0; i < OWN_WORDS; i++)
        words[i] = copy[i];
}

static int await_welcome(struct vmmc_pair *pair, uint64_t deadline_ns)
{
    const volatile uint64_t *word = (const volatile uint64_t *)pair->in;

    for (;;) {
        /* Read first: what was said before it has arrived before it. */
        bool gone = pair->gone != 0;

        for (unsigned turn = 0; turn < TURNS; turn++) {
            uint64_t said = __atomic_load_n(word, __ATOMIC_ACQUIRE);

            if (said != 0) {
                bool right = (uint32_t)said == SAID_WELCOME;
                uint32_t status = (uint32_t)(said >> STATUS_SHIFT);

                return right && status == 0 ? 0 : refusal(VMMC_MISMATCH);
            }
        }
        if (gone)
            return refusal(VMMC_GONE);
        if (has_passed(deadline_ns))
            return -SSS_ETIMEDOUT;
        sss_yield();
    }
}

static int try_to_connect(struct vmmc_pair *pair, uint16_t node, uint64_t deadline_ns)
{
    static uint32_t made;
    uint64_t now = sss_now_ns();
    uint64_t key = now << 1 | 1;
    char name[VMMC_NAME] = "";
    int error;

    snprintf(name, sizeof(name), "client.%u.%u.%u", SSS_INFO->node, SSS_INFO->task,
             __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED));
    error = import_buffer(pair, node, pair->setup.name, pair->setup.key,
                          deadline_ns > now ? deadline_ns - now : 0);
    if (!error)
        error = export_buffer(pair, name, key, UINT64_C(1) << (node - 1));
    if (!error)
        error = bind_buffer(pair);
    if (error)
        return failed(pair, error);
    say_hello(pair, name, key);
    error = await_welcome(pair, deadline_ns);
    return error ? failed(pair, error) : 0;
}

/* A server that has just been connected to offers its next pair soon; and one whose client has left
 * takes back that pair, which seems free until then. */
static bool is_passing(int error)
{
    return error == refusal(VMMC_FULL) || error == refusal(VMMC_NO_NAME) ||
           error == refusal(VMMC_GONE);
}

int vmmc_pair_connect(struct vmmc_pair *pair, uint16_t node, const struct vmmc_pair_setup *setup)
{
    uint64_t deadline_ns = deadline_of(setup->timeout_ns), pause_ns = PAUSE_NS;

    begin(pair, setup);
    if (node == 0 || node > SSS_NODES)
        return -SSS_EINVAL;
    for (;;) {
        int error = try_to_connect(pair, node, deadline_ns);

        if (!is_passing(error) || sss_now_ns() + pause_ns >= deadline_ns)
            return error;
        pause_for(pause_ns);
        pause_ns = 2 * pause_ns < PAUSE_MOST_NS ? 2 * pause_ns : PAUSE_MOST_NS;
        begin(pair, setup);
    }
}
