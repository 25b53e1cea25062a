/* SPDX-License-Identifier: Apache-2.0 */
#include "shrimp_vmmc.h"

#include <stdio.h>
#include <stdlib.h>

#include "sss/system.h"

/* How long a client that has come may keep others from coming, and how often it is looked after. */
#define HELLO_NS      UINT64_C(5000000000)
#define HELLO_TURN_NS UINT64_C(100000)
/* A store and its refusal take less. */
#define PROBE_NS UINT64_C(100000)
enum {
    PART_TURNS = 200, /* of polling, until it is looked whether a client has come: more than
                         pass until a client that calls again and again does so */
    BUSY_TURNS = 64,  /* until it is looked whether a client has come or gone, whatever they find */
};

static struct shrimp_options options_of(const struct shrimp_options *options)
{
    struct shrimp_options own = options ? *options : (struct shrimp_options){0};

    if (own.timeout_ns == 0)
        own.timeout_ns = SHRIMP_TIMEOUT_NS;
    return own;
}

static struct vmmc_pair_setup setup_of(const struct shrimp_identity *identity,
                                       const struct shrimp_options *options)
{
    struct vmmc_pair_setup setup = {
        .key = options->key,
        .hash = identity->hash,
        .pages = identity->pages,
        .use = VMMC_SHRIMPRPC,
        .notify = options->notify ? VMMC_PAIR_NOTIFY_END : VMMC_PAIR_SILENT, /* there is the flag */
        .combine = true,
        .timeout_ns = options->timeout_ns,
    };

    snprintf(setup.name, sizeof(setup.name), "shrimp.%x.%u", identity->program, identity->version);
    return setup;
}

static void *data_of(volatile uint8_t *buffer)
{
    return (void *)((uintptr_t)buffer + VMMC_PAGE);
}

/* ---- a client ---- */

/* Waits for what has not been seen yet, if it may. */
static void sleep_until(struct shrimp_binding *binding, uint64_t left_ns)
{
    struct sss_wait words[] = {{&binding->pair.notified, binding->seen, 0},
                               {&binding->pair.gone, 0, 0}};

    sss_wait(words, 2, left_ns);
    binding->seen = binding->pair.notified;
}

/* The answer may still come, and would be that of another call. */
static uint16_t end(struct shrimp_binding *binding, uint16_t status)
{
    binding->client.turns = 0;
    return binding->ended = status;
}

static uint16_t idle(struct shrimp_client *client)
{
    struct shrimp_binding *binding = client->context;
    bool gone = vmmc_pair_ended(&binding->pair);
    uint64_t now = sss_now_ns();

    if (binding->ended)
        return binding->ended;
    binding->idled++;
    if (binding->waiting_for != client->sequence) {
        binding->idled = 1;
        binding->waiting_for = client->sequence;
        binding->deadline_ns = now + binding->options.timeout_ns;
    } else if (now >= binding->deadline_ns) {
        return end(binding, SHRIMP_TIMED_OUT);
    }
    if (gone) {
        /* What it stored before has arrived before. */
        bool answered = (*client->in ^ client->sequence) < SHRIMP_NEXT;

        return answered ? SHRIMP_OK : end(binding, SHRIMP_GONE);
    }
    if (binding->options.notify)
        sleep_until(binding, binding->deadline_ns - now);
    else
        sss_yield();
    return SHRIMP_OK;
}

int shrimp_bind(struct shrimp_binding *binding, uint16_t node,
                const struct shrimp_identity *identity, const struct shrimp_options *options)
{
    struct vmmc_pair_setup setup;
    int error;

    *binding = (struct shrimp_binding){.options = options_of(options)};
    setup = setup_of(identity, &binding->options);
    error = vmmc_pair_connect(&binding->pair, node, &setup);
    if (error)
        return error;
    shrimp_client_init(&binding->client, identity->pages, data_of(binding->pair.in),
                       data_of(binding->pair.out), idle, binding);
    binding->turns = binding->options.notify ? 1 : SHRIMP_TURNS;
    binding->client.turns = binding->client.left = binding->turns;
    return 0;
}

void shrimp_unbind(struct shrimp_binding *binding)
{
    vmmc_pair_close(&binding->pair);
}

uint64_t shrimp_polls(const struct shrimp_binding *binding)
{
    const struct shrimp_client *client = &binding->client;
    uint64_t idled = binding->waiting_for == client->sequence ? binding->idled : 0;

    return (idled + 1) * binding->turns - client->left;
}

const char *shrimp_error_text(int error)
{
    return error == -(VMMC_REFUSED + VMMC_MISMATCH) ? "MISMATCH: the server's interface is another"
                                                    : vmmc_error_text(error);
}

const char *shrimp_status_text(uint16_t status)
{
    switch (status) {
    case SHRIMP_OK:
        return "success";
    case SHRIMP_BAD_PROCEDURE:
        return "the server has no such procedure";
    case SHRIMP_GARBAGE:
        return "the arguments are not the procedure's";
    case SHRIMP_NO_REPLY:
        return "the procedure returned without its results";
    case SHRIMP_TOO_LONG:
        return "longer than its bound";
    case SHRIMP_GONE:
        return "the server is no longer there";
    case SHRIMP_BAD_RESULTS:
        return "the results are not the procedure's";
    case SHRIMP_TIMED_OUT:
        return "no reply in time";
    default:
        return status <= SHRIMP_OWN_MOST ? "a status of the procedure" : "unknown status";
    }
}

/* ---- a service ---- */

static void free_peer(struct shrimp_peer *peer)
{
    free(peer->server.scratch);
    free(peer);
}

static int offer_next(struct shrimp_service *service)
{
    const struct shrimp_interface *interface = service->interface;
    struct vmmc_pair_setup setup = setup_of(&interface->identity, &service->options);
    struct shrimp_peer *peer = calloc(1, sizeof(*peer));
    int error = -SSS_ENOMEM;

    if (!peer)
        return error;
    setup.notified = &service->notified;
    setup.wanted = &service->wanted;
    setup.timeout_ns = HELLO_NS;
    if (interface->scratch)
        peer->server.scratch = malloc(interface->scratch);
    if (peer->server.scratch || !interface->scratch)
        error = vmmc_pair_offer(&peer->pair, &setup);
    if (error)
        free_peer(peer);
    else
        service->free = peer;
    return error;
}

static void admit(struct shrimp_service *service, struct shrimp_peer *peer)
{
    void *scratch = peer->server.scratch;

    shrimp_server_init(&peer->server, service->interface, data_of(peer->pair.in),
                       data_of(peer->pair.out), scratch, service->options.context);
    service->peers[service->count++] = peer;
    service->polling += peer->pair.setup.notify == VMMC_PAIR_SILENT;
    service->bound++;
}

/* Whether a client has come, accepted or not; and the next one can. */
static bool accept_next(struct shrimp_service *service)
{
    struct shrimp_peer *peer = service->free;
    int result = vmmc_pair_accept(&peer->pair);

    if (result == 0)
        return false;
    service->free = NULL;
    if (result > 0) {
        admit(service, peer);
    } else {
        service->refused++;
        service->lacking |= vmmc_pair_lacks_place(result);
        free_peer(peer);
    }
    if (service->count < SHRIMP_PEERS)
        offer_next(service);
    return true;
}

static bool dismiss_ended(struct shrimp_service *service)
{
    unsigned before = service->count;

    for (unsigned i = 0; i < service->count;) {
        struct shrimp_peer *peer = service->peers[i];

        if (!vmmc_pair_ended(&peer->pair)) {
            i++;
            continue;
        }
        service->polling -= peer->pair.setup.notify == VMMC_PAIR_SILENT;
        service->unbound++;
        service->peers[i] = service->peers[--service->count];
        vmmc_pair_close(&peer->pair);
        free_peer(peer);
    }
    /* Also where memory did not suffice before. */
    if (!service->free && service->count < SHRIMP_PEERS)
        offer_next(service);
    return service->count != before;
}

/* A client has found no place: clients whose nodes have crashed have one -> whether that is being
 * found out. */
static bool probe(struct shrimp_service *service)
{
    bool wanted = service->lacking || (!service->free && service->wanted != service->wanted_seen);

    service->lacking = false;
    service->wanted_seen = service->wanted;
    for (unsigned i = 0; wanted && i < service->count; i++)
        vmmc_pair_probe(&service->peers[i]->pair);
    return wanted;
}

/* Looks at the clients `turns` times, until one has called; that call is served at once -> who that
 * was, or NULL. A function by itself: what is between two looks delays calls. */
static __attribute__((noinline)) struct shrimp_peer **
serve_next(struct shrimp_peer **first, struct shrimp_peer **end, unsigned *turns)
{
    for (; *turns; --*turns) {
        struct shrimp_peer **peer = first;

        do {
            struct shrimp_server *server = &(*peer)->server;
            uint64_t flag = __atomic_load_n(server->in, __ATOMIC_ACQUIRE);

            if (flag != server->seen) {
                shrimp_execute(server, flag);
                return peer;
            }
        } while (++peer != end);
    }
    return NULL;
}

/* One call of each client behind the one that is found first: none keeps others waiting. */
static unsigned poll(struct shrimp_service *service, unsigned turns)
{
    struct shrimp_peer **first = service->peers, **end = first + service->count, **peer;
    unsigned left = turns, served = 0;

    if (first == end)
        return 0;
    peer = serve_next(first, end, &left);
    if (peer) {
        served = 1;
        while (++peer != end)
            served += shrimp_serve(&(*peer)->server);
    }
    service->calls += served;
    service->polls += turns - left;
    return served;
}

static void sleep_for(struct shrimp_service *service, uint64_t timeout_ns)
{
    struct sss_wait words[2 + SHRIMP_PEERS] = {{&service->notified, service->seen, 0}};
    unsigned count = 1;

    _Static_assert(2 + SHRIMP_PEERS <= SSS_WAITS, "a word for each client");
    if (service->free && service->free->pair.imported)
        timeout_ns = HELLO_TURN_NS; /* a client that has come, and will say hello */
    else if (service->free)
        words[count++] = (struct sss_wait){&service->free->pair.imported, 0, 0};
    else
        words[count++] = (struct sss_wait){&service->wanted, service->wanted_seen, 0};
    for (unsigned i = 0; i < service->count; i++)
        words[count++] = (struct sss_wait){&service->peers[i]->pair.imported, 1, 0};
    sss_wait(words, count, timeout_ns);
}

/* However busy the service is, clients come and go. Before a turn, since a client's memory is freed
 * with it; not inlined, since the turns that find a call are what a call takes. */
__attribute__((noinline, cold)) static void look_round(struct shrimp_service *service)
{
    service->busy = 0;
    if (service->free)
        accept_next(service);
    dismiss_ended(service);
    probe(service);
}

bool shrimp_turn(struct shrimp_service *service, uint64_t timeout_ns)
{
    uint64_t begun_ns = 0;

    if (++service->busy >= BUSY_TURNS)
        look_round(service);
    for (;;) {
        service->seen = service->notified;
        for (unsigned part = service->polling ? SHRIMP_TURNS / PART_TURNS : 1; part; part--) {
            if (poll(service, service->polling ? PART_TURNS : 1))
                return true;
            if (service->free && accept_next(service))
                return true;
        }
        if (dismiss_ended(service))
            return true;
        if (begun_ns == 0)
            begun_ns = sss_now_ns();
        if (timeout_ns != SSS_FOREVER && sss_now_ns() - begun_ns >= timeout_ns)
            return false;
        if (probe(service))
            sleep_for(service, PROBE_NS);
        else if (service->polling)
            sss_yield();
        else
            sleep_for(service, timeout_ns);
    }
}

int shrimp_offer(struct shrimp_service *service, const struct shrimp_interface *interface,
                 const struct shrimp_options *options)
{
    *service = (struct shrimp_service){.interface = interface, .options = options_of(options)};
    return offer_next(service);
}

void shrimp_withdraw(struct shrimp_service *service)
{
    for (unsigned i = 0; i < service->count; i++) {
        vmmc_pair_close(&service->peers[i]->pair);
        free_peer(service->peers[i]);
    }
    if (service->free) {
        vmmc_pair_close(&service->free->pair);
        free_peer(service->free);
    }
    *service = (struct shrimp_service){0};
}
