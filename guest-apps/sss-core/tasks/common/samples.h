/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a client has measured, in the format of harness/schemas/README.md ("Samples"). Nothing is
 * written while anything is measured. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call_record {
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t xid;
    uint16_t retransmits;
    bool ok;
    bool has_xid;
    const char *error;  /* NULL: none; lives until it is written */
    const char *detail; /* more of it, or NULL */
};

/*
 * A batch line and its rows. `fields` are those of the batch beside type, step, app and columns:
 * JSON members, without braces.
 */
void samples_put_batch(const char *fields, const struct call_record *records, size_t count);

/* A row by itself, behind a batch line that was written otherwise; and what goes behind the last
 * one. */
void samples_put_row(size_t call, const struct call_record *record);
void samples_flush(void);
