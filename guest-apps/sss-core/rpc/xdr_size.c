/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that keeps nothing: x_handy counts the bytes that encoding would take. */
#include <rpc/copies.h>
#include <rpc/xdr.h>

static bool_t count_long(XDR *xdrs, const long *value)
{
    (void)value;
    xdrs->x_handy += BYTES_PER_XDR_UNIT;
    return TRUE;
}

static bool_t count_bytes(XDR *xdrs, const char *bytes, u_int length)
{
    (void)bytes;
    xdrs->x_handy += length;
    return TRUE;
}

static u_int position(XDR *xdrs)
{
    return xdrs->x_handy;
}

static int32_t *nowhere(XDR *xdrs, u_int length)
{
    (void)xdrs;
    (void)length;
    return NULL;
}

static void destroy(XDR *xdrs)
{
    (void)xdrs;
}

bool_t xdr_measure(xdrproc_t encode, void *data, u_int *bytes)
{
    static const struct xdr_ops ops = {.x_putlong = count_long,
                                       .x_putbytes = count_bytes,
                                       .x_getpostn = position,
                                       .x_inline = nowhere,
                                       .x_destroy = destroy};
    uint64_t times = rpc_copies.times[RPC_COPY_ENCODE];
    uint64_t copied = rpc_copies.bytes[RPC_COPY_ENCODE];
    XDR xdrs;
    bool_t encoded;

    xdrs.x_op = XDR_ENCODE;
    xdrs.x_ops = &ops;
    xdrs.x_handy = 0;
    xdrs.x_depth = 0;
    xdrs.x_in_place = FALSE;
    encoded = encode(&xdrs, data);
    rpc_copies.times[RPC_COPY_ENCODE] = times; /* nothing was */
    rpc_copies.bytes[RPC_COPY_ENCODE] = copied;
    *bytes = xdrs.x_handy;
    return encoded;
}

u_long xdr_sizeof(xdrproc_t proc, void *object)
{
    u_int bytes;

    return xdr_measure(proc, object, &bytes) ? bytes : 0;
}
