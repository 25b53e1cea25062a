/* SPDX-License-Identifier: Apache-2.0 */
/* AUTH_NONE and AUTH_SYS, the client's side. Credential and verifier are encoded once, when the
 * handle is made. */
#include <rpc/rpc.h>
#include <sss/abi.h>

struct opaque_auth _null_auth;

static void nothing(AUTH *auth)
{
    (void)auth;
}

static bool_t put_marshalled(AUTH *auth, XDR *xdrs)
{
    return XDR_PUTBYTES(xdrs, auth->ah_marshalled, auth->ah_marshalled_length);
}

/* The server's verifier proves nothing for these flavours: any is good. */
static bool_t accept_verifier(AUTH *auth, struct opaque_auth *verifier)
{
    (void)auth;
    (void)verifier;
    return TRUE;
}

/* There is no other credential to try. */
static bool_t cannot_refresh(AUTH *auth, void *message)
{
    (void)auth;
    (void)message;
    return FALSE;
}

static void destroy(AUTH *auth)
{
    free(auth);
}

static bool_t marshal(AUTH *auth)
{
    XDR xdrs;

    xdrmem_create(&xdrs, auth->ah_marshalled, sizeof(auth->ah_marshalled), XDR_ENCODE);
    if (!xdr_opaque_auth(&xdrs, &auth->ah_cred) || !xdr_opaque_auth(&xdrs, &auth->ah_verf))
        return FALSE;
    auth->ah_marshalled_length = XDR_GETPOS(&xdrs);
    return TRUE;
}

AUTH *authnone_create(void)
{
    static const struct auth_ops ops = {nothing, put_marshalled, accept_verifier, cannot_refresh,
                                        nothing};
    static AUTH none = {.ah_ops = &ops};

    if (none.ah_marshalled_length == 0)
        marshal(&none);
    return &none;
}

bool_t xdr_authunix_parms(XDR *xdrs, struct authunix_parms *parms)
{
    return xdr_u_long(xdrs, &parms->aup_time) &&
           xdr_string(xdrs, &parms->aup_machname, MAX_MACHINE_NAME) &&
           xdr_u_int(xdrs, &parms->aup_uid) && xdr_u_int(xdrs, &parms->aup_gid) &&
           xdr_array(xdrs, (char **)(void *)&parms->aup_gids, &parms->aup_len, NGRPS, sizeof(gid_t),
                     (xdrproc_t)xdr_u_int);
}

/* The stamp is 0: it need only tell credentials of one machine apart, and so a run repeats. */
AUTH *authunix_create(char *machine, uid_t uid, gid_t gid, int group_count, gid_t *groups)
{
    static const struct auth_ops ops = {nothing, put_marshalled, accept_verifier, cannot_refresh,
                                        destroy};
    struct authunix_parms parms = {.aup_machname = machine,
                                   .aup_uid = uid,
                                   .aup_gid = gid,
                                   .aup_len = (u_int)group_count,
                                   .aup_gids = groups};
    char body[MAX_AUTH_BYTES];
    XDR xdrs;
    AUTH *auth;

    xdrmem_create(&xdrs, body, sizeof(body), XDR_ENCODE);
    if (group_count < 0 || !xdr_authunix_parms(&xdrs, &parms))
        return NULL;
    auth = mem_alloc(sizeof(*auth));
    if (auth == NULL)
        return NULL;
    auth->ah_ops = &ops;
    auth->ah_cred = (struct opaque_auth){AUTH_SYS, body, XDR_GETPOS(&xdrs)};
    marshal(auth);
    auth->ah_cred.oa_base = auth->ah_marshalled + 2 * BYTES_PER_XDR_UNIT;
    return auth;
}

AUTH *authunix_create_default(void)
{
    char machine[sizeof(SSS_INFO->machine)];

    for (size_t i = 0; i < sizeof(machine); i++)
        machine[i] = SSS_INFO->machine[i];
    machine[sizeof(machine) - 1] = '\0';
    return authunix_create(machine, 0, 0, 0, NULL);
}
