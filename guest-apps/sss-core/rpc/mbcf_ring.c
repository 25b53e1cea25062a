/* SPDX-License-Identifier: Apache-2.0 */
#include "mbcf_client.h"

/* A connection that stays has failed for all of its calls. */
void mbm_ring_find_failures(struct clntmb *client)
{
    unsigned status, waiting = 0;
    bool broken, taskque_broken;

    status = mbm_connection_failure(client->ltn, &broken);
    if (!broken && mbm_connection_failure(client->taskque_ltn, &taskque_broken) != 0 &&
        taskque_broken) {
        broken = true;
        status = MB_CLOSED | MB_MAYBE;
    }
    if (status == 0)
        return;
    mbm_take_all(client);
    if (broken)
        mbm_disconnect(client);
    for (unsigned i = 0; i < client->slots; i++)
        waiting += mbm_may_fail(&client->calls[i]);
    for (unsigned i = 0; i < client->slots; i++)
        if (mbm_may_fail(&client->calls[i])) /* of several, the first to fail is not known */
            mbm_call_failed(client, &client->calls[i],
                            waiting > 1 ? status | MB_MAYBE
                                        : mbm_failure_of_call(&client->calls[i], status));
}
