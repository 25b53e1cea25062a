/* SPDX-License-Identifier: Apache-2.0 */
#include "vrpc_options.h"

#include <stddef.h>

#include "options.h"

void vrpc_options_read(enum vrpc_wait *wait, uint32_t *deliberate_above)
{
    static const char *const waits[] = {"poll", "notify", NULL};

    *wait = (enum vrpc_wait)options_word("wait", waits);
    *deliberate_above = (uint32_t)options_integer("deliberate_above", VRPC_DELIBERATE_ABOVE, 0,
                                                  VRPC_MESSAGE_MOST);
}
