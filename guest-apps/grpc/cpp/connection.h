// SPDX-License-Identifier: Apache-2.0
#pragma once

// The TCP connection of this process to a peer, which the library keeps to itself.

// Its descriptor; -1: there is none.
int connection_find(const char *address, int port);
int connection_local_port(int connection);
// Segments that TCP has sent again so far.
long connection_retransmits(int connection);
