/* SPDX-License-Identifier: Apache-2.0 */
/* A stream over memory: x_private is the place, x_handy the bytes that are left. */
#include <rpc/xdr.h>

static bool_t advance(XDR *xdrs, u_int length, char **place)
{
    if (length > xdrs->x_handy)
        return FALSE;
    *place = xdrs->x_private;
    xdrs->x_private = *place + length;
    xdrs->x_handy -= length;
    return TRUE;
}

static bool_t get_long(XDR *xdrs, long *value)
{
    uint32_t word;
    char *place;

    if (!advance(xdrs, sizeof(word), &place))
        return FALSE;
    memcpy(&word, place, sizeof(word));
    *value = (int32_t)__builtin_bswap32(word);
    return TRUE;
}

static bool_t put_long(XDR *xdrs, const long *value)
{
    uint32_t word = __builtin_bswap32((uint32_t)*value);
    char *place;

    if (!advance(xdrs, sizeof(word), &place))
        return FALSE;
    memcpy(place, &word, sizeof(word));
    return TRUE;
}

static bool_t get_bytes(XDR *xdrs, char *bytes, u_int length)
{
    char *place;

    if (!advance(xdrs, length, &place))
        return FALSE;
    memcpy(bytes, place, length);
    return TRUE;
}

static bool_t put_bytes(XDR *xdrs, const char *bytes, u_int length)
{
    char *place;

    if (!advance(xdrs, length, &place))
        return FALSE;
    memcpy(place, bytes, length);
    return TRUE;
}

static u_int position(XDR *xdrs)
{
    return (u_int)((char *)xdrs->x_private - xdrs->x_base);
}

static bool_t set_position(XDR *xdrs, u_int to)
{
    u_int size = position(xdrs) + xdrs->x_handy;

    if (to > size)
        return FALSE;
    xdrs->x_private = xdrs->x_base + to;
    xdrs->x_handy = size - to;
    return TRUE;
}

static int32_t *in_place(XDR *xdrs, u_int length)
{
    char *place;

    if ((uintptr_t)xdrs->x_private % sizeof(int32_t) != 0 || !advance(xdrs, length, &place))
        return NULL;
    return (int32_t *)(void *)place;
}

static void destroy(XDR *xdrs)
{
    (void)xdrs;
}

static u_int left(XDR *xdrs)
{
    return xdrs->x_handy;
}

const struct xdr_ops xdrmem_ops = {get_long,     put_long, get_bytes, put_bytes, position,
                                   set_position, in_place, destroy,   left};

void xdrmem_create(XDR *xdrs, char *memory, u_int size, enum xdr_op op)
{
    xdrs->x_op = op;
    xdrs->x_ops = &xdrmem_ops;
    xdrs->x_private = xdrs->x_base = memory;
    xdrs->x_handy = size;
    xdrs->x_depth = 0;
    xdrs->x_in_place = FALSE;
}
