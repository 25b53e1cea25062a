/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, in words: those of the library on Linux, so that rows of both systems can be
 * compared. */
#include <rpc/rpc.h>
#include <sss/system.h>
#include <stdio.h>

enum { TEXT = 256 };

char *clnt_sperrno(enum clnt_stat status)
{
    static const char *const texts[] = {
        [RPC_SUCCESS] = "RPC: Success",
        [RPC_CANTENCODEARGS] = "RPC: Can't encode arguments",
        [RPC_CANTDECODERES] = "RPC: Can't decode result",
        [RPC_CANTSEND] = "RPC: Unable to send",
        [RPC_CANTRECV] = "RPC: Unable to receive",
        [RPC_TIMEDOUT] = "RPC: Timed out",
        [RPC_VERSMISMATCH] = "RPC: Incompatible versions of RPC",
        [RPC_AUTHERROR] = "RPC: Authentication error",
        [RPC_PROGUNAVAIL] = "RPC: Program unavailable",
        [RPC_PROGVERSMISMATCH] = "RPC: Program/version mismatch",
        [RPC_PROCUNAVAIL] = "RPC: Procedure unavailable",
        [RPC_CANTDECODEARGS] = "RPC: Server can't decode arguments",
        [RPC_SYSTEMERROR] = "RPC: Remote system error",
        [RPC_UNKNOWNHOST] = "RPC: Unknown host",
        [RPC_PMAPFAILURE] = "RPC: Port mapper failure",
        [RPC_PROGNOTREGISTERED] = "RPC: Program not registered",
        [RPC_FAILED] = "RPC: Failed (unspecified error)",
        [RPC_UNKNOWNPROTO] = "RPC: Unknown protocol",
    };
    const char *text = (unsigned)status < sizeof(texts) / sizeof(texts[0]) ? texts[status] : NULL;

    return (char *)(uintptr_t)(text == NULL ? "RPC: (unknown error code)" : text);
}

static const char *auth_text(enum auth_stat why)
{
    static const char *const texts[] = {
        [AUTH_OK] = "Authentication OK",
        [AUTH_BADCRED] = "Invalid client credential",
        [AUTH_REJECTEDCRED] = "Server rejected credential",
        [AUTH_BADVERF] = "Invalid client verifier",
        [AUTH_REJECTEDVERF] = "Server rejected verifier",
        [AUTH_TOOWEAK] = "Client credential too weak",
        [AUTH_INVALIDRESP] = "Invalid server verifier",
        [AUTH_FAILED] = "Failed (unspecified error)",
    };

    return (unsigned)why < sizeof(texts) / sizeof(texts[0]) ? texts[why]
                                                            : "(unknown authentication error)";
}

static char *describe(const char *message, const struct rpc_err *error)
{
    static char text[TEXT];
    const char *status = clnt_sperrno(error->re_status);

    switch (error->re_status) {
    case RPC_CANTSEND:
    case RPC_CANTRECV:
    case RPC_SYSTEMERROR:
        snprintf(text, sizeof(text), "%s: %s; error %d", message, status, error->re_errno);
        break;
    case RPC_VERSMISMATCH:
    case RPC_PROGVERSMISMATCH:
        snprintf(text, sizeof(text), "%s: %s; low version = %u, high version = %u", message, status,
                 error->re_vers.low, error->re_vers.high);
        break;
    case RPC_AUTHERROR:
        snprintf(text, sizeof(text), "%s: %s; why = %s", message, status, auth_text(error->re_why));
        break;
    default:
        snprintf(text, sizeof(text), "%s: %s", message, status);
        break;
    }
    return text;
}

char *clnt_sperror(CLIENT *client, const char *message)
{
    struct rpc_err error;

    clnt_geterr(client, &error);
    return describe(message, &error);
}

char *clnt_spcreateerror(const char *message)
{
    struct rpc_err error = rpc_createerr.cf_error;

    error.re_status = rpc_createerr.cf_stat;
    return describe(message, &error);
}

void clnt_perror(CLIENT *client, const char *message)
{
    sss_log("%s", clnt_sperror(client, message));
}

void clnt_perrno(enum clnt_stat status)
{
    sss_log("%s", clnt_sperrno(status));
}

void clnt_pcreateerror(const char *message)
{
    sss_log("%s", clnt_spcreateerror(message));
}
