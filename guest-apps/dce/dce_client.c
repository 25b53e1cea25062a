/* SPDX-License-Identifier: Apache-2.0 */
/* The DCE RPC client: binds, then measures one batch of calls for each size and caller. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "epm.h"
#include "identity.h"
#include "mapper.h"
#include "parameters.h"
#include "pattern.h"
#include "programs.h"
#include "record.h"
#include "stubs.h"
#include "twelve.h"
#include "workload.h"

enum {
    PORT_LIMIT = 65535,
    THREADS_LIMIT = 32,
    PING_DEFAULT_MS = 2000,
    ACK_DELAY_DEFAULT_MS = 1000,
    BROADCAST_MS = 5000,
    CANCEL_MS = 1000,
    BINDING_DEFAULT_MS = 30000,
    TIMEOUT_LIMIT_MS = 3600 * 1000,
    NS_PER_MS = 1000 * 1000,
};

enum procedure { PROCEDURE_NULL, PROCEDURE_PUT, PROCEDURE_GET, PROCEDURE_ECHO };
static const char *const procedures[] = {"null", "put", "get", "echo", NULL};

enum semantics { AT_MOST_ONCE, IDEMPOTENT, MAYBE, BROADCAST };
static const char *const semantics_words[] = {"at_most_once", "idempotent", "maybe", "broadcast",
                                              NULL};
static const uint8_t semantics_flags[] = {0, DCE_IDEMPOTENT, DCE_MAYBE,
                                          DCE_BROADCAST | DCE_IDEMPOTENT};

enum failure { FAILURE_STATUS = 1, FAILURE_REJECT, FAILURE_PAYLOAD, FAILURE_NO_PORT };

/* One thread's. */
struct caller {
    struct dce_binding binding;
    bool open;
    unsigned activities; /* that it has had */
    uint8_t *payload;
    struct dce_twelve_call function; /* of types */
    uint32_t *statuses;              /* of the calls of the latest batch */
    struct dce_counts before;        /* what was counted when it began */
};

static struct dce_parameters parameters;
static struct dce_client_settings settings;
static struct workload workload;
static enum procedure procedure;
static enum semantics semantics;
static char *server_text;
static unsigned client_port, mapper_port;
static uint64_t cancel_after_ns, binding_timeout_ns;
static struct caller *callers;
static const struct call_record *written; /* the batch whose rows are being written, */
static const uint32_t *written_statuses;  /* and its statuses */

/* ---- options ---- */

static bool calls_function(enum function function)
{
    for (size_t i = 0; i < workload.size_count; i++)
        if (workload.sizes[i] == (long long)function)
            return true;
    return false;
}

static void check_functions(void)
{
    if (procedure != PROCEDURE_NULL)
        samples_refuse("option procedure: not with functions");
    for (size_t i = 0; semantics == MAYBE && i < workload.size_count; i++)
        if (workload.sizes[i] != FUNCTION_VOID)
            samples_refuse("option semantics: \"maybe\" only with void, which returns nothing");
    if (semantics == BROADCAST && DCE_TWELVE_MOST > parameters.xmitq.fragment - DCE_HEADER &&
        calls_function(FUNCTION_STRING_ARRAY))
        samples_refuse("option functions: a broadcast of string_array takes fragments of %d bytes",
                       DCE_HEADER + DCE_TWELVE_MOST);
    dce_parameters_of_functions(&parameters);
}

static void check_sizes(void)
{
    for (size_t i = 0; procedure != PROCEDURE_NULL && i < workload.size_count; i++) {
        if (dce_stubs_index(workload.sizes[i]) < 0)
            samples_refuse("option sizes: %lld is not among interface_sizes", workload.sizes[i]);
        if (semantics == BROADCAST &&
            workload.sizes[i] > (long long)parameters.xmitq.fragment - DCE_HEADER)
            samples_refuse("option sizes: a broadcast is at most one fragment, %u bytes",
                           parameters.xmitq.fragment - DCE_HEADER);
    }
    if (procedure == PROCEDURE_NULL && (workload.size_count != 1 || workload.sizes[0] != 0))
        samples_refuse("option sizes: the procedure \"null\" has none");
    if (semantics == MAYBE && (procedure == PROCEDURE_GET || procedure == PROCEDURE_ECHO))
        samples_refuse("option semantics: \"maybe\" only with null and put, which return nothing");
    if (semantics == BROADCAST && parameters.xmitq.policy == DCE_OSF)
        samples_refuse("option policy: \"osf\" fragments what a broadcast may not");
}

static void read_settings(int argc, char **argv)
{
    struct options *options = options_open(argc, argv);

    dce_parameters_read(&parameters, options);
    server_text = strdup(options_text(options, "server", NULL));
    if (server_text == NULL || !dce_address(server_text, &settings.server.address))
        samples_refuse("option server: must be an address like 10.0.0.2");
    settings.server.port = (uint16_t)options_integer(options, "port", 0, 0, PORT_LIMIT);
    mapper_port = (unsigned)options_integer(options, "mapper_port", DCE_EPM_PORT, 1, PORT_LIMIT);
    procedure = (enum procedure)options_word(options, "procedure", procedures);
    semantics = (enum semantics)options_word(options, "semantics", semantics_words);
    if (semantics == BROADCAST && settings.server.port == 0)
        samples_refuse("option port: must be given for a broadcast");
    workload_read_functions(&workload, options);
    workload_read(&workload, options, 0, DCE_PAYLOAD_MOST);
    if (workload.threads > THREADS_LIMIT)
        samples_refuse("option threads: must be an integer from 1 to %d", THREADS_LIMIT);
    client_port = (unsigned)options_integer(options, "client_port", 0, 0, PORT_LIMIT);
    settings.ping_ns = dce_option_ms(options, "ping_ms", PING_DEFAULT_MS);
    settings.ack_delay_ns = dce_option_ms(options, "ack_delay_ms", ACK_DELAY_DEFAULT_MS);
    binding_timeout_ns = dce_option_ms(options, "binding_timeout_ms", BINDING_DEFAULT_MS);
    cancel_after_ns = (uint64_t)options_integer(options, "cancel_ms", 0, 0, TIMEOUT_LIMIT_MS) *
                      NS_PER_MS;
    if (workload.functions)
        check_functions();
    else
        check_sizes();
    options_check_all_taken(options);
    options_close(options);
    settings.xmitq = parameters.xmitq;
    settings.offer = parameters.offer;
    settings.big_endian = parameters.big_endian;
    settings.give_up_ns = parameters.give_up_ns;
    settings.broadcast_ns = (uint64_t)BROADCAST_MS * NS_PER_MS;
    settings.cancel_ns = (uint64_t)CANCEL_MS * NS_PER_MS;
    settings.space = dce_identity("space", 0);
}

/* ---- calls ---- */

static void open_caller(struct caller *caller, size_t thread)
{
    struct dce_client_settings own = settings;

    own.activity = dce_identity("activity", caller->activities++ * THREADS_LIMIT + thread);
    caller->binding.cancel_after_ns = cancel_after_ns;
    dce_binding_open(&caller->binding, &own, parameters.largest,
                     client_port == 0 ? 0 : client_port + (unsigned)thread,
                     parameters.socket_buffer, semantics == BROADCAST);
    caller->open = true;
}

static uint32_t call(struct caller *caller, unsigned index)
{
    uint8_t flags = semantics_flags[semantics];

    if (workload.functions)
        return function_i(&caller->binding, flags, &caller->function);
    switch (procedure) {
    case PROCEDURE_NULL:
        return dce_null(&caller->binding, flags);
    case PROCEDURE_PUT:
        return put_i(&caller->binding, flags, index, caller->payload);
    case PROCEDURE_GET:
        return get_i(&caller->binding, flags, index);
    default:
        return echo_i(&caller->binding, flags, index, caller->payload);
    }
}

static bool has_results(const struct caller *caller, size_t size)
{
    bool out = procedure == PROCEDURE_GET || procedure == PROCEDURE_ECHO;
    const struct dce_binding *binding = &caller->binding;
    const struct dce_client *machine = &binding->machine;

    if (semantics == MAYBE)
        return true;
    if (workload.functions)
        return caller->function.whole &&
               dce_twelve_is_value(caller->function.function, DCE_RESULTS, &caller->function.value);
    return machine->recvq.length == (out ? size : 0) &&
           pattern_matches(PATTERN_OPAQUE, machine->seq, 0, binding->results,
                           machine->recvq.length);
}

/* `size`: or the number of a function. */
static uint32_t make_call(struct caller *caller, size_t size, struct call_record *record)
{
    struct dce_client *machine = &caller->binding.machine;
    uint64_t resent = machine->counts.of[DCE_COUNT_fragments_resent];
    int index = dce_stubs_index((long long)size);
    uint32_t status;

    if (procedure == PROCEDURE_PUT || procedure == PROCEDURE_ECHO)
        pattern_fill(PATTERN_OPAQUE, machine->called ? machine->seq + 1 : settings.seq, 0,
                     caller->payload, size);
    if (workload.functions) {
        caller->function.function = (enum function)size;
        dce_twelve_value(caller->function.function, DCE_ARGUMENTS, &caller->function.value);
    }
    *record = (struct call_record){.start_ns = clock_now_ns()};
    status = call(caller, index < 0 ? 0 : (unsigned)index);
    record->end_ns = clock_now_ns();
    record->has_xid = true;
    record->xid = machine->seq;
    record->retransmits = (uint16_t)(machine->counts.of[DCE_COUNT_fragments_resent] - resent);
    if (status != DCE_OK)
        record->failure = machine->rejected ? FAILURE_REJECT : FAILURE_STATUS;
    else if (!has_results(caller, size))
        record->failure = FAILURE_PAYLOAD;
    record->ok = record->failure == 0;
    return status;
}

static void run_batch(size_t thread, size_t size, struct call_record *records)
{
    struct caller *caller = &callers[thread];

    if (caller->open && workload.connection_per_size) {
        dce_binding_close(&caller->binding);
        caller->open = false;
    }
    if (!caller->open)
        open_caller(caller, thread);
    caller->before = caller->binding.machine.counts;
    for (size_t i = 0; i < workload_batch_calls(&workload); i++)
        caller->statuses[i] = make_call(caller, size, &records[i]);
    dce_settle(&caller->binding);
}

/* Without a port nothing can be sent. */
static void fail_batch(size_t thread, size_t size, struct call_record *records)
{
    (void)size;
    callers[thread].before = callers[thread].binding.machine.counts;
    for (size_t i = 0; i < workload_batch_calls(&workload); i++) {
        uint64_t now = clock_now_ns();

        records[i] =
            (struct call_record){.start_ns = now, .end_ns = now, .failure = FAILURE_NO_PORT};
    }
}

/* ---- records ---- */

static void failure_text(const struct call_record *record, char *text, size_t size)
{
    unsigned status = written_statuses[record - written];

    if (record->failure == FAILURE_NO_PORT)
        snprintf(text, size, "no port");
    else if (record->failure == FAILURE_PAYLOAD)
        snprintf(text, size, "wrong payload");
    else if (record->failure == FAILURE_REJECT)
        snprintf(text, size, "reject %08x", status);
    else if (status == DCE_COMM_FAILURE)
        snprintf(text, size, "no answer");
    else
        snprintf(text, size, "fault %08x", status);
}

static void put_counters(struct dce_record *record, const struct caller *caller)
{
    dce_record_object(record, "counters");
    for (unsigned i = 0; i < DCE_COUNTS; i++)
        dce_record_integer(
            record, dce_count_names[i],
            (long long)(caller->binding.machine.counts.of[i] - caller->before.of[i]));
    dce_record_object_end(record);
}

static void write_batch(size_t thread, size_t size, const struct call_record *records)
{
    const struct caller *caller = &callers[thread];
    struct dce_record *header = dce_record_new("batch");
    char activity[DCE_UUID_TEXT];

    dce_uuid_text(&caller->binding.machine.settings.activity, activity);
    dce_record_integer(header, "series", workload.series);
    dce_record_text(header, "transport", "udp");
    if (workload.functions) {
        dce_record_text(header, "procedure", function_names[size - 1]);
        dce_record_integer(header, "size", (long long)function_size((enum function)size));
        dce_record_integer(header, "function", (long long)size);
    } else {
        dce_record_text(header, "procedure", procedures[procedure]);
        dce_record_integer(header, "size", (long long)size);
    }
    dce_record_integer(header, "thread", (long long)thread);
    dce_record_text(header, "server", server_text);
    dce_record_integer(header, "server_port", settings.server.port);
    dce_record_integer(header, "client_port", caller->binding.link.port);
    dce_record_integer(header, "warmup", (long long)workload.warmup);
    dce_record_text(header, "semantics", semantics_words[semantics]);
    dce_record_text(header, "byte_order", parameters.byte_order_text);
    dce_record_text(header, "policy", parameters.policy_text);
    dce_record_text(header, "activity", activity);
    dce_record_integer(header, "fragment_bytes", parameters.xmitq.fragment);
    dce_record_integer(header, "window_bytes", parameters.window_bytes);
    put_counters(header, caller);
    written = records;
    written_statuses = caller->statuses;
    dce_record_put_batch(header, records, workload_batch_calls(&workload), failure_text);
}

/* Calls that failed are results, in rows of their own; only a step that cannot measure fails. */
int dce_client_main(int argc, char **argv)
{
    static struct workload_calls calls = {.run = run_batch, .write = write_batch};

    runtime_start();
    read_settings(argc, argv);
    if (settings.server.port == 0)
        settings.server.port = dce_mapper_ask(
            &settings, workload.functions ? &dce_twelve_interface : &dce_sundial_interface,
            mapper_port, binding_timeout_ns);
    if (settings.server.port == 0)
        calls.run = fail_batch;
    callers = calloc(workload.threads, sizeof(*callers));
    for (size_t thread = 0; callers != NULL && thread < workload.threads; thread++) {
        callers[thread].payload = calloc(1, parameters.largest + 1);
        callers[thread].statuses = calloc(workload_batch_calls(&workload) + 1, sizeof(uint32_t));
        if (callers[thread].payload == NULL || callers[thread].statuses == NULL)
            samples_fail("out of memory");
        open_caller(&callers[thread], thread);
    }
    if (callers == NULL)
        samples_fail("out of memory");
    workload_run(&workload, &calls);
    for (size_t thread = 0; thread < workload.threads; thread++) {
        dce_binding_close(&callers[thread].binding);
        free(callers[thread].payload);
        free(callers[thread].statuses);
    }
    free(callers);
    free(workload.sizes);
    free(parameters.sizes);
    free(server_text);
    return 0;
}
