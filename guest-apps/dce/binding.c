/* SPDX-License-Identifier: Apache-2.0 */
#include "binding.h"

#include <stdlib.h>

#include "clock.h"
#include "samples.h"

void dce_binding_open(struct dce_binding *binding, const struct dce_client_settings *settings,
                      size_t results_most, unsigned port, int socket_buffer, bool broadcast)
{
    size_t room = dce_recvq_room(results_most);

    binding->memory = malloc(dce_xmitq_memory(&settings->xmitq));
    binding->results = malloc(room);
    if (binding->memory == NULL || binding->results == NULL)
        samples_fail("out of memory");
    /* Touched now, so that no page fault falls into a measured call. */
    memset(binding->memory, 0, dce_xmitq_memory(&settings->xmitq));
    memset(binding->results, 0, room);
    dce_client_init(&binding->machine, settings, binding->memory, binding->results, room);
    dce_link_open(&binding->link, port, socket_buffer, broadcast);
}

void dce_binding_close(struct dce_binding *binding)
{
    dce_link_close(&binding->link);
    free(binding->memory);
    free(binding->results);
    binding->memory = binding->results = NULL;
}

DCE_MARKER void dce_marshal(struct dce_arguments *arguments, const struct dce_operation *operation,
                            const uint8_t *bytes, size_t length)
{
    *arguments = (struct dce_arguments){*operation, bytes, length};
}

/* Takes the machine's actions; whether the call has ended. */
static bool act(struct dce_binding *binding)
{
    struct dce_packet packet;

    for (;;)
        switch (dce_client_next(&binding->machine, clock_now_ns(), &packet)) {
        case DCE_SEND:
            xmitq_send(&packet, runtime_send, &binding->link);
            break;
        case DCE_DONE:
            return true;
        default:
            return false;
        }
}

/* Waits for the next event, and tells the machine. */
static void wait_for_event(struct dce_binding *binding, uint64_t deadline)
{
    struct dce_link *link = &binding->link;
    struct dce_peer from;
    struct dce_pdu pdu;
    long length;

    if (runtime_wait(&link, 1, deadline, false) == 0) {
        dce_client_timeout(&binding->machine, clock_now_ns());
        return;
    }
    length = runtime_receive(link, &from);
    if (length < 0)
        return;
    if (dce_pdu_decode(link->datagram, (size_t)length, &pdu))
        client_machine_packet(&binding->machine, clock_now_ns(), &from, &pdu);
    else
        binding->machine.counts.of[DCE_COUNT_malformed]++;
}

DCE_MARKER uint32_t dce_transmit(struct dce_binding *binding, const struct dce_arguments *arguments)
{
    uint64_t now = clock_now_ns(), cancel_at = DCE_NEVER;

    if (binding->cancel_after_ns != 0)
        cancel_at = dce_later(now, binding->cancel_after_ns);
    dce_client_call(&binding->machine, now, &arguments->operation, arguments->bytes,
                    arguments->length);
    while (!act(binding)) {
        wait_for_event(binding, dce_earlier(dce_client_deadline(&binding->machine), cancel_at));
        if (cancel_at != DCE_NEVER && clock_now_ns() >= cancel_at) {
            dce_client_cancel(&binding->machine, clock_now_ns());
            cancel_at = DCE_NEVER;
        }
    }
    return binding->machine.status;
}

void dce_settle(struct dce_binding *binding)
{
    while (dce_client_deadline(&binding->machine) != DCE_NEVER) {
        wait_for_event(binding, dce_client_deadline(&binding->machine));
        act(binding);
    }
}
