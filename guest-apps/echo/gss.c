/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for RPCSEC_GSS of libtirpc, which needs Kerberos' libraries, and those cannot be linked
 * statically. No program here asks for it; a caller that did is refused, as by a server without it.
 */
#include <rpc/rpc.h>

bool_t is_authgss_client(CLIENT *client); /* its header wants those of Kerberos */

enum auth_stat _svcauth_gss(struct svc_req *request, struct rpc_msg *message, bool_t *no_dispatch)
{
    (void)request;
    (void)message;
    (void)no_dispatch;
    return AUTH_REJECTEDCRED;
}

bool_t is_authgss_client(CLIENT *client)
{
    (void)client;
    return FALSE;
}
