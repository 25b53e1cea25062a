/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who calls (RFC 5531 section 8.2, AUTH_SYS: appendix A). */
#include <rpc/xdr.h>

#define MAX_AUTH_BYTES   400
#define MAX_MACHINE_NAME 255
#define NGRPS            16

enum auth_stat {
    AUTH_OK = 0,
    AUTH_BADCRED = 1,
    AUTH_REJECTEDCRED = 2,
    AUTH_BADVERF = 3,
    AUTH_REJECTEDVERF = 4,
    AUTH_TOOWEAK = 5,
    AUTH_INVALIDRESP = 6,
    AUTH_FAILED = 7,
};

#define AUTH_NONE  0
#define AUTH_NULL  0
#define AUTH_SYS   1
#define AUTH_UNIX  AUTH_SYS
#define AUTH_SHORT 2

struct opaque_auth {
    enum_t oa_flavor;
    caddr_t oa_base;
    u_int oa_length;
};
bool_t xdr_opaque_auth(XDR *, struct opaque_auth *);
extern struct opaque_auth _null_auth;

typedef struct AUTH AUTH;
struct auth_ops {
    void (*ah_nextverf)(AUTH *);
    bool_t (*ah_marshal)(AUTH *, XDR *);
    bool_t (*ah_validate)(AUTH *, struct opaque_auth *);
    bool_t (*ah_refresh)(AUTH *, void *);
    void (*ah_destroy)(AUTH *);
};
struct AUTH {
    struct opaque_auth ah_cred;
    struct opaque_auth ah_verf;
    const struct auth_ops *ah_ops;
    void *ah_private;
    u_int ah_marshalled_length; /* credential and verifier as they go out */
    char ah_marshalled[8 + MAX_AUTH_BYTES + 8];
};

#define AUTH_NEXTVERF(auth)       ((auth)->ah_ops->ah_nextverf)(auth)
#define auth_nextverf(auth)       AUTH_NEXTVERF(auth)
#define AUTH_MARSHALL(auth, xdrs) ((auth)->ah_ops->ah_marshal)(auth, xdrs)
#define auth_marshall(auth, xdrs) AUTH_MARSHALL(auth, xdrs)
#define AUTH_VALIDATE(auth, verf) ((auth)->ah_ops->ah_validate)(auth, verf)
#define auth_validate(auth, verf) AUTH_VALIDATE(auth, verf)
#define AUTH_REFRESH(auth, msg)   ((auth)->ah_ops->ah_refresh)(auth, msg)
#define auth_refresh(auth, msg)   AUTH_REFRESH(auth, msg)
#define AUTH_DESTROY(auth)        ((auth)->ah_ops->ah_destroy)(auth)
#define auth_destroy(auth)        AUTH_DESTROY(auth)

struct authunix_parms {
    u_long aup_time;
    char *aup_machname;
    uid_t aup_uid;
    gid_t aup_gid;
    u_int aup_len;
    gid_t *aup_gids;
};
#define authsys_parms authunix_parms
bool_t xdr_authunix_parms(XDR *, struct authunix_parms *);
#define xdr_authsys_parms xdr_authunix_parms

AUTH *authnone_create(void);
/* NULL where the credential would exceed MAX_AUTH_BYTES, has too many groups, or memory is short.
 */
AUTH *authunix_create(char *machine, uid_t uid, gid_t gid, int group_count, gid_t *groups);
AUTH *authunix_create_default(void); /* this node, uid 0 */
#define authsys_create         authunix_create
#define authsys_create_default authunix_create_default
