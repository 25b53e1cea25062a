/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "settings.h"

/*
 * Asks the server's portmapper (RFC 1833 section 3, GETPORT over UDP) for the program's port, again
 * and again until there is one or the binding timeout has passed. Puts the port into `settings` and
 * the "binding" line on the record stream; 0 if there is no port.
 */
void binding_find_port(struct settings *settings);
