/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record marking (RFC 5531 section 11): a record is fragments, each with a word in front that says
 * whether it is the last and how long it is.
 *
 * Out: one buffer that begins with the mark of the fragment at `mark`. It is written when bytes
 * have filled it, when a word does not fit any more, and with the end of a record unless the next
 * one may travel with it. In: a buffer of what `readit` gave, and what is left of the present
 * fragment.
 */
#include <rpc/xdr.h>

enum {
    MARK = 4,
    BUFFER_LEAST = 100,
    BUFFER_DEFAULT = 4000, /* where less is asked for, as in libtirpc */
};
#define LAST_FRAGMENT 0x80000000u

struct record_stream {
    void *handle;
    int (*readit)(void *, void *, int);
    int (*writeit)(void *, void *, int);
    char *out;
    u_int out_size;
    u_int out_end;           /* bytes filled */
    u_int mark;              /* where the mark of the fragment in work is */
    bool_t fragment_written; /* of the present record */
    char *in;
    u_int in_size;
    u_int in_place;
    u_int in_end;
    u_int fragment_left;
    bool_t last_fragment;
};

/* ---- out ---- */

static void set_mark(struct record_stream *stream, uint32_t last)
{
    uint32_t word = __builtin_bswap32(last | (stream->out_end - stream->mark - MARK));

    memcpy(stream->out + stream->mark, &word, MARK);
}

static bool_t flush(struct record_stream *stream, uint32_t last)
{
    int length;

    set_mark(stream, last);
    length = (int)stream->out_end;
    stream->mark = 0;
    stream->out_end = MARK;
    return stream->writeit(stream->handle, stream->out, length) == length;
}

static bool_t put_bytes(XDR *xdrs, const char *bytes, u_int length)
{
    struct record_stream *stream = xdrs->x_private;

    while (length > 0) {
        u_int room = stream->out_size - stream->out_end;
        u_int part = length < room ? length : room;

        memcpy(stream->out + stream->out_end, bytes, part);
        stream->out_end += part;
        bytes += part;
        length -= part;
        if (stream->out_end == stream->out_size) {
            stream->fragment_written = TRUE;
            if (!flush(stream, 0))
                return FALSE;
        }
    }
    return TRUE;
}

static bool_t put_long(XDR *xdrs, const long *value)
{
    struct record_stream *stream = xdrs->x_private;
    uint32_t word = __builtin_bswap32((uint32_t)*value);

    if (stream->out_size - stream->out_end < sizeof(word)) {
        stream->fragment_written = TRUE;
        if (!flush(stream, 0))
            return FALSE;
    }
    memcpy(stream->out + stream->out_end, &word, sizeof(word));
    stream->out_end += sizeof(word);
    return TRUE;
}

bool_t xdrrec_endofrecord(XDR *xdrs, bool_t sendnow)
{
    struct record_stream *stream = xdrs->x_private;

    if (sendnow || stream->fragment_written || stream->out_end + MARK >= stream->out_size) {
        stream->fragment_written = FALSE;
        return flush(stream, LAST_FRAGMENT);
    }
    set_mark(stream, LAST_FRAGMENT);
    stream->mark = stream->out_end;
    stream->out_end += MARK;
    return TRUE;
}

/* ---- in ---- */

static bool_t fill(struct record_stream *stream)
{
    int length = stream->readit(stream->handle, stream->in, (int)stream->in_size);

    if (length <= 0)
        return FALSE;
    stream->in_place = 0;
    stream->in_end = (u_int)length;
    return TRUE;
}

static bool_t take(struct record_stream *stream, char *bytes, u_int length)
{
    while (length > 0) {
        u_int part = stream->in_end - stream->in_place;

        if (part == 0) {
            if (!fill(stream))
                return FALSE;
            continue;
        }
        if (part > length)
            part = length;
        if (bytes != NULL) {
            memcpy(bytes, stream->in + stream->in_place, part);
            bytes += part;
        }
        stream->in_place += part;
        length -= part;
    }
    return TRUE;
}

static bool_t next_fragment(struct record_stream *stream)
{
    uint32_t word;

    if (!take(stream, (char *)&word, MARK))
        return FALSE;
    word = __builtin_bswap32(word);
    stream->last_fragment = (word & LAST_FRAGMENT) != 0;
    stream->fragment_left = word & ~LAST_FRAGMENT;
    /* Empty fragments only end a record; others could be sent for ever. */
    return stream->fragment_left != 0 || stream->last_fragment;
}

static bool_t get_bytes(XDR *xdrs, char *bytes, u_int length)
{
    struct record_stream *stream = xdrs->x_private;

    while (length > 0) {
        u_int part = stream->fragment_left < length ? stream->fragment_left : length;

        if (part == 0) {
            if (stream->last_fragment || !next_fragment(stream))
                return FALSE;
            continue;
        }
        if (!take(stream, bytes, part))
            return FALSE;
        stream->fragment_left -= part;
        bytes += part;
        length -= part;
    }
    return TRUE;
}

static bool_t get_long(XDR *xdrs, long *value)
{
    uint32_t word;

    if (!get_bytes(xdrs, (char *)&word, sizeof(word)))
        return FALSE;
    *value = (int32_t)__builtin_bswap32(word);
    return TRUE;
}

bool_t xdrrec_skiprecord(XDR *xdrs)
{
    struct record_stream *stream = xdrs->x_private;

    while (stream->fragment_left > 0 || !stream->last_fragment) {
        if (!take(stream, NULL, stream->fragment_left))
            return FALSE;
        stream->fragment_left = 0;
        if (!stream->last_fragment && !next_fragment(stream))
            return FALSE;
    }
    stream->last_fragment = FALSE;
    return TRUE;
}

bool_t xdrrec_eof(XDR *xdrs)
{
    struct record_stream *stream = xdrs->x_private;

    while (stream->fragment_left > 0 || !stream->last_fragment) {
        if (!take(stream, NULL, stream->fragment_left))
            return TRUE;
        stream->fragment_left = 0;
        if (!stream->last_fragment && !next_fragment(stream))
            return TRUE;
    }
    return stream->in_place == stream->in_end;
}

/* ---- */

static u_int position(XDR *xdrs)
{
    const struct record_stream *stream = xdrs->x_private;

    return stream->out_end - stream->mark - MARK;
}

static bool_t set_position(XDR *xdrs, u_int to)
{
    (void)xdrs;
    (void)to;
    return FALSE;
}

/* Of the way out only: what comes in may lie across fragments. */
static int32_t *in_place(XDR *xdrs, u_int length)
{
    struct record_stream *stream = xdrs->x_private;
    char *place = stream->out + stream->out_end;

    if (xdrs->x_op != XDR_ENCODE || length > stream->out_size - stream->out_end ||
        (uintptr_t)place % sizeof(int32_t) != 0)
        return NULL;
    stream->out_end += length;
    return (int32_t *)(void *)place;
}

static void destroy(XDR *xdrs)
{
    struct record_stream *stream = xdrs->x_private;

    free(stream->out);
    free(stream->in);
    free(stream);
}

static u_int left(XDR *xdrs)
{
    const struct record_stream *stream = xdrs->x_private;

    if (stream->last_fragment && stream->fragment_left < XDR_ALLOCATION)
        return stream->fragment_left;
    return XDR_ALLOCATION;
}

static u_int buffer_size(u_int asked)
{
    return asked < BUFFER_LEAST ? BUFFER_DEFAULT : RNDUP(asked);
}

void xdrrec_create(XDR *xdrs, u_int sendsize, u_int recvsize, void *handle,
                   int (*readit)(void *, void *, int), int (*writeit)(void *, void *, int))
{
    static const struct xdr_ops ops = {get_long,     put_long, get_bytes, put_bytes, position,
                                       set_position, in_place, destroy,   left};
    struct record_stream *stream = mem_alloc(sizeof(*stream));

    xdrs->x_ops = &ops;
    xdrs->x_private = stream;
    xdrs->x_depth = 0;
    xdrs->x_in_place = FALSE;
    if (stream == NULL)
        return;
    *stream = (struct record_stream){
        .handle = handle,
        .readit = readit,
        .writeit = writeit,
        .out_size = buffer_size(sendsize),
        .out_end = MARK,
        .in_size = readit == NULL ? 0 : buffer_size(recvsize),
        .last_fragment = FALSE,
    };
    stream->out = malloc(stream->out_size);
    stream->in = readit == NULL ? NULL : malloc(stream->in_size);
    if (stream->out == NULL || (readit != NULL && stream->in == NULL)) {
        destroy(xdrs);
        xdrs->x_private = NULL; /* the caller's sign that memory was short */
    }
}
