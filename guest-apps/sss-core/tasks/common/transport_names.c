/* SPDX-License-Identifier: Apache-2.0 */
#include "transport_names.h"

#include <stddef.h>

const char *const transport_names[] = {"udp", "tcp",
#define TRANSPORT(type, name) name,
#include <rpc/transports.def>
                                       "vrpc", "vrpc-mbcf", NULL};
