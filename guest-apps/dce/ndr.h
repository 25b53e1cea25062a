/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pdu.h"

/*
 * Network Data Representation (C706, chapter 14), of as much as the interfaces here have. A cursor
 * reads or writes; once it has failed (an end, a bound) it reads zeros and writes nothing.
 * References (ref pointers) have no representation of their own.
 */
struct dce_ndr {
    uint8_t *bytes; /* only read by the readers */
    size_t length;
    size_t at;
    bool big_endian;
    bool failed;
};

struct dce_ndr dce_ndr_reader(const uint8_t *bytes, size_t length, bool big_endian);
struct dce_ndr dce_ndr_writer(uint8_t *bytes, size_t room, bool big_endian);

void dce_ndr_align(struct dce_ndr *ndr, size_t to);
uint8_t dce_ndr_get8(struct dce_ndr *ndr);
uint16_t dce_ndr_get16(struct dce_ndr *ndr);
uint32_t dce_ndr_get32(struct dce_ndr *ndr);
uint64_t dce_ndr_get64(struct dce_ndr *ndr);
void dce_ndr_get_uuid(struct dce_ndr *ndr, struct dce_uuid *uuid);
/* A fixed array of bytes, in place; NULL: too short. */
const uint8_t *dce_ndr_get_bytes(struct dce_ndr *ndr, size_t count);
/* A conformant array of at most `most` bytes, in place. */
const uint8_t *dce_ndr_get_array(struct dce_ndr *ndr, size_t most, size_t *count);
/* A conformant varying string of at most `most` bytes before its NUL, in place. */
const char *dce_ndr_get_string(struct dce_ndr *ndr, size_t most);

void dce_ndr_put8(struct dce_ndr *ndr, uint8_t value);
void dce_ndr_put16(struct dce_ndr *ndr, uint16_t value);
void dce_ndr_put32(struct dce_ndr *ndr, uint32_t value);
void dce_ndr_put64(struct dce_ndr *ndr, uint64_t value);
void dce_ndr_put_uuid(struct dce_ndr *ndr, const struct dce_uuid *uuid);
void dce_ndr_put_bytes(struct dce_ndr *ndr, const uint8_t *bytes, size_t count);
void dce_ndr_put_array(struct dce_ndr *ndr, const uint8_t *bytes, size_t count);
void dce_ndr_put_string(struct dce_ndr *ndr, const char *text);

/* A unique pointer; false: null. What it points to follows, at once or behind its array. */
bool dce_ndr_get_unique(struct dce_ndr *ndr);
void dce_ndr_put_unique(struct dce_ndr *ndr, bool is_null);

/* Full pointers may point to one thing twice: each referent is represented once. */
enum { DCE_REFERENTS = 16 };
struct dce_referents {
    uint32_t ids[DCE_REFERENTS];
    unsigned count;
};
enum dce_full { DCE_FULL_NULL, DCE_FULL_NEW, DCE_FULL_SEEN };
/* `index`: which thing it is. More things than the table holds make the cursor fail. */
enum dce_full dce_ndr_get_full(struct dce_ndr *ndr, struct dce_referents *seen, unsigned *index);
/* `id`: any number but 0 (null), the same for the same thing. */
void dce_ndr_put_full(struct dce_ndr *ndr, uint32_t id);
