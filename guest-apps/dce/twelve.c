/* SPDX-License-Identifier: Apache-2.0 */
#include "twelve.h"

/* 6bd58979-092c-4428-b8fa-492950ea8eab, chosen at random. */
const struct dce_uuid dce_twelve_interface = {{0x6b, 0xd5, 0x89, 0x79, 0x09, 0x2c, 0x44, 0x28, 0xb8,
                                               0xfa, 0x49, 0x29, 0x50, 0xea, 0x8e, 0xab}};

/* ---- the client's ---- */

DCE_MARKER uint32_t function_i(struct dce_binding *binding, uint8_t semantics,
                               struct dce_twelve_call *call)
{
    const struct dce_operation operation = {.interface = dce_twelve_interface,
                                            .version = DCE_INTERFACE_VERSION,
                                            .opnum = (uint16_t)call->function,
                                            .semantics = semantics};
    const struct dce_client *machine = &binding->machine;
    struct dce_arguments arguments;
    size_t length = dce_twelve_put(call->function, DCE_ARGUMENTS, &call->value, call->body,
                                   machine->settings.big_endian);
    uint32_t status;

    dce_marshal(&arguments, &operation, call->body, length);
    status = dce_transmit(binding, &arguments);
    call->whole = status == DCE_OK &&
                  dce_twelve_get(call->function, DCE_RESULTS, &call->value, binding->results,
                                 machine->recvq.length, machine->response_big_endian);
    return status;
}

/* ---- the server's ---- */

bool dce_twelve_has_operation(uint16_t opnum)
{
    return opnum >= FUNCTION_VOID && opnum <= FUNCTIONS;
}

DCE_MARKER void dce_procedure_function(enum function function, struct dce_value *value)
{
    double distance;

    if (function != FUNCTION_DISTANCE)
        return; /* its arguments are what it returns */
    function_distance(value->of.points[0], value->of.points[1], &distance);
    memcpy(&value->of.distance, &distance, sizeof(distance));
}

static bool arguments_of(const struct dce_activity *activity, struct dce_value *value)
{
    const struct dce_recvq *in = &activity->recvq;

    return !in->overflow &&
           dce_twelve_get((enum function)activity->header.opnum, DCE_ARGUMENTS, value, in->buffer,
                          in->length, activity->header.big_endian);
}

uint32_t dce_twelve_execute(struct dce_activity *activity, bool big_endian, size_t *length)
{
    enum function function = (enum function)activity->header.opnum;
    struct dce_value value;

    *length = 0;
    if (!arguments_of(activity, &value))
        return DCE_INVALID_BOUND;
    dce_procedure_function(function, &value);
    *length = dce_twelve_put(function, DCE_RESULTS, &value, activity->response, big_endian);
    return DCE_OK;
}

bool dce_twelve_check(const struct dce_activity *activity)
{
    struct dce_value value;

    return arguments_of(activity, &value) &&
           dce_twelve_is_value((enum function)activity->header.opnum, DCE_ARGUMENTS, &value);
}
