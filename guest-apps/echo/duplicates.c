/* SPDX-License-Identifier: Apache-2.0 */
#include "duplicates.h"

enum { PLACES = 4096 };

struct place {
    bool used;
    uint32_t xid;
    in_addr_t address;
    in_port_t port;
};

static struct place places[PLACES];

bool duplicates_note(uint32_t xid, const struct sockaddr_in *caller)
{
    struct place seen = {true, xid, caller->sin_addr.s_addr, caller->sin_port};
    struct place *place = &places[(xid ^ seen.port ^ seen.address) % PLACES];
    bool same = place->used && place->xid == seen.xid && place->address == seen.address &&
                place->port == seen.port;

    *place = seen;
    return same;
}
