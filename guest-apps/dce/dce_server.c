/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DCE RPC server. The main thread is the listener: it receives for our interface and for the
 * endpoint mapper, and hands complete calls to executor threads, which run the procedures and send
 * the responses. All of a machine happens under one lock, but procedures, which have none.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "epm.h"
#include "identity.h"
#include "mapper.h"
#include "parameters.h"
#include "programs.h"
#include "record.h"
#include "stubs.h"
#include "twelve.h"

enum {
    DEFAULT_PORT = 1027,
    PORT_LIMIT = 65535,
    ACTIVITIES = 128,
    MAPPER_ACTIVITIES = 16,
    EXECUTORS_DEFAULT = 8,
    EXECUTORS_LIMIT = 32,
    WORK_LIMIT_MS = 3600 * 1000,
    HALF_S = 60,
    IDLE_S = 300,
    NS_PER_MS = 1000 * 1000,
    REPORT_NS = 200 * NS_PER_MS, /* after so long without a packet */
    CANCEL_CHECK_NS = 5 * NS_PER_MS,
};

/* An interface with its socket and its table. */
struct service {
    struct dce_server machine;
    struct dce_link link;
    struct dce_interface interface;
    bool is_mapper;
};
enum { OWN, MAPPER, SERVICES };

/* What this server is for: one of the interfaces of sundial.idl and twelve.idl. */
enum interface { SIZES, FUNCTIONS_OF_TYPES };
static const char *const interfaces[] = {"sizes", "functions", NULL};

struct run {
    struct service *service;
    struct dce_activity *activity;
};

static struct dce_parameters parameters;
static enum interface interface;
static unsigned port, mapper_port, executor_count;
static uint64_t work_ns;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static struct service services[SERVICES] = {{.link = {.handle = -1}}, {.link = {.handle = -1}}};
/* Calls whose procedures are to run: never more than there are activities. */
static struct run runs[ACTIVITIES + MAPPER_ACTIVITIES];
static unsigned run_first, run_count;
static bool ending;

static long long executed, mapped, bad_payload, undecodable;
static long long by_opnum[UINT16_MAX + 1];

/* ---- options ---- */

static void read_settings(int argc, char **argv)
{
    struct options *options = options_open(argc, argv);

    dce_parameters_read(&parameters, options);
    port = (unsigned)options_integer(options, "port", DEFAULT_PORT, 1, PORT_LIMIT);
    mapper_port = (unsigned)options_integer(options, "mapper_port", 0, 0, PORT_LIMIT);
    executor_count = (unsigned)options_integer(options, "executors", EXECUTORS_DEFAULT, 1,
                                               EXECUTORS_LIMIT);
    work_ns = (uint64_t)options_integer(options, "work_ms", 0, 0, WORK_LIMIT_MS) * NS_PER_MS;
    interface = (enum interface)options_word(options, "interface", interfaces);
    if (interface == FUNCTIONS_OF_TYPES)
        dce_parameters_of_functions(&parameters);
    options_check_all_taken(options);
    options_close(options);
}

static const struct dce_uuid *interface_uuid(void)
{
    return interface == SIZES ? &dce_sundial_interface : &dce_twelve_interface;
}

static void open_service(struct service *service, bool is_mapper)
{
    struct dce_server_settings settings = {
        .xmitq = parameters.xmitq,
        .offer = parameters.offer,
        .big_endian = parameters.big_endian,
        .boot_time = dce_boot_time(),
        /* Servers of one machine are told apart by their ports. */
        .conv_activity = dce_identity("conv", is_mapper ? mapper_port : port),
        .interfaces = &service->interface,
        .interface_count = 1,
        .activities = 1,
        .request_bytes = is_mapper ? DCE_EPM_BODY : parameters.largest,
        .response_bytes = is_mapper ? DCE_EPM_BODY : parameters.largest,
        .give_up_ns = parameters.give_up_ns,
        .half_ns = HALF_S * DCE_SECOND_NS,
        .idle_ns = IDLE_S * DCE_SECOND_NS,
    };
    size_t each = dce_server_memory(&settings), places = runtime_memory() / each;
    size_t most = is_mapper ? MAPPER_ACTIVITIES : ACTIVITIES;
    uint8_t *memory;

    /* First: what comes while the table is made waits. */
    dce_link_open(&service->link, is_mapper ? mapper_port : port, parameters.socket_buffer, false);
    settings.activities = (unsigned)(places < most ? places : most);
    memory = runtime_table(dce_server_memory(&settings));
    if (memory == NULL || places == 0)
        samples_fail("out of memory: an activity takes %zu bytes", each);
    service->is_mapper = is_mapper;
    service->interface =
        is_mapper
            ? (struct dce_interface){dce_epm_interface, DCE_EPM_VERSION, dce_mapper_has_operation}
            : (struct dce_interface){*interface_uuid(), DCE_INTERFACE_VERSION,
                                     interface == SIZES ? dce_stubs_has_operation
                                                        : dce_twelve_has_operation};
    dce_server_init(&service->machine, &settings, memory);
}

/* ---- actions, under the lock ---- */

static void act(struct service *service)
{
    struct dce_activity *activity;
    struct dce_packet packet;

    for (;;)
        switch (dce_server_next(&service->machine, clock_now_ns(), &packet, &activity)) {
        case DCE_SEND:
            xmitq_send(&packet, runtime_send, &service->link);
            break;
        case DCE_RUN:
            runs[(run_first + run_count++) % (sizeof(runs) / sizeof(*runs))] =
                (struct run){service, activity};
            pthread_cond_signal(&work);
            break;
        default:
            return;
        }
}

/* ---- executors ---- */

/* What a procedure of this server takes, unless its client cancels it. */
static bool work_for(const struct dce_activity *activity)
{
    uint64_t end = clock_now_ns() + work_ns;
    bool cancelled = false;

    while (!cancelled && clock_now_ns() < end) {
        runtime_sleep(CANCEL_CHECK_NS);
        pthread_mutex_lock(&lock);
        cancelled = activity->cancel_pending;
        pthread_mutex_unlock(&lock);
    }
    return !cancelled;
}

static uint32_t execute(const struct run *run, size_t *length)
{
    *length = 0;
    if (run->service->is_mapper)
        return dce_mapper_execute(run->activity, interface_uuid(), (uint16_t)port,
                                  parameters.big_endian, length);
    if (work_ns != 0 && !work_for(run->activity))
        return DCE_CANCELLED;
    if (interface == SIZES)
        return dce_stubs_execute(run->activity, length);
    return dce_twelve_execute(run->activity, parameters.big_endian, length);
}

/* The response has been sent, and the next request is not looked at yet: what is checked is not
 * part of the time that is measured. */
static void count(const struct run *run, uint32_t status)
{
    if (run->service->is_mapper) {
        mapped++;
        return;
    }
    executed++;
    by_opnum[run->activity->header.opnum]++;
    if (status == DCE_INVALID_BOUND)
        undecodable++;
    else if (!(interface == SIZES ? dce_stubs_check : dce_twelve_check)(run->activity))
        bad_payload++;
}

static void *run_executor(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!ending) {
        struct run run;
        uint32_t status;
        size_t length;

        if (run_count == 0) {
            pthread_cond_wait(&work, &lock);
            continue;
        }
        run = runs[run_first];
        run_first = (run_first + 1) % (sizeof(runs) / sizeof(*runs));
        run_count--;
        pthread_mutex_unlock(&lock);
        status = execute(&run, &length);
        pthread_mutex_lock(&lock);
        dce_server_result(&run.service->machine, clock_now_ns(), run.activity, status, length);
        act(run.service);
        count(&run, status);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- the listener ---- */

static void report(void)
{
    struct dce_record *line = dce_record_new("counters");
    const struct dce_server *machine = &services[OWN].machine;
    char text[8];

    pthread_mutex_lock(&lock);
    dce_record_integer(line, "port", port);
    dce_record_integer(line, "executed", executed);
    dce_record_object(line, "by_opnum");
    for (unsigned i = 0; i <= UINT16_MAX; i++)
        if (by_opnum[i] != 0) {
            snprintf(text, sizeof(text), "%u", i);
            dce_record_integer(line, text, by_opnum[i]);
        }
    dce_record_object_end(line);
    dce_record_integer(line, "bad_payload", bad_payload);
    dce_record_integer(line, "undecodable", undecodable);
    dce_record_integer(line, "kept", dce_server_kept(machine));
    dce_record_integer(line, "mapped", mapped);
    for (unsigned i = 0; i < DCE_COUNTS; i++)
        dce_record_integer(line, dce_count_names[i], (long long)machine->counts.of[i]);
    pthread_mutex_unlock(&lock);
    dce_record_put(line);
}

/* Everything that has come; whether anything had. */
static bool receive(struct service *service)
{
    struct dce_peer from;
    struct dce_pdu pdu;
    long length = runtime_receive(&service->link, &from);

    if (length < 0)
        return false;
    pthread_mutex_lock(&lock);
    if (dce_pdu_decode(service->link.datagram, (size_t)length, &pdu))
        server_machine_packet(&service->machine, clock_now_ns(), &from, &pdu);
    else
        service->machine.counts.of[DCE_COUNT_malformed]++;
    act(service);
    pthread_mutex_unlock(&lock);
    return true;
}

static uint64_t check_deadlines(unsigned count_of)
{
    uint64_t deadline = DCE_NEVER, now = clock_now_ns();

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count_of; i++) {
        if (dce_server_deadline(&services[i].machine) <= now) {
            dce_server_timeout(&services[i].machine, now);
            act(&services[i]);
        }
        deadline = dce_earlier(deadline, dce_server_deadline(&services[i].machine));
    }
    pthread_mutex_unlock(&lock);
    return deadline;
}

static void listen_until_told_to_end(unsigned count_of)
{
    struct dce_link *links[SERVICES] = {&services[OWN].link, &services[MAPPER].link};
    uint64_t report_at = DCE_NEVER;

    while (!runtime_is_to_end()) {
        uint64_t deadline = check_deadlines(count_of);
        unsigned ready = runtime_wait(links, count_of, dce_earlier(deadline, report_at), true);
        bool active = false;

        for (unsigned i = 0; i < count_of; i++)
            if ((ready >> i & 1) != 0)
                active = receive(&services[i]) || active;
        if (active) {
            report_at = dce_later(clock_now_ns(), REPORT_NS);
        } else if (clock_now_ns() >= report_at) {
            report();
            report_at = DCE_NEVER;
        }
    }
}

int dce_server_main(int argc, char **argv)
{
    pthread_t executors[EXECUTORS_LIMIT];
    unsigned count_of;

    runtime_start();
    runtime_hold_end();
    read_settings(argc, argv);
    count_of = mapper_port == 0 ? OWN + 1 : SERVICES;
    for (unsigned i = count_of; i-- > 0;) /* the mapper's table is the small one */
        open_service(&services[i], i == MAPPER);
    for (unsigned i = 0; i < executor_count; i++)
        if (pthread_create(&executors[i], NULL, run_executor, NULL) != 0)
            samples_fail("cannot start executor %u", i);
    runtime_ready();
    listen_until_told_to_end(count_of);
    report();
    pthread_mutex_lock(&lock);
    ending = true;
    pthread_cond_broadcast(&work);
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < executor_count; i++)
        pthread_join(executors[i], NULL);
    for (unsigned i = 0; i < count_of; i++)
        dce_link_close(&services[i].link);
    free(parameters.sizes);
    return 0;
}
