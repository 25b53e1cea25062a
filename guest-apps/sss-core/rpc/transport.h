/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the transports of UDP and TCP have in common on the server's side. */
#include <rpc/rpc.h>
#include <sss/abi.h>

/* `socket` as given to svcudp_create -> a bound socket of that protocol, or a negative error. */
int transport_socket(int socket, int protocol);
void transport_set_caller(SVCXPRT *transport, const struct sss_peer *peer);
/* Encodes the reply; a successful one with an empty verifier straight into place where the stream
 * allows. */
bool_t transport_encode_reply(XDR *xdrs, struct rpc_msg *reply);
/* The bytes that it takes. */
bool_t transport_measure_reply(struct rpc_msg *reply, u_int *bytes);
