/* SPDX-License-Identifier: Apache-2.0 */
#include "row.h"

#include "tasks/common/samples.h"

void dce_row_put(size_t call, const struct dce_row *row)
{
    samples_put_row(call, &(struct call_record){.start_ns = row->start_ns,
                                                .end_ns = row->end_ns,
                                                .xid = row->xid,
                                                .retransmits = row->retransmits,
                                                .ok = row->ok,
                                                .has_xid = row->has_xid,
                                                .error = row->error});
}

void dce_rows_end(void)
{
    samples_flush();
}
