/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a server over MBCF asks of the rings that its TASKQUE brings clients for. */
#include <rpc/svc.h>

#include "mbcf_service.h"

/* xp_p2 of a transport of svcvrpc_create. */
struct svcvrpc_binding {
    /* A client asks for a line; `why`: the reason to refuse that is known. */
    void (*bind)(SVCXPRT *transport, const struct mbm_origin *origin, const struct mbm_bind *bind,
                 enum mbm_refusal why);
    void (*look_after)(SVCXPRT *transport); /* clients may have gone */
    uint32_t type;                          /* of what is asked for, for the binder */
};
