/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "binding.h"
#include "server_machine.h"

/*
 * Asks the endpoint mapper of settings->server's host, at the port given, for the port of an
 * interface, again and again until there is one or the time is over, and puts the "binding" line on
 * the record stream. 0: there is none.
 */
uint16_t dce_mapper_ask(const struct dce_client_settings *settings,
                        const struct dce_uuid *interface, unsigned mapper_port,
                        uint64_t timeout_ns);

/* The mapper's own interface, and its procedure; `port` is where `interface` is served. */
bool dce_mapper_has_operation(uint16_t opnum);
uint32_t dce_mapper_execute(struct dce_activity *activity, const struct dce_uuid *interface,
                            uint16_t port, bool big_endian, size_t *length);
