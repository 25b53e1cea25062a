/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A row of a batch, between record.c, which knows the calls of guest-apps/common/samples.h, and
 * row.c, which knows those of tasks/common/samples.h: two structures of one name.
 */
struct dce_row {
    uint64_t start_ns, end_ns;
    uint32_t xid;
    uint16_t retransmits;
    bool ok, has_xid;
    const char *error; /* NULL: none */
};

void dce_row_put(size_t call, const struct dce_row *row);
/* Behind the last one. */
void dce_rows_end(void);
