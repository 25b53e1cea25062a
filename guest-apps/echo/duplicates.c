/* SPDX-License-Identifier: Apache-2.0 */
#include "duplicates.h"

#include <stddef.h>

enum { PLACES = DUPLICATES_REMEMBERED };

struct place {
    uint32_t xid;
    in_addr_t address;
    in_port_t port;
    struct place *next; /* in its list */
};

static struct place places[PLACES]; /* in turns: a new call takes the place of the oldest */
static struct place *lists[PLACES]; /* by list_of */
static size_t noted;                /* new calls so far */

static struct place **list_of(const struct place *call)
{
    return &lists[(call->xid ^ call->port ^ call->address) % PLACES];
}

static bool is_same(const struct place *one, const struct place *other)
{
    return one->xid == other->xid && one->address == other->address && one->port == other->port;
}

static void forget(const struct place *call)
{
    struct place **link = list_of(call);

    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
}

bool duplicates_note(uint32_t xid, const struct sockaddr_in *caller)
{
    struct place call = {xid, caller->sin_addr.s_addr, caller->sin_port, NULL};
    struct place **list = list_of(&call);
    struct place *place;

    for (place = *list; place != NULL; place = place->next)
        if (is_same(place, &call))
            return true;
    place = &places[noted % PLACES];
    if (noted >= PLACES)
        forget(place);
    noted++;
    call.next = *list;
    *place = call;
    *list = place;
    return false;
}
