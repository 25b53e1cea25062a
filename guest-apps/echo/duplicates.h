/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Remembers the latest calls by (transaction number, caller), to tell a retransmitted call from a
 * new one. A fixed table: an old call gives way to a new one in the same place, so a duplicate that
 * comes thousands of calls late may go unseen, but a new call is never taken for a duplicate.
 */
bool duplicates_note(uint32_t xid, const struct sockaddr_in *caller);
