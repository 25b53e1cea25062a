/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ShrimpRPC server: the procedures of shrimp/echo.x. It polls while a client is bound that
 * polls itself; else it sleeps. Counters are written whenever it has been idle for a while after
 * calls, and when it ends itself (option "die").
 */
#include "echo_procedures.h"
#include "options.h"
#include "sss/system.h"

#define IDLE_NS (200 * 1000000ull)

static struct shrimp_service service;
static struct echo_work work;

static void report(void)
{
    const uint64_t *calls = work.counts.by_procedure;

    sss_record("{\"type\":\"counters\",\"app\":\"shrimp-server\",\"calls\":%llu,\"executed\":%llu,"
               "\"by_procedure\":{\"null\":%llu,\"in\":%llu,\"out\":%llu,\"inout\":%llu,"
               "\"in_64\":%llu,\"out_64\":%llu,\"inout_64\":%llu},"
               "\"bad_payload\":%llu,\"overtaken\":%llu,\"bytes_in\":%llu,\"bytes_out\":%llu,"
               "\"polls\":%llu,\"clients\":%llu,\"clients_refused\":%llu,\"clients_gone\":%llu}",
               (unsigned long long)service.calls, (unsigned long long)service.calls,
               (unsigned long long)calls[ECHO_NULL], (unsigned long long)calls[ECHO_IN],
               (unsigned long long)calls[ECHO_OUT], (unsigned long long)calls[ECHO_INOUT],
               (unsigned long long)calls[ECHO_IN_64], (unsigned long long)calls[ECHO_OUT_64],
               (unsigned long long)calls[ECHO_INOUT_64],
               (unsigned long long)work.counts.bad_payload,
               (unsigned long long)work.counts.overtaken, (unsigned long long)work.counts.bytes_in,
               (unsigned long long)work.counts.bytes_out, (unsigned long long)service.polls,
               (unsigned long long)service.bound, (unsigned long long)service.refused,
               (unsigned long long)service.unbound);
}

/* ---- an end within a call: its client gets no reply ---- */

static uint64_t calls_left;
static shrimp_procedure table[ECHO_PROCEDURES];
static struct shrimp_interface interface;

static uint16_t count_down(struct shrimp_server *server)
{
    if (--calls_left == 0) {
        report();
        sss_exit(0);
    }
    return echo_shrimp.table[(uint16_t)server->seen](server);
}

static void read_settings(int argc, char **argv)
{
    interface = echo_shrimp;
    options_open(argc, argv, "shrimp-server");
    if (options_enter("die")) {
        calls_left = (uint64_t)options_integer("call", 1, 1, 0x7fffffff);
        options_leave();
        for (unsigned i = 0; i < ECHO_PROCEDURES; i++)
            table[i] = count_down;
        interface.table = table;
    }
    options_check_all_taken();
}

int main(int argc, char **argv)
{
    const struct shrimp_options options = {.context = &work};
    uint64_t reported = 0;
    int error;

    read_settings(argc, argv);
    echo_begin(&work);
    error = shrimp_offer(&service, &interface, &options);
    if (error)
        task_fail("cannot offer the service: %s", shrimp_error_text(error));
    sss_ready();
    for (;;) {
        if (shrimp_turn(&service, service.calls != reported ? IDLE_NS : SSS_FOREVER)) {
            echo_after(&work);
            continue;
        }
        report();
        reported = service.calls;
    }
}
