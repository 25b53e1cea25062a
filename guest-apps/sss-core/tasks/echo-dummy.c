/* SPDX-License-Identifier: Apache-2.0 */
/* A dummy task of the Sun RPC server over MBCF type 3b: created by echo-server, one for each
 * client. */
#include <rpc/mbcf.h>

#include "echo_service.h"
#include "options.h"

enum { CSM_MOST = 65535 };

static void dispatch(struct svc_req *request, SVCXPRT *transport)
{
    echo_service_dispatch(request, transport);
    echo_service_note_copies(); /* for the dispatcher, which does not hear of each call */
}

static void begin(SVCXPRT *transport, volatile uint64_t *words)
{
    echo_service.counters = words;
    echo_service_prepare(false);
    if (!svc_register(transport, echo_service.program->number, echo_service.program->version,
                      dispatch, 0))
        task_fail("out of memory");
}

int main(int argc, char **argv)
{
    int csm;

    options_open(argc, argv, "echo-server");
    csm = (int)options_integer("csm", -1, 0, CSM_MOST);
    echo_service_read_options();
    options_check_all_taken();
    return svcmb_dummy(csm, begin);
}
