/* SPDX-License-Identifier: Apache-2.0 */
#include "mapper.h"

#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "clock.h"
#include "epm.h"
#include "identity.h"
#include "samples.h"
#include "stubs.h"

enum { PAUSE_NS = 100 * 1000 * 1000 };

/* One question; the port, or 0 and why. */
static uint16_t ask(struct dce_binding *binding, const struct dce_arguments *arguments,
                    uint32_t *status)
{
    uint16_t port = 0;

    *status = dce_transmit(binding, arguments);
    if (*status == DCE_OK && !dce_epm_get_map(binding->results, binding->machine.recvq.length,
                                              binding->machine.response_big_endian, &port, status))
        *status = DCE_PROTOCOL_ERROR;
    return *status == DCE_OK ? port : 0;
}

static void put_binding(uint64_t start, uint64_t end, unsigned attempts, uint64_t sent,
                        uint16_t port, uint32_t status)
{
    json_t *line = samples_object("binding");
    char error[32];

    json_object_update_new(line, json_pack("{ss sI sI sb si sI si}", "transport", "udp", "start",
                                           (json_int_t)start, "end", (json_int_t)end, "ok",
                                           port != 0, "attempts", (int)attempts, "sent",
                                           (json_int_t)sent, "port", (int)port));
    if (port == 0) {
        snprintf(error, sizeof(error), "status %08x", (unsigned)status);
        json_object_set_new(line, "error", json_string(error));
    }
    samples_put(line);
}

uint16_t dce_mapper_ask(const struct dce_client_settings *settings, unsigned mapper_port,
                        uint64_t timeout_ns)
{
    const struct dce_tower tower = {dce_sundial_interface, DCE_SUNDIAL_VERSION, 0,
                                    settings->server.address};
    const struct dce_operation operation = {.interface = dce_epm_interface,
                                            .version = DCE_EPM_VERSION,
                                            .opnum = DCE_EPM_MAP,
                                            .semantics = DCE_IDEMPOTENT};
    static const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct dce_client_settings own = *settings;
    struct dce_binding binding = {.cancel_after_ns = 0};
    struct dce_arguments arguments;
    uint64_t start = clock_now_ns(), end = start;
    uint8_t body[DCE_EPM_BODY];
    unsigned attempts = 0;
    uint32_t status;
    uint16_t port = 0;

    own.activity = dce_identity("mapper", 0);
    own.server.port = (uint16_t)mapper_port;
    dce_binding_open(&binding, &own, DCE_EPM_BODY, 0, 0, false);
    dce_marshal(&arguments, &operation, body, dce_epm_put_map(&tower, body, own.big_endian));
    for (;;) {
        port = ask(&binding, &arguments, &status);
        end = clock_now_ns();
        attempts++;
        if (port != 0 || end - start >= timeout_ns)
            break;
        nanosleep(&pause, NULL);
    }
    put_binding(start, end, attempts, binding.machine.counts.of[DCE_COUNT_fragments], port, status);
    dce_binding_close(&binding);
    return port;
}

bool dce_mapper_has_operation(uint16_t opnum)
{
    return opnum == DCE_EPM_MAP;
}

uint32_t dce_mapper_execute(struct dce_activity *activity, uint16_t port, bool big_endian,
                            size_t *length)
{
    const struct dce_tower registered = {dce_sundial_interface, DCE_SUNDIAL_VERSION, port, 0};
    const struct dce_recvq *in = &activity->recvq;

    *length = in->overflow
                  ? 0
                  : dce_epm_serve(&registered, 1, in->buffer, in->length,
                                  activity->header.big_endian, activity->response, big_endian);
    return *length == 0 ? DCE_INVALID_BOUND : DCE_OK;
}
