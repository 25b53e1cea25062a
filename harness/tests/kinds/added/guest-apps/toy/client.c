/* SPDX-License-Identifier: Apache-2.0 */
/* Sends toys and waits for each to come back. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps.h"
#include "clock.h"
#include "options.h"
#include "samples.h"
#include "toy.h"
#include "workload.h"

enum { PATIENCE_MS = 1000 };

static struct sockaddr_in server = {.sin_family = AF_INET};
static struct workload workload;
static char *server_text;
static int handle;
static unsigned client_port;
static uint32_t next_number;

static void read_settings(int argc, char **argv)
{
    struct options *options = options_open(argc, argv);

    server_text = strdup(options_text(options, "server", NULL));
    if (inet_pton(AF_INET, server_text, &server.sin_addr) != 1)
        samples_fail("option server: must be an address like 10.0.0.2");
    server.sin_port = htons(TOY_PORT);
    workload_read(&workload, options, TOY_HEADER_BYTES, TOY_LIMIT);
    options_check_all_taken(options);
    options_close(options);
}

static void open_socket(void)
{
    struct sockaddr_in local = {0};
    socklen_t length = sizeof(local);

    handle = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (handle < 0 || connect(handle, (const struct sockaddr *)&server, sizeof(server)) != 0 ||
        getsockname(handle, (struct sockaddr *)&local, &length) != 0)
        samples_fail("cannot reach the server: %s", strerror(errno));
    client_port = ntohs(local.sin_port);
}

static void exchange(size_t size, struct call_record *record)
{
    static uint32_t toy[TOY_LIMIT / sizeof(uint32_t) + 1];
    static uint32_t back[TOY_LIMIT / sizeof(uint32_t) + 1];
    struct pollfd watched = {.fd = handle, .events = POLLIN};

    toy[0] = htonl(TOY_NAME);
    toy[1] = htonl(++next_number);
    record->xid = next_number;
    record->has_xid = true;
    record->start_ns = clock_now_ns();
    record->ok = send(handle, toy, size, 0) == (ssize_t)size &&
                 poll(&watched, 1, PATIENCE_MS) == 1 &&
                 recv(handle, back, sizeof(back), 0) == (ssize_t)size;
    record->end_ns = clock_now_ns();
    record->ok = record->ok && memcmp(toy, back, size) == 0;
}

static void run_batch(size_t thread, size_t size, struct call_record *records)
{
    (void)thread;
    for (size_t call = 0; call < workload_batch_calls(&workload); call++)
        exchange(size, &records[call]);
}

static void put_failure(const struct call_record *record, char *text, size_t size)
{
    (void)record;
    snprintf(text, size, "it did not come back");
}

static void write_batch(size_t thread, size_t size, const struct call_record *records)
{
    json_t *header = samples_object("batch");

    json_object_update_new(
        header, json_pack("{sI ss ss sI si ss si si si}", "series", (json_int_t)workload.series,
                          "transport", "udp", "procedure", "echo", "size", (json_int_t)size,
                          "thread", (int)thread, "server", server_text, "server_port", TOY_PORT,
                          "client_port", (int)client_port, "warmup", (int)workload.warmup));
    samples_put_batch(header, records, workload_batch_calls(&workload), put_failure);
}

int toy_client_main(int argc, char **argv)
{
    static const struct workload_calls calls = {.run = run_batch, .write = write_batch};

    if (clock_select_from_environment() != 0)
        samples_fail("SUNDIAL_CLOCK: must be tsc or monotonic");
    read_settings(argc, argv);
    open_socket();
    workload_run(&workload, &calls);
    close(handle);
    return 0;
}
