/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* So many new calls after its first request a retransmission counts as a new call. */
enum { DUPLICATES_REMEMBERED = 4096 };

/* Whether a request with this transaction number of this caller came before; notes it if not. */
bool duplicates_note(uint32_t xid, const struct sockaddr_in *caller);
