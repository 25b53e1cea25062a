/* SPDX-License-Identifier: Apache-2.0 */
#include "stubs.h"

#include "pattern.h"

/* ca5ae9fd-9763-4fe8-aa55-b03fea95bd80, chosen at random. */
const struct dce_uuid dce_sundial_interface = {{0xca, 0x5a, 0xe9, 0xfd, 0x97, 0x63, 0x4f, 0xe8,
                                                0xaa, 0x55, 0xb0, 0x3f, 0xea, 0x95, 0xbd, 0x80}};

static const long long *sizes;
static size_t size_count;

void dce_stubs_sizes(const long long *of, size_t count)
{
    sizes = of;
    size_count = count;
}

int dce_stubs_index(long long size)
{
    for (size_t i = 0; i < size_count; i++)
        if (sizes[i] == size)
            return (int)i;
    return -1;
}

/* ---- the client's ---- */

/* `a` NULL: without arguments. */
static uint32_t call(struct dce_binding *binding, unsigned opnum, uint8_t semantics,
                     const uint8_t *a, size_t length)
{
    const struct dce_operation operation = {.interface = dce_sundial_interface,
                                            .version = DCE_INTERFACE_VERSION,
                                            .opnum = (uint16_t)opnum,
                                            .semantics = semantics};
    struct dce_arguments arguments;

    dce_marshal(&arguments, &operation, a, length);
    return dce_transmit(binding, &arguments);
}

DCE_MARKER uint32_t dce_null(struct dce_binding *binding, uint8_t semantics)
{
    return call(binding, DCE_NULL, semantics, NULL, 0);
}

DCE_MARKER uint32_t put_i(struct dce_binding *binding, uint8_t semantics, unsigned i,
                          const uint8_t *a)
{
    return call(binding, DCE_PUT + i, semantics, a, (size_t)sizes[i]);
}

DCE_MARKER uint32_t get_i(struct dce_binding *binding, uint8_t semantics, unsigned i)
{
    return call(binding, DCE_GET + i, semantics, NULL, 0);
}

DCE_MARKER uint32_t echo_i(struct dce_binding *binding, uint8_t semantics, unsigned i,
                           const uint8_t *a)
{
    return call(binding, DCE_ECHO + i, semantics, a, (size_t)sizes[i]);
}

/* ---- the server's ---- */

/* Which procedure an operation is, and of which size. */
static uint16_t family(uint16_t opnum, size_t *size)
{
    uint16_t first = opnum >= DCE_ECHO ? DCE_ECHO : opnum >= DCE_GET ? DCE_GET : DCE_PUT;

    *size = 0;
    if (opnum == DCE_NULL)
        return DCE_NULL;
    if ((size_t)(opnum - first) < size_count)
        *size = (size_t)sizes[opnum - first];
    return first;
}

bool dce_stubs_has_operation(uint16_t opnum)
{
    size_t size;

    return opnum == DCE_NULL || (size_t)(opnum - family(opnum, &size)) < size_count;
}

DCE_MARKER void dce_procedure_null(void)
{
    __asm__ volatile(""); /* or calls of it could be left out */
}

DCE_MARKER void dce_procedure_put(const uint8_t *a, size_t size)
{
    __asm__ volatile("" : : "r"(a), "r"(size));
}

DCE_MARKER void dce_procedure_get(uint32_t seq, uint8_t *a, size_t size)
{
    pattern_fill(PATTERN_OPAQUE, seq, 0, a, size);
}

DCE_MARKER void dce_procedure_echo(const uint8_t *in, uint8_t *out, size_t size)
{
    memcpy(out, in, size);
}

uint32_t dce_stubs_execute(struct dce_activity *activity, size_t *length)
{
    const struct dce_recvq *in = &activity->recvq;
    uint16_t opnum = activity->header.opnum, procedure;
    size_t size;

    procedure = family(opnum, &size);
    *length = 0;
    if (in->overflow || in->length != (procedure == DCE_PUT || procedure == DCE_ECHO ? size : 0))
        return DCE_INVALID_BOUND;
    switch (procedure) {
    case DCE_NULL:
        dce_procedure_null();
        break;
    case DCE_PUT:
        dce_procedure_put(in->buffer, size);
        break;
    case DCE_GET:
        dce_procedure_get(activity->header.seq, activity->response, size);
        *length = size;
        break;
    default:
        dce_procedure_echo(in->buffer, activity->response, size);
        *length = size;
    }
    return DCE_OK;
}

bool dce_stubs_check(const struct dce_activity *activity)
{
    return pattern_matches(PATTERN_OPAQUE, activity->header.seq, 0, activity->recvq.buffer,
                           activity->recvq.length);
}
