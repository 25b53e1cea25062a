/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * XDR (RFC 4506) with the interface of Sun's library, so that rpcgen's output compiles unchanged.
 * One filter does encoding, decoding and freeing. All filters return TRUE, or FALSE where the data
 * do not fit the type or the stream has ended.
 *
 * Decoding trusts nothing: padding must be zero, a bool 0 or 1, a length within its limit and
 * within what the stream can still hold before memory is taken for it, and pointers nest at most
 * XDR_DEPTH deep.
 */
#include <rpc/types.h>

enum xdr_op { XDR_ENCODE = 0, XDR_DECODE = 1, XDR_FREE = 2 };

#define BYTES_PER_XDR_UNIT 4
#define RNDUP(bytes)                                                                               \
    ((((bytes) + BYTES_PER_XDR_UNIT - 1) / BYTES_PER_XDR_UNIT) * BYTES_PER_XDR_UNIT)

enum {
    /* levels of xdr_reference: what a stack of 64 KiB holds with room to spare */
    XDR_DEPTH = 100,
    /* bytes taken for one item of a stream that does not know its end */
    XDR_ALLOCATION = 16 * 1048576,
};

typedef struct XDR XDR;
struct xdr_ops {
    bool_t (*x_getlong)(XDR *, long *);
    bool_t (*x_putlong)(XDR *, const long *);
    bool_t (*x_getbytes)(XDR *, char *, u_int);
    bool_t (*x_putbytes)(XDR *, const char *, u_int);
    u_int (*x_getpostn)(XDR *);
    bool_t (*x_setpostn)(XDR *, u_int);
    int32_t *(*x_inline)(XDR *, u_int); /* that many bytes in place, or NULL */
    void (*x_destroy)(XDR *);
    u_int (*x_left)(XDR *); /* bytes that the stream can still hold at most */
};
struct XDR {
    enum xdr_op x_op;
    const struct xdr_ops *x_ops;
    char *x_public; /* the user's */
    void *x_private;
    char *x_base;
    u_int x_handy;
    u_int x_depth; /* of xdr_reference */
    /* decoded opaque<> points into the stream's memory, and freeing leaves it; off unless set */
    bool_t x_in_place;
};

/* Streams over memory, which most are. */
extern const struct xdr_ops xdrmem_ops;

typedef bool_t (*xdrproc_t)(XDR *, ...);
#define NULL_xdrproc_t ((xdrproc_t)0)

#define XDR_GETLONG(x, p)     ((x)->x_ops->x_getlong)(x, p)
#define xdr_getlong(x, p)     XDR_GETLONG(x, p)
#define XDR_PUTLONG(x, p)     ((x)->x_ops->x_putlong)(x, p)
#define xdr_putlong(x, p)     XDR_PUTLONG(x, p)
#define XDR_GETBYTES(x, p, n) ((x)->x_ops->x_getbytes)(x, p, n)
#define xdr_getbytes(x, p, n) XDR_GETBYTES(x, p, n)
#define XDR_PUTBYTES(x, p, n) ((x)->x_ops->x_putbytes)(x, p, n)
#define xdr_putbytes(x, p, n) XDR_PUTBYTES(x, p, n)
#define XDR_GETPOS(x)         ((x)->x_ops->x_getpostn)(x)
#define xdr_getpos(x)         XDR_GETPOS(x)
#define XDR_SETPOS(x, p)      ((x)->x_ops->x_setpostn)(x, p)
#define xdr_setpos(x, p)      XDR_SETPOS(x, p)
#define XDR_INLINE(x, n)      ((x)->x_ops->x_inline)(x, n)
#define xdr_inline(x, n)      XDR_INLINE(x, n)
#define XDR_DESTROY(x)        ((x)->x_ops->x_destroy)(x)
#define xdr_destroy(x)        XDR_DESTROY(x)

/* For rpcgen -i: whole words in place. */
#define IXDR_GET_INT32(buf)      ((int32_t)__builtin_bswap32((uint32_t) * (buf)++))
#define IXDR_PUT_INT32(buf, v)   (*(buf)++ = (int32_t)__builtin_bswap32((uint32_t)(v)))
#define IXDR_GET_U_INT32(buf)    ((uint32_t)IXDR_GET_INT32(buf))
#define IXDR_PUT_U_INT32(buf, v) IXDR_PUT_INT32(buf, (int32_t)(v))
#define IXDR_GET_LONG(buf)       ((long)IXDR_GET_INT32(buf))
#define IXDR_PUT_LONG(buf, v)    IXDR_PUT_INT32(buf, (int32_t)(v))
#define IXDR_GET_BOOL(buf)       ((bool_t)IXDR_GET_LONG(buf))
#define IXDR_GET_ENUM(buf, t)    ((t)IXDR_GET_LONG(buf))
#define IXDR_GET_U_LONG(buf)     ((u_long)IXDR_GET_U_INT32(buf))
#define IXDR_GET_SHORT(buf)      ((short)IXDR_GET_LONG(buf))
#define IXDR_GET_U_SHORT(buf)    ((u_short)IXDR_GET_LONG(buf))
#define IXDR_PUT_BOOL(buf, v)    IXDR_PUT_LONG(buf, v)
#define IXDR_PUT_ENUM(buf, v)    IXDR_PUT_LONG(buf, v)
#define IXDR_PUT_U_LONG(buf, v)  IXDR_PUT_LONG(buf, v)
#define IXDR_PUT_SHORT(buf, v)   IXDR_PUT_LONG(buf, v)
#define IXDR_PUT_U_SHORT(buf, v) IXDR_PUT_LONG(buf, v)

struct xdr_discrim {
    int value;
    xdrproc_t proc;
};

bool_t xdr_void(void);
bool_t xdr_short(XDR *, short *);
bool_t xdr_u_short(XDR *, u_short *);
bool_t xdr_int(XDR *, int *);
bool_t xdr_u_int(XDR *, u_int *);
bool_t xdr_long(XDR *, long *); /* 32 bits on the wire; a value that needs more is refused */
bool_t xdr_u_long(XDR *, u_long *);
bool_t xdr_int8_t(XDR *, int8_t *);
bool_t xdr_uint8_t(XDR *, uint8_t *);
bool_t xdr_int16_t(XDR *, int16_t *);
bool_t xdr_uint16_t(XDR *, uint16_t *);
bool_t xdr_int32_t(XDR *, int32_t *);
bool_t xdr_uint32_t(XDR *, uint32_t *);
bool_t xdr_u_int32_t(XDR *, uint32_t *);
bool_t xdr_int64_t(XDR *, int64_t *);
bool_t xdr_uint64_t(XDR *, uint64_t *);
bool_t xdr_u_int64_t(XDR *, uint64_t *);
bool_t xdr_hyper(XDR *, quad_t *);
bool_t xdr_u_hyper(XDR *, u_quad_t *);
bool_t xdr_quad_t(XDR *, quad_t *);
bool_t xdr_u_quad_t(XDR *, u_quad_t *);
bool_t xdr_longlong_t(XDR *, quad_t *);
bool_t xdr_u_longlong_t(XDR *, u_quad_t *);
bool_t xdr_bool(XDR *, bool_t *);
bool_t xdr_enum(XDR *, enum_t *);
bool_t xdr_char(XDR *, char *);
bool_t xdr_u_char(XDR *, u_char *);
bool_t xdr_float(XDR *, float *);
bool_t xdr_double(XDR *, double *);
bool_t xdr_opaque(XDR *, char *, u_int);
bool_t xdr_bytes(XDR *, char **, u_int *, u_int maxsize);
bool_t xdr_string(XDR *, char **, u_int maxsize);
bool_t xdr_wrapstring(XDR *, char **);
bool_t xdr_array(XDR *, char **, u_int *, u_int maxsize, u_int element_bytes, xdrproc_t element);
bool_t xdr_vector(XDR *, char *, u_int count, u_int element_bytes, xdrproc_t element);
bool_t xdr_reference(XDR *, char **, u_int bytes, xdrproc_t proc);
bool_t xdr_pointer(XDR *, char **, u_int bytes, xdrproc_t proc);
bool_t xdr_union(XDR *, enum_t *, char *, const struct xdr_discrim *choices, xdrproc_t default_arm);
u_long xdr_sizeof(xdrproc_t, void *);
void xdr_free(xdrproc_t, void *);

struct netobj {
    u_int n_len;
    char *n_bytes;
};
typedef struct netobj netobj;
#define MAX_NETOBJ_SZ 1024
bool_t xdr_netobj(XDR *, struct netobj *);

/* A stream over `size` bytes of memory; needs no 4-byte alignment. */
void xdrmem_create(XDR *, char *memory, u_int size, enum xdr_op);
/* Ours: the bytes that encoding takes; FALSE: it fails. */
bool_t xdr_measure(xdrproc_t encode, void *data, u_int *bytes);

/*
 * A record stream (RFC 5531 section 11). `readit` and `writeit` return bytes moved, -1 or (reading)
 * 0 at an error. A record is written whenever the send buffer is full, as libtirpc does, so that
 * both cut messages into the same fragments.
 */
void xdrrec_create(XDR *, u_int sendsize, u_int recvsize, void *handle,
                   int (*readit)(void *, void *, int), int (*writeit)(void *, void *, int));
bool_t xdrrec_endofrecord(XDR *, bool_t sendnow);
bool_t xdrrec_skiprecord(XDR *);
bool_t xdrrec_eof(XDR *);
