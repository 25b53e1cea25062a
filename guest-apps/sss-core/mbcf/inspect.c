/* SPDX-License-Identifier: Apache-2.0 */

/* What the monitor and the tests look at. */
#include "connection.h"
#include "fifo.h"

const struct mbcf_counters *mbcf_counters(const struct mbcf *mbcf)
{
    return &mbcf->counters;
}

bool mbcf_channel_at(const struct mbcf *mbcf, unsigned index, struct mbcf_channel_info *info)
{
    for (unsigned node = 1; node <= SSS_NODES; node++) {
        const struct channel *channel = &mbcf->channels[node];

        if (!channel->known || index-- != 0)
            continue;
        *info = (struct mbcf_channel_info){
            .node = channel->node,
            .state = channel->state,
            .epoch = mbcf->config.epoch,
            .peer_epoch = channel->peer_epoch,
            .next_seq = channel->next_seq,
            .acked = channel->acked,
            .received = channel->received,
            .in_flight = channel->end - channel->first,
            .rto_ns = channel->rto_ns,
            .srtt_ns = channel->srtt_ns,
        };
        return true;
    }
    return false;
}

bool mbcf_connection_at(const struct mbcf *mbcf, unsigned index, struct mbcf_connection_at *info)
{
    for (unsigned i = 0; i < MB_CONNECTIONS; i++) {
        const struct connection *connection = &mbcf->connections[i];

        if (connection->phase == CONNECTION_FREE || index-- != 0)
            continue;
        info->task = connection->task;
        info->ltn = mbcf_connection_ltn(mbcf, connection);
        mbcf_connection_describe(connection, &info->connection);
        return true;
    }
    return false;
}

bool mbcf_fifo_at(const struct mbcf *mbcf, unsigned index, struct mbcf_fifo_at *info)
{
    for (unsigned i = 0; i < TASK_SLOTS; i++) {
        const struct mbcf_task *task = &mbcf->tasks[i];
        const struct ring *ring;

        if (task->id == 0 || task->gone)
            continue;
        for (unsigned at = 0; at < MB_FIFOS + 2; at++) {
            ring = at == 0 ? &task->taskque : at == 1 ? &task->signal_queue : &task->fifos[at - 2];
            if (ring->address == 0 || index-- != 0)
                continue;
            *info = (struct mbcf_fifo_at){.task = task->id,
                                          .kind = (uint16_t)(at == 0   ? 1
                                                             : at == 1 ? 2
                                                                       : 0),
                                          .address = ring->address,
                                          .size = ring->size,
                                          .used = mbcf_ring_used(mbcf, task, ring)};
            return true;
        }
    }
    return false;
}
