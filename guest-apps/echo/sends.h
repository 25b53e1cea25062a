/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * What this thread's calls have really put on the wire. The library retransmits a call inside of
 * clnt_call without saying so, and on a stream it changes the transaction number that it was given
 * (clnt_vc counts it down in network order). Its sends go through these functions of the program
 * instead of the C library's, which look.
 */

/* Begins a call; `stream`: a record mark comes before the message (RFC 5531, section 11). */
void sends_begin(bool stream);
/* Datagrams sent since then. */
unsigned sends_count(void);
/* The transaction number of the first message sent since then; false: nothing was sent. */
bool sends_xid(uint32_t *xid);
