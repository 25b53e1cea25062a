/* SPDX-License-Identifier: Apache-2.0 */
#include "shrimp.h"

static uint64_t *flag_of(const void *buffer, uint32_t pages)
{
    return (uint64_t *)((uintptr_t)buffer + (size_t)pages * SHRIMP_PAGE) - 1;
}

void shrimp_client_init(struct shrimp_client *client, uint32_t pages, const void *in, void *out,
                        uint16_t (*idle)(struct shrimp_client *client), void *context)
{
    *client = (struct shrimp_client){
        .out = flag_of(out, pages),
        .in = flag_of(in, pages),
        .turns = SHRIMP_TURNS,
        .idle = idle,
        .context = context,
    };
}

void shrimp_server_init(struct shrimp_server *server, const struct shrimp_interface *interface,
                        const void *in, void *out, void *scratch, void *context)
{
    *server = (struct shrimp_server){
        .out = flag_of(out, interface->identity.pages),
        .in = flag_of(in, interface->identity.pages),
        .count = interface->count,
        .table = interface->table,
        .scratch = scratch,
        .context = context,
    };
}

uint16_t shrimp_no_procedure(struct shrimp_server *server)
{
    (void)server;
    return SHRIMP_BAD_PROCEDURE;
}

uint16_t shrimp_wait(struct shrimp_client *client)
{
    for (;;) {
        uint16_t status = client->idle ? client->idle(client) : SHRIMP_OK;

        if (status)
            return status;
        for (uint32_t turn = client->turns; turn; turn--) {
            uint64_t beyond = __atomic_load_n(client->in, __ATOMIC_ACQUIRE) ^ client->sequence;
            if (beyond < SHRIMP_NEXT) {
                client->left = turn;
                return (uint16_t)beyond;
            }
        }
    }
}
