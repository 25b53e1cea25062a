/* SPDX-License-Identifier: Apache-2.0 */
#include "binding.h"

#include <jansson.h>
#include <rpc/rpc.h>

#include <rpc/pmap_prot.h> /* does not stand alone */

#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "samples.h"
#include "sends.h"

enum {
    NS_PER_MS = 1000000,
    RETRY_S = 1,
    ATTEMPT_S = 5,
    FIRST_PAUSE_MS = 10,
    LONGEST_PAUSE_MS = 500,
};

static void pause_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS};

    nanosleep(&time, NULL);
}

/* One question; 0 with the reason in `status` if the answer is not a port. */
static unsigned short ask(const struct settings *settings, enum clnt_stat *status)
{
    struct sockaddr_in portmapper = settings->server;
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct timeval retry = {.tv_sec = RETRY_S};
    struct timeval total = {.tv_sec = ATTEMPT_S};
    struct pmap question = {
        .pm_prog = settings->program,
        .pm_vers = settings->version,
        .pm_prot = settings->transport == TRANSPORT_UDP ? IPPROTO_UDP : IPPROTO_TCP,
    };
    unsigned short port = 0;
    int handle = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CLIENT *client = NULL;

    *status = RPC_SYSTEMERROR;
    portmapper.sin_port = htons(PMAPPORT);
    /* Bound here, or the library would take a random reserved port. */
    if (handle >= 0 && bind(handle, (struct sockaddr *)&any, sizeof(any)) == 0)
        client = clntudp_create(&portmapper, PMAPPROG, PMAPVERS, retry, &handle);
    if (client != NULL) {
        *status = clnt_call(client, PMAPPROC_GETPORT, (xdrproc_t)xdr_pmap, (char *)&question,
                            (xdrproc_t)xdr_u_short, (char *)&port, total);
        clnt_destroy(client);
    }
    if (handle >= 0)
        close(handle);
    if (*status == RPC_SUCCESS && port == 0)
        *status = RPC_PROGNOTREGISTERED;
    return *status == RPC_SUCCESS ? port : 0;
}

void binding_find_port(struct settings *settings)
{
    uint64_t start = clock_now_ns();
    uint64_t deadline = start + (uint64_t)settings->binding_timeout_ms * NS_PER_MS;
    unsigned sent_before = sends_count();
    enum clnt_stat status;
    unsigned short port;
    int attempts = 0;
    long pause = FIRST_PAUSE_MS;
    uint64_t end;
    json_t *line;

    for (;;) {
        port = ask(settings, &status);
        end = clock_now_ns();
        attempts++;
        if (port != 0 || end >= deadline)
            break;
        pause_ms(pause);
        pause = pause * 2 > LONGEST_PAUSE_MS ? LONGEST_PAUSE_MS : pause * 2;
    }
    settings->server.sin_port = htons(port);
    line = samples_object("binding");
    json_object_update_new(
        line, json_pack("{ss sI sI sb si si si}", "transport", settings->transport_text, "start",
                        (json_int_t)start, "end", (json_int_t)end, "ok", port != 0, "attempts",
                        attempts, "sent", (int)(sends_count() - sent_before), "port", (int)port));
    if (port == 0)
        json_object_set_new(line, "error", json_string(clnt_sperrno(status)));
    samples_put(line);
}
