/* SPDX-License-Identifier: Apache-2.0 */
/* What both ports of the own runtime share. */
#include "port.h"

#include "options.h"
#include "sss/system.h"

struct timeval port_timeval(uint64_t ns)
{
    return (struct timeval){.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_usec = (suseconds_t)(ns % 1000000000u / 1000u)};
}

void port_sleep_ms(uint64_t ms)
{
    static const volatile uint32_t nothing;

    sss_wait_word(&nothing, 0, ms * NS_PER_MS);
}

void port_set_auth(struct caller *caller)
{
    const struct settings *settings = caller->settings;
    gid_t gids[NGRPS];

    if (!settings->auth_sys)
        return;
    for (size_t i = 0; i < settings->auth_gid_count; i++)
        gids[i] = (gid_t)settings->auth_gids[i];
    auth_destroy(caller->handle->cl_auth);
    caller->handle->cl_auth = authunix_create((char *)(uintptr_t)settings->auth_machine,
                                              (uid_t)settings->auth_uid, (gid_t)settings->auth_gid,
                                              (int)settings->auth_gid_count, gids);
    if (caller->handle->cl_auth == NULL)
        options_fail("option auth: the credential is longer than RFC 5531 allows");
}

void port_disconnect(struct caller *caller)
{
    if (caller->handle != NULL) {
        auth_destroy(caller->handle->cl_auth);
        clnt_destroy(caller->handle);
    }
    caller->handle = NULL;
}

void port_begin(struct caller *caller, uint32_t xid)
{
    clnt_control(caller->handle, CLSET_XID, &xid);
}

unsigned port_retransmits(const struct caller *caller)
{
    unsigned sent = 0;

    if (caller->handle != NULL)
        clnt_control(caller->handle, CLGET_RETRANSMITS, &sent);
    return sent;
}

enum clnt_stat port_call(struct caller *caller, struct exchange *exchange,
                         struct call_record *record)
{
    struct timeval total = port_timeval(exchange->decode != NULL ? caller->settings->total_ns : 0);
    enum clnt_stat status;

    record->start_ns = sss_now_ns();
    status = clnt_call(caller->handle, exchange->procedure, exchange->encode, exchange->argument,
                       exchange->decode, exchange->result, total);
    record->end_ns = sss_now_ns();
    return status;
}

void port_note(struct call_record *record, enum call_failure failure, enum clnt_stat status,
               const char *detail)
{
    switch (failure) {
    case CALL_WRONG_PAYLOAD:
        record->error = "reply does not hold the expected payload";
        return;
    case CALL_UNCONNECTED:
        record->start_ns = record->end_ns = sss_now_ns();
        break;
    case CALL_FAILED:
        break;
    }
    record->error = clnt_sperrno(status);
    record->detail = detail;
}

/* There is no line for it in the records: no frame of it is a portmapper's. */
int port_find_on_node(struct caller *caller, const struct settings *settings,
                      const char *(*text)(void), bool (*is_hopeless)(void))
{
    uint64_t deadline = sss_now_ns() + settings->binding_ns;
    uint64_t pause = FIRST_PAUSE_MS;

    while (!caller->port->connect(caller)) {
        if (is_hopeless()) {
            task_error("node %u: %s: %s", settings->node, clnt_sperrno(rpc_createerr.cf_stat),
                       text());
            return OPTIONS_BAD;
        }
        if (sss_now_ns() >= deadline)
            break; /* each call looks for it once more, and says why it has failed */
        port_sleep_ms(pause);
        pause = port_next_pause_ms(pause);
    }
    return 0;
}

enum clnt_stat port_counted_call(struct caller *caller, struct exchange *exchange,
                                 struct call_record *record)
{
    unsigned before = port_retransmits(caller);
    enum clnt_stat status = port_call(caller, exchange, record);

    record->retransmits = (uint16_t)(port_retransmits(caller) - before);
    return status;
}
