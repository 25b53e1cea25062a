/* SPDX-License-Identifier: Apache-2.0 */
/* The filters of XDR (RFC 4506); section numbers are of that document. */
#include <rpc/copies.h>
#include <rpc/rpc.h>

struct rpc_copies rpc_copies;

bool_t xdr_void(void)
{
    return TRUE;
}

/* ---- integers: 32 bits on the wire (4.1, 4.2); a value that does not fit the type is refused both
 * ways ---- */

static void put_word_at(void *place, int32_t value)
{
    uint32_t word = __builtin_bswap32((uint32_t)value);

    memcpy(place, &word, sizeof(word));
}

static int32_t get_word_at(const void *place)
{
    uint32_t word;

    memcpy(&word, place, sizeof(word));
    return (int32_t)__builtin_bswap32(word);
}

static bool_t code_word_of_stream(XDR *xdrs, int32_t *value)
{
    long word = *value;

    if (xdrs->x_op == XDR_ENCODE)
        return XDR_PUTLONG(xdrs, &word);
    if (xdrs->x_op == XDR_FREE)
        return TRUE;
    if (!XDR_GETLONG(xdrs, &word))
        return FALSE;
    *value = (int32_t)word;
    return TRUE;
}

/* Most words lie in memory: without a call. */
static inline bool_t code_word(XDR *xdrs, int32_t *value)
{
    char *place = xdrs->x_private;

    if (xdrs->x_ops != &xdrmem_ops || xdrs->x_op == XDR_FREE || xdrs->x_handy < BYTES_PER_XDR_UNIT)
        return code_word_of_stream(xdrs, value);
    if (xdrs->x_op == XDR_ENCODE)
        put_word_at(place, *value);
    else
        *value = get_word_at(place);
    xdrs->x_private = place + BYTES_PER_XDR_UNIT;
    xdrs->x_handy -= BYTES_PER_XDR_UNIT;
    return TRUE;
}

bool_t xdr_int32_t(XDR *xdrs, int32_t *value)
{
    return code_word(xdrs, value);
}

bool_t xdr_uint32_t(XDR *xdrs, uint32_t *value)
{
    return code_word(xdrs, (int32_t *)value);
}

bool_t xdr_u_int32_t(XDR *xdrs, uint32_t *value)
{
    return code_word(xdrs, (int32_t *)value);
}

bool_t xdr_int(XDR *xdrs, int *value)
{
    return code_word(xdrs, value);
}

bool_t xdr_u_int(XDR *xdrs, u_int *value)
{
    return code_word(xdrs, (int32_t *)value);
}

bool_t xdr_enum(XDR *xdrs, enum_t *value)
{
    return code_word(xdrs, value);
}

/* Narrower and wider types travel as a word, which must be the same after the way through the type.
 */
#define FILTER_BY_WORD(name, type, word_type)                                                      \
    bool_t name(XDR *xdrs, type *value)                                                            \
    {                                                                                              \
        word_type word = (word_type)*value;                                                        \
                                                                                                   \
        if (xdrs->x_op == XDR_FREE)                                                                \
            return TRUE;                                                                           \
        if (xdrs->x_op == XDR_ENCODE && (type)word != *value)                                      \
            return FALSE;                                                                          \
        if (!code_word(xdrs, (int32_t *)&word))                                                    \
            return FALSE;                                                                          \
        if (xdrs->x_op == XDR_ENCODE)                                                              \
            return TRUE;                                                                           \
        if ((word_type)(type)word != word)                                                         \
            return FALSE;                                                                          \
        *value = (type)word;                                                                       \
        return TRUE;                                                                               \
    }

FILTER_BY_WORD(xdr_short, short, int32_t)
FILTER_BY_WORD(xdr_u_short, u_short, uint32_t)
FILTER_BY_WORD(xdr_long, long, int32_t)
FILTER_BY_WORD(xdr_u_long, u_long, uint32_t)
FILTER_BY_WORD(xdr_int8_t, int8_t, int32_t)
FILTER_BY_WORD(xdr_uint8_t, uint8_t, uint32_t)
FILTER_BY_WORD(xdr_int16_t, int16_t, int32_t)
FILTER_BY_WORD(xdr_uint16_t, uint16_t, uint32_t)
FILTER_BY_WORD(xdr_char, char, int32_t)
FILTER_BY_WORD(xdr_u_char, u_char, uint32_t)

/* 4.4 */
bool_t xdr_bool(XDR *xdrs, bool_t *value)
{
    int32_t word = *value ? 1 : 0;

    if (xdrs->x_op == XDR_FREE)
        return TRUE;
    if (!code_word(xdrs, &word) || (word != 0 && word != 1))
        return FALSE;
    *value = word;
    return TRUE;
}

/* 4.5: the more significant word first */
bool_t xdr_uint64_t(XDR *xdrs, uint64_t *value)
{
    uint32_t high = (uint32_t)(*value >> 32);
    uint32_t low = (uint32_t)*value;

    if (xdrs->x_op == XDR_FREE)
        return TRUE;
    if (!xdr_uint32_t(xdrs, &high) || !xdr_uint32_t(xdrs, &low))
        return FALSE;
    *value = (uint64_t)high << 32 | low;
    return TRUE;
}

bool_t xdr_int64_t(XDR *xdrs, int64_t *value)
{
    return xdr_uint64_t(xdrs, (uint64_t *)value);
}

bool_t xdr_u_int64_t(XDR *xdrs, uint64_t *value)
{
    return xdr_uint64_t(xdrs, value);
}

bool_t xdr_hyper(XDR *xdrs, quad_t *value)
{
    return xdr_uint64_t(xdrs, (uint64_t *)value);
}

bool_t xdr_u_hyper(XDR *xdrs, u_quad_t *value)
{
    return xdr_uint64_t(xdrs, (uint64_t *)value);
}

bool_t xdr_quad_t(XDR *xdrs, quad_t *value)
{
    return xdr_uint64_t(xdrs, (uint64_t *)value);
}

bool_t xdr_u_quad_t(XDR *xdrs, u_quad_t *value)
{
    return xdr_uint64_t(xdrs, (uint64_t *)value);
}

bool_t xdr_longlong_t(XDR *xdrs, quad_t *value)
{
    return xdr_uint64_t(xdrs, (uint64_t *)value);
}

bool_t xdr_u_longlong_t(XDR *xdrs, u_quad_t *value)
{
    return xdr_uint64_t(xdrs, (uint64_t *)value);
}

/* ---- IEEE 754 numbers (4.6, 4.7), moved as the words they are ---- */

bool_t xdr_float(XDR *xdrs, float *value)
{
    uint32_t word;

    memcpy(&word, value, sizeof(word));
    if (!xdr_uint32_t(xdrs, &word))
        return FALSE;
    if (xdrs->x_op == XDR_DECODE)
        memcpy(value, &word, sizeof(word));
    return TRUE;
}

bool_t xdr_double(XDR *xdrs, double *value)
{
    uint64_t word;

    memcpy(&word, value, sizeof(word));
    if (!xdr_uint64_t(xdrs, &word))
        return FALSE;
    if (xdrs->x_op == XDR_DECODE)
        memcpy(value, &word, sizeof(word));
    return TRUE;
}

/* ---- bytes ---- */

/* 4.9: up to three zero bytes behind */
bool_t xdr_opaque(XDR *xdrs, char *bytes, u_int length)
{
    static const char zeros[BYTES_PER_XDR_UNIT];
    u_int padding = -length % BYTES_PER_XDR_UNIT;
    char found[BYTES_PER_XDR_UNIT];

    if (length == 0 || xdrs->x_op == XDR_FREE)
        return TRUE;
    if (xdrs->x_op == XDR_ENCODE) {
        rpc_copied(RPC_COPY_ENCODE, length);
        return XDR_PUTBYTES(xdrs, bytes, length) &&
               (padding == 0 || XDR_PUTBYTES(xdrs, zeros, padding));
    }
    rpc_copied(RPC_COPY_DECODE, length);
    if (!XDR_GETBYTES(xdrs, bytes, length))
        return FALSE;
    return padding == 0 ||
           (XDR_GETBYTES(xdrs, found, padding) && memcmp(found, zeros, padding) == 0);
}

/* The stream can hold that many items of at least `least` bytes each, so that it is worth taking
 * memory for them. */
static bool_t can_follow(XDR *xdrs, u_int count, u_int least)
{
    return count <= xdrs->x_ops->x_left(xdrs) / least;
}

/* The bytes where they lie in the stream, with their padding checked; NULL where that cannot be. */
static char *take_in_place(XDR *xdrs, u_int length)
{
    u_int padded = RNDUP(length);
    char *bytes;

    if (!xdrs->x_in_place || padded < length)
        return NULL;
    bytes = (char *)XDR_INLINE(xdrs, padded);
    for (u_int i = length; bytes != NULL && i < padded; i++)
        if (bytes[i] != 0)
            return NULL;
    return bytes;
}

/* What was decoded in place was never taken from the heap. */
static bool_t free_bytes(XDR *xdrs, char **bytes)
{
    if (!xdrs->x_in_place)
        free(*bytes);
    *bytes = NULL;
    return TRUE;
}

static bool_t decode_bytes(XDR *xdrs, char **bytes, u_int length)
{
    if (length == 0)
        return TRUE;
    if (!can_follow(xdrs, length, 1))
        return FALSE;
    if (*bytes == NULL && xdrs->x_in_place) {
        *bytes = take_in_place(xdrs, length);
        return *bytes != NULL;
    }
    if (*bytes == NULL)
        *bytes = mem_alloc(length);
    return *bytes != NULL && xdr_opaque(xdrs, *bytes, length);
}

/* 4.10 */
bool_t xdr_bytes(XDR *xdrs, char **bytes, u_int *length, u_int maxsize)
{
    if (xdrs->x_op == XDR_FREE)
        return free_bytes(xdrs, bytes);
    if (!xdr_u_int(xdrs, length) || *length > maxsize)
        return FALSE;
    return xdrs->x_op == XDR_DECODE ? decode_bytes(xdrs, bytes, *length)
                                    : xdr_opaque(xdrs, *bytes, *length);
}

static bool_t decode_string(XDR *xdrs, char **text, u_int maxsize)
{
    u_int length;

    if (!xdr_u_int(xdrs, &length) || length > maxsize || !can_follow(xdrs, length, 1))
        return FALSE;
    if (*text == NULL)
        *text = mem_alloc((size_t)length + 1);
    if (*text == NULL)
        return FALSE;
    (*text)[length] = '\0';
    return xdr_opaque(xdrs, *text, length);
}

/* 4.11. In memory there is a NUL behind; encoding NULL is an error. */
bool_t xdr_string(XDR *xdrs, char **text, u_int maxsize)
{
    size_t length;
    u_int word;

    if (xdrs->x_op == XDR_FREE) {
        free(*text);
        *text = NULL;
        return TRUE;
    }
    if (xdrs->x_op == XDR_DECODE)
        return decode_string(xdrs, text, maxsize);
    if (*text == NULL)
        return FALSE;
    length = strlen(*text);
    word = (u_int)length;
    return length <= maxsize && xdr_u_int(xdrs, &word) && xdr_opaque(xdrs, *text, word);
}

bool_t xdr_wrapstring(XDR *xdrs, char **text)
{
    return xdr_string(xdrs, text, UINT32_MAX - 1);
}

bool_t xdr_netobj(XDR *xdrs, struct netobj *object)
{
    return xdr_bytes(xdrs, &object->n_bytes, &object->n_len, MAX_NETOBJ_SZ);
}

/* ---- arrays (4.12, 4.13) ---- */

bool_t xdr_vector(XDR *xdrs, char *elements, u_int count, u_int element_bytes, xdrproc_t element)
{
    for (u_int i = 0; i < count; i++)
        if (!element(xdrs, elements + (size_t)i * element_bytes))
            return FALSE;
    return TRUE;
}

bool_t xdr_array(XDR *xdrs, char **elements, u_int *count, u_int maxsize, u_int element_bytes,
                 xdrproc_t element)
{
    bool_t good;

    if (xdrs->x_op != XDR_FREE && (!xdr_u_int(xdrs, count) || *count > maxsize))
        return FALSE;
    if (*elements == NULL) {
        if (*count == 0 || xdrs->x_op == XDR_FREE)
            return TRUE;
        if (xdrs->x_op == XDR_ENCODE || !can_follow(xdrs, *count, BYTES_PER_XDR_UNIT) ||
            *count > UINT32_MAX / element_bytes)
            return FALSE;
        *elements = mem_alloc((size_t)*count * element_bytes);
        if (*elements == NULL)
            return FALSE;
    }
    good = xdr_vector(xdrs, *elements, *count, element_bytes, element);
    if (xdrs->x_op == XDR_FREE) {
        free(*elements);
        *elements = NULL;
    }
    return good;
}

/* ---- what is pointed to (4.19 for xdr_pointer) ---- */

static bool_t code_target(XDR *xdrs, char **pointer, u_int bytes, xdrproc_t proc)
{
    bool_t good;

    if (*pointer == NULL) {
        if (xdrs->x_op == XDR_FREE)
            return TRUE;
        if (xdrs->x_op == XDR_ENCODE)
            return FALSE;
        *pointer = mem_alloc(bytes);
        if (*pointer == NULL)
            return FALSE;
    }
    good = proc(xdrs, *pointer);
    if (xdrs->x_op == XDR_FREE) {
        free(*pointer);
        *pointer = NULL;
    }
    return good;
}

bool_t xdr_reference(XDR *xdrs, char **pointer, u_int bytes, xdrproc_t proc)
{
    bool_t good;

    if (xdrs->x_depth >= XDR_DEPTH)
        return FALSE;
    xdrs->x_depth++;
    good = code_target(xdrs, pointer, bytes, proc);
    xdrs->x_depth--;
    return good;
}

bool_t xdr_pointer(XDR *xdrs, char **pointer, u_int bytes, xdrproc_t proc)
{
    bool_t present = *pointer != NULL;

    if (!xdr_bool(xdrs, &present))
        return FALSE;
    if (!present) {
        *pointer = NULL;
        return TRUE;
    }
    return xdr_reference(xdrs, pointer, bytes, proc);
}

/* 4.15 */
bool_t xdr_union(XDR *xdrs, enum_t *discriminant, char *arm, const struct xdr_discrim *choices,
                 xdrproc_t default_arm)
{
    if (!xdr_enum(xdrs, discriminant))
        return FALSE;
    for (; choices->proc != NULL_xdrproc_t; choices++)
        if (choices->value == *discriminant)
            return choices->proc(xdrs, arm);
    return default_arm != NULL_xdrproc_t && default_arm(xdrs, arm);
}

void xdr_free(xdrproc_t proc, void *object)
{
    XDR xdrs = {.x_op = XDR_FREE};

    proc(&xdrs, object);
}
