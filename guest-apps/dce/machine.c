/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

const char *const dce_count_names[DCE_COUNTS] = {
#define X(name) #name,
    DCE_COUNTERS(X)
#undef X
};

struct dce_control *dce_outbox_add(struct dce_outbox *outbox, struct dce_counts *counts)
{
    struct dce_control *control;

    if (outbox->count == DCE_OUTBOX) {
        counts->of[DCE_COUNT_overruns]++;
        return NULL;
    }
    control = &outbox->controls[(outbox->first + outbox->count++) % DCE_OUTBOX];
    control->packet.bytes = control->bytes;
    return control;
}

bool dce_outbox_take(struct dce_outbox *outbox, struct dce_packet *packet)
{
    if (outbox->count == 0)
        return false;
    *packet = outbox->controls[outbox->first].packet;
    outbox->first = (outbox->first + 1) % DCE_OUTBOX;
    outbox->count--;
    return true;
}
