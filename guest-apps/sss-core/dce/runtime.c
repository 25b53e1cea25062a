/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of DCE RPC over SSS-CORE's UDP. */
#include "runtime.h"

#include <options.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "machine.h"
#include "sss/system.h"

enum { TABLE_BYTES = 7 * 1024 * 1024 /* a node with 16 MiB has some more */ };

/* ---- sockets ---- */

void dce_link_open(struct dce_link *link, unsigned port, int socket_buffer, bool broadcast)
{
    struct sss_socket_state state;
    int error;

    (void)socket_buffer; /* all have one size (kernel/udp.c), */
    (void)broadcast;     /* and may broadcast */
    link->datagram = malloc(DCE_DATAGRAM);
    if (link->datagram == NULL)
        task_fail("out of memory");
    link->arrivals = link->taken = 0;
    link->handle = sss_socket(SSS_UDP, &link->arrivals);
    if (link->handle < 0)
        task_fail("cannot open a socket (error %d)", -link->handle);
    error = sss_bind(link->handle, 0, (uint16_t)port);
    if (error == 0)
        error = sss_socket_state(link->handle, &state);
    if (error < 0)
        task_fail("cannot bind port %u (error %d)", port, -error);
    link->port = state.local.port;
}

void dce_link_close(struct dce_link *link)
{
    if (link->handle >= 0)
        sss_socket_close(link->handle);
    free(link->datagram);
    *link = (struct dce_link){.handle = -1};
}

DCE_MARKER void runtime_send(void *context, const struct dce_peer *to, const uint8_t *bytes,
                             size_t length)
{
    const struct dce_link *link = context;

    sss_send_to(link->handle, bytes, length, to->address, to->port);
}

static uint32_t arrivals(const struct dce_link *link)
{
    return *(const volatile uint32_t *)&link->arrivals;
}

static unsigned ready(struct dce_link *const *links, unsigned count)
{
    unsigned mask = 0;

    for (unsigned i = 0; i < count; i++)
        mask |= arrivals(links[i]) != links[i]->taken ? 1u << i : 0;
    return mask;
}

DCE_MARKER unsigned runtime_wait(struct dce_link *const *links, unsigned count,
                                 uint64_t deadline_ns, bool may_end)
{
    struct sss_wait words[DCE_LINKS];
    unsigned mask = ready(links, count);
    uint64_t now;

    (void)may_end;
    if (mask != 0)
        return mask;
    for (unsigned i = 0; i < count; i++)
        words[i] = (struct sss_wait){.address = &links[i]->arrivals, .seen = links[i]->taken};
    now = clock_now_ns();
    sss_wait(words, count,
             deadline_ns == DCE_NEVER ? SSS_FOREVER
             : deadline_ns > now      ? deadline_ns - now
                                      : 0);
    return ready(links, count);
}

DCE_MARKER long runtime_receive(struct dce_link *link, struct dce_peer *from)
{
    uint32_t counted = arrivals(link);
    struct sss_peer peer = {0};
    long length = sss_receive_from(link->handle, link->datagram, DCE_DATAGRAM, &peer);

    /* An event for each datagram, and for each one that was refused. */
    link->taken = length == -SSS_EAGAIN ? counted : link->taken + 1;
    *from = (struct dce_peer){peer.address, peer.port};
    return length;
}

/* ---- the rest ---- */

void runtime_start(void)
{
}

/* Tasks are ended from outside, and write nothing then. */
void runtime_hold_end(void)
{
}

bool runtime_is_to_end(void)
{
    return false;
}

void runtime_ready(void)
{
    sss_ready();
}

void runtime_sleep(uint64_t ns)
{
    static const volatile uint32_t nothing;

    sss_wait_word(&nothing, 0, ns);
}

size_t runtime_memory(void)
{
    return TABLE_BYTES;
}

/* Not calloc, which would clear once more what the kernel has cleared: a server should serve when
 * its clients begin. */
void *runtime_table(size_t bytes)
{
    return sss_map(NULL, (bytes + 4095) & ~(size_t)4095, SSS_READ | SSS_WRITE);
}

struct dce_self runtime_self(void)
{
    static char machine[sizeof(SSS_INFO->machine)], step[16];

    for (size_t i = 0; i < sizeof(machine) - 1; i++)
        machine[i] = SSS_INFO->machine[i];
    if (options_step() >= 0)
        snprintf(step, sizeof(step), "%ld", options_step());
    return (struct dce_self){
        .machine = machine, .step = step, .seed = options_seed(), .process = SSS_INFO->task};
}
