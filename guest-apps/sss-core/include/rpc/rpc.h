/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <rpc/auth.h>
#include <rpc/auth_unix.h>
#include <rpc/clnt.h>
#include <rpc/pmap_clnt.h>
#include <rpc/rpc_msg.h>
#include <rpc/svc.h>
#include <rpc/types.h>
#include <rpc/xdr.h>
