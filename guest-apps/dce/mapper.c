/* SPDX-License-Identifier: Apache-2.0 */
#include "mapper.h"

#include <stdio.h>

#include "clock.h"
#include "epm.h"
#include "identity.h"
#include "record.h"
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
    struct dce_record *line = dce_record_new("binding");
    char error[32];

    dce_record_text(line, "transport", "udp");
    dce_record_integer(line, "start", (long long)start);
    dce_record_integer(line, "end", (long long)end);
    dce_record_flag(line, "ok", port != 0);
    dce_record_integer(line, "attempts", attempts);
    dce_record_integer(line, "sent", (long long)sent);
    dce_record_integer(line, "port", port);
    if (port == 0) {
        snprintf(error, sizeof(error), "status %08x", (unsigned)status);
        dce_record_text(line, "error", error);
    }
    dce_record_put(line);
}

uint16_t dce_mapper_ask(const struct dce_client_settings *settings,
                        const struct dce_uuid *interface, unsigned mapper_port, uint64_t timeout_ns)
{
    const struct dce_tower tower = {*interface, DCE_INTERFACE_VERSION, 0, settings->server.address};
    const struct dce_operation operation = {.interface = dce_epm_interface,
                                            .version = DCE_EPM_VERSION,
                                            .opnum = DCE_EPM_MAP,
                                            .semantics = DCE_IDEMPOTENT};
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
        runtime_sleep(PAUSE_NS);
    }
    put_binding(start, end, attempts, binding.machine.counts.of[DCE_COUNT_fragments], port, status);
    dce_binding_close(&binding);
    return port;
}

bool dce_mapper_has_operation(uint16_t opnum)
{
    return opnum == DCE_EPM_MAP;
}

uint32_t dce_mapper_execute(struct dce_activity *activity, const struct dce_uuid *interface,
                            uint16_t port, bool big_endian, size_t *length)
{
    const struct dce_tower registered = {*interface, DCE_INTERFACE_VERSION, port, 0};
    const struct dce_recvq *in = &activity->recvq;

    *length = in->overflow
                  ? 0
                  : dce_epm_serve(&registered, 1, in->buffer, in->length,
                                  activity->header.big_endian, activity->response, big_endian);
    return *length == 0 ? DCE_INVALID_BOUND : DCE_OK;
}
