// SPDX-License-Identifier: Apache-2.0
// XDR (RFC 4506): one filter for each type, which encodes, decodes, prints, or fills in a sample,
// as its struct xdr says.
#ifndef XDR_H
#define XDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum xdr_operation { XDR_ENCODE, XDR_DECODE, XDR_PRINT, XDR_SAMPLE };

struct xdr {
    enum xdr_operation operation;
    uint8_t *bytes; // of the message; grows while it is encoded
    size_t at, end;
    FILE *out;                // of XDR_PRINT
    struct xdr_block *blocks; // memory of decoded values and samples
    unsigned depth;
    uint32_t next; // number of the next sample
};

// False: the bytes are not a value of the type, or there is no memory.
typedef bool xdr_filter(struct xdr *xdr, void *value);

// A string or opaque data of variable length.
struct xdr_bytes {
    uint32_t length;
    char *data;
};

struct xdr_quadruple {
    uint8_t bytes[16];
};

xdr_filter xdr_int, xdr_unsigned, xdr_hyper, xdr_unsigned_hyper, xdr_float, xdr_double,
    xdr_quadruple, xdr_bool;
bool xdr_enum(struct xdr *xdr, int32_t *value, const int32_t *values, uint32_t count);
bool xdr_opaque(struct xdr *xdr, void *bytes, uint32_t count);
bool xdr_bytes(struct xdr *xdr, struct xdr_bytes *value, uint32_t most, bool text);
bool xdr_vector(struct xdr *xdr, void *items, uint32_t count, size_t size, xdr_filter *filter);
// `least`: bytes of an element on the wire at least.
bool xdr_array(struct xdr *xdr, uint32_t *length, void **items, uint32_t most, size_t size,
               uint32_t least, xdr_filter *filter);
bool xdr_optional(struct xdr *xdr, void **value, size_t size, xdr_filter *filter);
// Which of `count` forms a sample has.
uint32_t xdr_choice(struct xdr *xdr, uint32_t count);

// Memory of zeros until xdr_forget; NULL: there is none.
void *xdr_new(struct xdr *xdr, size_t size);
void xdr_forget(struct xdr *xdr);
// Fill in a value: other numbers and texts in each part, optional parts and lists to a small depth.
bool xdr_sample(struct xdr *xdr, xdr_filter *filter, void *value);
// Print the parts of a value, each behind a blank.
void xdr_print(FILE *out, xdr_filter *filter, void *value);
// A message from its beginning.
void xdr_begin(struct xdr *xdr);
bool xdr_encode(struct xdr *xdr, xdr_filter *filter, void *value);
bool xdr_put(struct xdr *xdr, uint32_t word);
bool xdr_get(struct xdr *xdr, uint32_t *word);
bool xdr_decode(struct xdr *xdr, const uint8_t *bytes, size_t count, xdr_filter *filter,
                void *value);

#endif
