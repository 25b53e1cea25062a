/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many datagrams this thread has sent. The library retransmits a call inside of clnt_call and tells
 * nobody; its sends go through these functions of the program instead of the C library's, which count.
 */
unsigned sends_count(void);
