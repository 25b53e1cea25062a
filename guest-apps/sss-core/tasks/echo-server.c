/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Sun RPC server over UDP, TCP, MBCF and in rings: answers each call, then checks its payload,
 * and writes its counters whenever it has been idle for a while, and before it ends itself (option
 * "die").
 */
#include <rpc/copies.h>
#include <rpc/mbcf.h>
#include <rpc/pmap_clnt.h>
#include <rpc/socket.h>
#include <rpc/vrpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "echo_service.h"
#include "options.h"
#include "sss/system.h"
#include "transport_names.h"
#include "vrpc_options.h"

enum {
    UDP = 1 << 0,
    TCP = 1 << 1,
    MBCF_SHIFT = 2, /* bits of the MBCF types follow, then those of vRPC */
    MBCF = ((1 << MBCF_TYPES) - 1) << MBCF_SHIFT,
    VRPC = 1 << (MBCF_SHIFT + MBCF_TYPES),
    VRPC_MBCF = VRPC << 1,
    PORT_LIMIT = 65535,
    DEFAULT_PORT = 1025,
    BUFFER_LIMIT = 1 << 24,
    UDP_MESSAGE_LIMIT = 65507,
    CACHE_DEFAULT = 256,
    OPTIONS_TEXT = 96,
};
#define IDLE_NS (200 * 1000000ull)

static struct {
    unsigned transports;
    enum rpc_semantics semantics;
    bool semantics_given;
    unsigned cache;
    unsigned udp_port, tcp_port;
    unsigned udp_message_size, send_buffer, recv_buffer;
    unsigned clients;
    bool registered;
    enum vrpc_wait wait;
    uint32_t deliberate_above;
    char dummy_options[OPTIONS_TEXT];
} settings;

static uint64_t own_counters[ECHO_COUNTERS];
static SVCXPRT *udp, *mbcf, *vrpc;

/* What a dummy must know of these. */
static void put_dummy_options(void)
{
    size_t program = (size_t)(echo_service.program - service_programs);
    int length = 0;

    if (program > 0)
        length = snprintf(settings.dummy_options, OPTIONS_TEXT, ",\"program\":\"%s\"",
                          service_program_names[program]);
    if (echo_service.death != ECHO_LIVES)
        snprintf(settings.dummy_options + length, OPTIONS_TEXT - (size_t)length,
                 ",\"die\":{\"when\":\"%s\",\"call\":%llu}", echo_death_names[echo_service.death],
                 (unsigned long long)echo_service.death_call);
}

static void read_settings(int argc, char **argv)
{
    static const char *const semantics[] = {"", "exactly_once", "at_most_once", "at_least_once",
                                            NULL};
    int word;

    options_open(argc, argv, "echo-server");
    settings.transports = options_words("transports", transport_names, UDP | TCP);
#ifdef SSS_LINUX
    if ((settings.transports & (UDP | TCP | VRPC)) != 0)
        options_fail("option transports: must be mbcf's; echo-server serves udp and tcp");
    if ((settings.transports >> MBCF_SHIFT & 1 << MBCF3B) != 0)
        options_fail("option transports: mbcf3b needs tasks with address spaces of their own, "
                     "which only SSS-CORE has");
#endif
    word = options_word("semantics", semantics);
    settings.semantics_given = word > 0;
    settings.semantics = word > 0 ? (enum rpc_semantics)(word - 1) : RPC_EXACTLY_ONCE;
    settings.cache = (unsigned)options_integer("reply_cache", CACHE_DEFAULT, 1, MBCF_CACHE_MOST);
    settings.udp_port = (unsigned)options_integer("udp_port", DEFAULT_PORT, 0, PORT_LIMIT);
    settings.tcp_port = (unsigned)options_integer("tcp_port", DEFAULT_PORT, 0, PORT_LIMIT);
    settings.udp_message_size = (unsigned)options_integer("udp_message_size", UDPMSGSIZE, 400,
                                                          UDP_MESSAGE_LIMIT);
    settings.send_buffer = (unsigned)options_integer("send_buffer", 0, 0, BUFFER_LIMIT);
    settings.recv_buffer = (unsigned)options_integer("recv_buffer", 0, 0, BUFFER_LIMIT);
    settings.clients = (unsigned)options_integer("clients", MBCF_CLIENTS_MOST, 1,
                                                 MBCF_CLIENTS_MOST);
    settings.registered = options_boolean("register", true);
    if ((settings.transports & (VRPC | VRPC_MBCF)) != 0)
        vrpc_options_read(&settings.wait, &settings.deliberate_above);
    echo_service_read_options();
    options_check_all_taken();
    put_dummy_options();
}

/* ---- counters ---- */

static uint64_t total(unsigned counter)
{
    uint64_t sum = own_counters[counter];
    const volatile uint64_t *dummy;

    for (unsigned i = 0; mbcf != NULL && (dummy = svcmb_dummy_words(mbcf, i)) != NULL; i++)
        sum += dummy[counter];
    return sum;
}

static int put_by_procedure(char *text, size_t size)
{
    const struct service_program *program = echo_service.program;
    int length = 0;

    for (unsigned i = program->first; i < program->end; i++)
        length += snprintf(text + length, size - (size_t)length, "%s\"%s\":%llu",
                           i == program->first ? "" : ",", program->names[i - program->first],
                           (unsigned long long)total(ECHO_COUNT_CALLS + i));
    return length;
}

static int put_copies(char *text, size_t size)
{
    static const char *const names[RPC_COPIES] = {"encode", "send", "receive", "decode", "other"};
    int length = 0;

    for (unsigned i = 0; i < RPC_COPIES; i++)
        length += snprintf(text + length, size - (size_t)length,
                           "%s\"%s\":{\"times\":%llu,\"bytes\":%llu}", i == 0 ? "" : ",", names[i],
                           (unsigned long long)total(ECHO_COUNT_COPIES + i),
                           (unsigned long long)total(ECHO_COUNT_COPIED + i));
    return length;
}

/* What only rings have: those of vRPC's clients, and how often the server has looked in vain. */
static void put_rings(char *text, size_t size)
{
    const struct svcvrpc_counters *counters;

    text[0] = '\0';
    if (vrpc == NULL)
        return;
    counters = svcvrpc_counters(vrpc);
    snprintf(text, size, ",\"rings\":{\"clients\":%llu,\"clients_gone\":%llu,\"polls\":%llu}",
             (unsigned long long)counters->clients, (unsigned long long)counters->clients_gone,
             (unsigned long long)counters->polls);
}

static uint64_t replayed(void)
{
    struct svcudp_counters counters = {0, 0};

    if (udp != NULL)
        svcudp_counters(udp, &counters);
    return counters.answered_from_cache + (mbcf != NULL ? svcmb_counters(mbcf)->replayed : 0);
}

static void report(void)
{
    char procedures[512], copies[512], rings[128];
    const struct svcmb_counters *clients = mbcf != NULL ? svcmb_counters(mbcf) : NULL;
    uint16_t node, task;

    mb_self(&node, &task);
    echo_service_note_copies();
    put_by_procedure(procedures, sizeof(procedures));
    put_copies(copies, sizeof(copies));
    put_rings(rings, sizeof(rings));
    sss_record("{\"type\":\"counters\",\"app\":\"echo-server\",\"task\":%u,\"calls\":%llu,"
               "\"executed\":%llu,\"by_procedure\":{%s},"
               "\"bad_payload\":%llu,\"undecodable\":%llu,\"bytes_in\":%llu,\"bytes_out\":%llu,"
               "\"duplicates\":%llu,"
               "\"replayed\":%llu,\"clients\":%llu,\"clients_gone\":%llu,\"copies\":{%s}%s}",
               task, (unsigned long long)total(ECHO_COUNT_CALLS_SEEN),
               (unsigned long long)total(ECHO_COUNT_EXECUTED), procedures,
               (unsigned long long)total(ECHO_COUNT_BAD_PAYLOAD),
               (unsigned long long)total(ECHO_COUNT_UNDECODABLE),
               (unsigned long long)total(ECHO_COUNT_BYTES_IN),
               (unsigned long long)total(ECHO_COUNT_BYTES_OUT),
               (unsigned long long)total(ECHO_COUNT_DUPLICATES), (unsigned long long)replayed(),
               (unsigned long long)(clients != NULL ? clients->clients : 0),
               (unsigned long long)(clients != NULL ? clients->clients_gone : 0), copies, rings);
}

/* ---- transports ---- */

static int open_socket(int protocol, unsigned port)
{
    int socket = rpc_socket(protocol, (uint16_t)port);

    if (socket < 0)
        task_fail("cannot bind port %u (error %d)", port, -socket);
    return socket;
}

static void serve_over(SVCXPRT *transport, const char *name, rpcprot_t protocol)
{
    if (transport == NULL)
        task_fail("cannot make the %s transport", name);
    if (!svc_register(transport, echo_service.program->number, echo_service.program->version,
                      echo_service_dispatch, settings.registered ? protocol : 0))
        task_fail("cannot register %s with the portmapper (is it running?)", name);
}

static void start_udp(void)
{
    if (settings.semantics == RPC_EXACTLY_ONCE && settings.semantics_given)
        options_fail("option semantics: udp gives at_least_once or at_most_once");
    udp = svcudp_bufcreate(open_socket(SSS_UDP, settings.udp_port), settings.udp_message_size,
                           settings.udp_message_size);
    serve_over(udp, "udp", IPPROTO_UDP);
    if (settings.semantics == RPC_AT_MOST_ONCE && !svcudp_enablecache(udp, settings.cache))
        task_fail("out of memory for the reply cache");
}

static void start_tcp(void)
{
    if (settings.semantics_given && settings.semantics != RPC_AT_MOST_ONCE)
        options_fail("option semantics: tcp gives at_most_once");
    serve_over(svctcp_create(open_socket(SSS_TCP, settings.tcp_port), settings.send_buffer,
                             settings.recv_buffer),
               "tcp", IPPROTO_TCP);
}

static void start_mbcf(void)
{
    struct svcmb_options options = {
        .types = (settings.transports & MBCF) >> MBCF_SHIFT,
        .semantics = settings.semantics,
        .cache = settings.cache,
        .clients = settings.clients,
        .rings = (settings.transports & VRPC_MBCF) != 0 ? vrpc : NULL,
        .dummy_task = "echo-dummy",
        .dummy_options = settings.dummy_options,
    };
    const char *error;

    mbcf = svcmb_create(&options, &error);
    if (mbcf == NULL)
        task_fail("cannot serve over MBCF: %s", error);
    if (!svcmb_register(mbcf, echo_service.program->number, echo_service.program->version,
                        echo_service_dispatch))
        task_fail("cannot register with the binder (is the portmapper running?)");
}

static void start_vrpc(void)
{
    struct svcvrpc_options options = {
        .over_vmmc = (settings.transports & VRPC) != 0,
        .over_mbcf = (settings.transports & VRPC_MBCF) != 0,
        .wait = settings.wait,
        .deliberate_above = settings.deliberate_above,
    };

    if (settings.semantics_given && settings.semantics != RPC_AT_MOST_ONCE)
        options_fail("option semantics: vrpc gives at_most_once");
    vrpc = svcvrpc_create(&options);
    if (options.over_vmmc)
        serve_over(vrpc, "vrpc", IPPROTO_VRPC);
    else if (vrpc == NULL)
        task_fail("cannot make the vrpc transport");
}

static void start_transports(void)
{
    if ((settings.transports & (UDP | TCP | VRPC)) != 0 && settings.registered)
        pmap_unset(echo_service.program->number,
                   echo_service.program->version); /* of an earlier server */
    if ((settings.transports & UDP) != 0)
        start_udp();
    if ((settings.transports & TCP) != 0)
        start_tcp();
    if ((settings.transports & (VRPC | VRPC_MBCF)) != 0)
        start_vrpc();
    if ((settings.transports & (MBCF | VRPC_MBCF)) != 0)
        start_mbcf();
}

int main(int argc, char **argv)
{
    uint64_t reported = 0;
    bool active = false;

    read_settings(argc, argv);
    echo_service.counters = own_counters;
    echo_service.last_words = report;
    echo_service_prepare((settings.transports & (UDP | TCP)) != 0);
    start_transports();
    sss_ready();
    for (;;) {
        if (svc_turn(active ? IDLE_NS : SSS_FOREVER)) {
            active = true;
            continue;
        }
        active = false;
        if (total(ECHO_COUNT_CALLS_SEEN) == reported)
            continue;
        report();
        reported = total(ECHO_COUNT_CALLS_SEEN);
    }
}
