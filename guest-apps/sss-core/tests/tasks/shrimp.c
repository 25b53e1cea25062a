/* SPDX-License-Identifier: Apache-2.0 */
/* A client of shrimp-server: the case is in the options, what happened goes to the records. */
#include <stdio.h>
#include <string.h>

#include "echo_shrimp.h"
#include "json.h"
#include "shrimp_vmmc.h"
#include "sss/system.h"

enum { CALLS = 100 };
#define MS UINT64_C(1000000)

static uint64_t peer;
static char name[SSS_NAME];
static struct shrimp_binding binding, other;
static struct shrimp_client *const client = &binding.client;
static const struct shrimp_options patient = {.timeout_ns = 1000 * MS};
static uint8_t payload[64];
static const uint8_t *back;
static uint32_t length;

static void tell(const char *what, long long value)
{
    sss_record("{\"type\":\"lab\",\"case\":\"%s\",\"what\":\"%s\",\"value\":%lld}", name, what,
               value);
}

static int bind_to(struct shrimp_binding *to, const struct shrimp_options *options)
{
    return shrimp_bind(to, (uint16_t)peer, &echo_shrimp_identity, options);
}

/* Calls one behind the other, without a look at the clock between them. */
#define COUNT(what, call)                                                                          \
    do {                                                                                           \
        unsigned wrong = (call) != SHRIMP_OK;                                                      \
        uint64_t begun_ns = sss_now_ns();                                                          \
        for (unsigned i = 0; i < CALLS; i++)                                                       \
            wrong |= (call);                                                                       \
        tell(what, (long long)(sss_now_ns() - begun_ns));                                          \
        tell("wrong", wrong);                                                                      \
    } while (0)

static void budget(void)
{
    tell("bind", bind_to(&binding, &patient));
    COUNT("null", echo_null(client));
    COUNT("in_64", echo_in_64(client, payload));
    COUNT("out_64", echo_out_64(client, &back));
    COUNT("inout_64", echo_inout_64(client, payload, &back));
    COUNT("in", echo_in(client, payload, sizeof(payload)));
    COUNT("inout", echo_inout(client, payload, sizeof(payload), &back, &length));
    shrimp_unbind(&binding);
}

static void mismatch(void)
{
    struct shrimp_identity another = echo_shrimp_identity;

    another.hash ^= 1;
    tell("another hash", shrimp_bind(&binding, (uint16_t)peer, &another, &patient));
    another = echo_shrimp_identity;
    another.pages++;
    tell("more pages", shrimp_bind(&binding, (uint16_t)peer, &another, &patient));
    another = echo_shrimp_identity;
    another.version++;
    tell("another version", shrimp_bind(&binding, (uint16_t)peer, &another,
                                        &(struct shrimp_options){.timeout_ns = MS}));
    tell("the same", bind_to(&binding, &patient));
    tell("null", echo_null(client));
    shrimp_unbind(&binding);
}

/* The server ends within a call. */
static void dies(bool notify)
{
    struct shrimp_options options = patient;
    uint64_t begun_ns;
    int calls = 0, status;

    options.notify = notify;
    tell("bind", bind_to(&binding, &options));
    do {
        begun_ns = sss_now_ns();
        status = echo_null(client);
        calls++;
    } while (status == SHRIMP_OK);
    tell("call", calls);
    tell("status", status);
    tell("ns", (long long)(sss_now_ns() - begun_ns));
    tell("next", echo_null(client));
    shrimp_unbind(&binding);
    tell("again", bind_to(&binding, &(struct shrimp_options){.timeout_ns = MS}));
}

static int say_nothing(struct vmmc_import_setup *import)
{
    *import = (struct vmmc_import_setup){.node = (uint16_t)peer, .timeout_ns = 100 * MS};
    snprintf(import->name, sizeof(import->name), "shrimp.%x.%u", echo_shrimp_identity.program,
             echo_shrimp_identity.version);
    return vmmc_import(import);
}

/* What no stub stores; and who takes the free pair and says nothing. */
static void hostile(void)
{
    struct vmmc_import_setup import;
    int handle, error;
    uint64_t *page;

    tell("bind", bind_to(&binding, &patient));
    tell("no such procedure", shrimp_call(client, 0x7fff));
    client->out[-1] = UINT32_MAX;
    tell("in", shrimp_call(client, ECHO_IN));
    for (int i = 1; i < ECHO_SHRIMP_PAGES * SHRIMP_PAGE / 8; i++)
        client->out[-i] = UINT64_MAX;
    tell("out", shrimp_call(client, ECHO_OUT));
    tell("inout", shrimp_call(client, ECHO_INOUT));
    handle = say_nothing(&import);
    tell("import", handle >= 0);
    tell("busy", bind_to(&other, &(struct shrimp_options){.timeout_ns = 10 * MS}));
    tell("meanwhile", echo_null(client));
    vmmc_unimport(handle);
    tell("afterwards", bind_to(&other, &patient));
    shrimp_unbind(&other);
    /* A hello of nonsense. */
    handle = say_nothing(&import);
    page = vmmc_bind(NULL, 1, handle, 0, 0, &error);
    if (page) {
        memset(page, 0xa5, VMMC_PAGE);
        page[7] = UINT64_C(0x6f6c6c6568);
    }
    vmmc_unimport(handle);
    tell("after nonsense", bind_to(&other, &patient));
    tell("null", echo_null(&other.client));
    shrimp_unbind(&other);
    shrimp_unbind(&binding);
}

/* As many clients as a service has places for; then this node restarts, and they notify no node. */
static void crash(bool notify)
{
    static struct shrimp_binding bindings[SHRIMP_PEERS];
    static const volatile uint32_t nothing;
    struct shrimp_options options = patient;
    unsigned served = 0;

    options.notify = notify;
    for (unsigned i = 0; i < SHRIMP_PEERS; i++)
        served += bind_to(&bindings[i], &options) == 0 &&
                  echo_null(&bindings[i].client) == SHRIMP_OK;
    tell("served", served);
    sss_ready();
    sss_wait_word(&nothing, 0, SSS_FOREVER);
}

int main(int argc, char **argv)
{
    struct json_value options, value;

    (void)argc;
    for (unsigned i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i * 7); /* the pattern, or the server looks at it again and again */
    json_check(argv[1], strlen(argv[1]), &options);
    if (json_field(&options, "case", &value))
        json_text(&value, name, sizeof(name));
    if (json_field(&options, "peer", &value))
        json_uint(&value, &peer);
    if (strcmp(name, "budget") == 0)
        budget();
    else if (strcmp(name, "mismatch") == 0)
        mismatch();
    else if (strcmp(name, "dies") == 0 || strcmp(name, "dies-notify") == 0)
        dies(name[4] != '\0');
    else if (strcmp(name, "crash") == 0 || strcmp(name, "crash-notify") == 0)
        crash(name[5] != '\0');
    else
        hostile();
    return 0;
}
