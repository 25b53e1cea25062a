/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sun RPC as applications know it (RFC 5531 and Sun's library). What is declared here and in the
 * headers below is the public interface, complete whether or not a task of this tree calls it.
 */

#include <rpc/auth.h>
#include <rpc/auth_unix.h>
#include <rpc/clnt.h>
#include <rpc/pmap_clnt.h>
#include <rpc/rpc_msg.h>
#include <rpc/svc.h>
#include <rpc/types.h>
#include <rpc/xdr.h>
