/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "caller.h"
#include "settings.h"

extern const struct rpc_port tirpc_port;

/* Buffers and numbers; ends the program where memory is short. */
void port_init(struct caller *caller, const struct settings *settings, size_t thread);

/* The text of a record's failure (failure_text_fn). */
void port_failure_text(const struct call_record *record, char *text, size_t size);
