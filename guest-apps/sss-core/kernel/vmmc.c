/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adapter has no interrupt of its own: what it tells comes as a frame of eth0, as what a kernel
 * tells the harness goes there. It is not a frame of a segment, and no segment forwards its type.
 */
#include "vmmc.h"

#include <string.h>

#include "net.h"
#include "runqueue.h"
#include "sss/abi.h"
#include "task.h"
#include "vmmc_bind.h"
#include "vmmc_device.h"
#include "vmmc_export.h"
#include "vmmc_import.h"

/* Ends that could not be sent come before what their tasks, or others, ask for. Not inlined: it is
 * rare, and each frame's way is shorter without. */
static __attribute__((noinline)) void line_fills(bool full)
{
    vmmc_bindings_stop(full);
    if (full)
        return;
    vmmc_exports_tell();
    vmmc_imports_settle();
}

/* That it is low again may never be notified: among 10,000 frames that wait for buffers it is lost.
 */
static void look_at_line(void)
{
    if (vmmc_bindings_stopped() && !vmmc_line_full())
        line_fills(false);
}

static bool page_fault(uint64_t address)
{
    bool waits = vmmc_bindings_fault(address);

    look_at_line();
    return waits;
}

static void task_ended(struct task *task)
{
    vmmc_exports_of_ended(task);
    vmmc_imports_of_ended(task);
}

void vmmc_init(void)
{
    if (!vmmc_device_find())
        return;
    vmmc_exports_init();
    vmmc_imports_init();
    vmmc_bindings_init();
}

void vmmc_begin(void)
{
    if (!vmmc_device_begin())
        return;
    task_on_end(task_ended);
    trap_on_page_fault(page_fault);
}

void vmmc_restart(void)
{
    if (!vmmc_device_works())
        return;
    vmmc_imports_forget();
    vmmc_exports_forget();
}

/* ---- what the adapter tells ---- */

static const char HEAD[] = "\x02\x53\x48\x52\x00\x00\x88\xb5sundial-vmmc";
enum { PACKET_AT = NET_MAC + sizeof(HEAD) - 1, DATA_AT = PACKET_AT + sizeof(struct vmmc_packet) };

static void message_came(const struct vmmc_packet *packet, const uint8_t *data)
{
    struct vmmc_message message;

    memcpy(&message, data, sizeof(message));
    if (message.type == VMW_IMPORT)
        vmmc_export_asked(packet->sender, &message);
    else if (message.type == VMW_UNIMPORT)
        vmmc_export_left(packet->sender, &message);
    else if (message.type == VMW_ANSWER)
        vmmc_import_answered(packet->sender, &message);
    else if (message.type == VMW_GONE)
        vmmc_import_gone(packet->sender, message.export, message.generation);
}

static void packet_came(const uint8_t *frame, size_t length)
{
    struct vmmc_packet packet;

    memcpy(&packet, frame + PACKET_AT, sizeof(packet));
    if (packet.kind == VMW_FIFO)
        line_fills((packet.flags & VMW_FIFO_HIGH) != 0);
    else if (packet.sender < 1 || packet.sender > SSS_NODES)
        return;
    else if (packet.kind == VMW_NACK)
        vmmc_import_gone(packet.sender, packet.export, packet.generation);
    else if (packet.kind == VMW_CONTROL && packet.length == sizeof(struct vmmc_message) &&
             length >= DATA_AT + sizeof(struct vmmc_message))
        message_came(&packet, frame + DATA_AT);
    else if (packet.kind != VMW_CONTROL && (packet.flags & VMW_NOTIFY) != 0)
        vmmc_export_notified(packet.export, packet.generation);
}

bool vmmc_received(const uint8_t *frame, size_t length)
{
    if (!vmmc_device_works() || length < DATA_AT ||
        memcmp(frame + NET_MAC, HEAD, sizeof(HEAD) - 1) != 0)
        return false;
    packet_came(frame, length);
    look_at_line();
    return true;
}

/* ---- system calls ---- */

static long import(const uint64_t arguments[6])
{
    look_at_line();
    return vmmc_bindings_wait(import) ? TASK_AGAIN : vmmc_import_open(arguments);
}

long vmmc_call(unsigned call, const uint64_t arguments[6])
{
    struct task *task = task_current();

    if (!vmmc_device_works())
        return -SSS_ENOSYS;
    switch (call) {
    case SSS_VMMC_EXPORT:
        return vmmc_export_open(arguments[0]);
    case SSS_VMMC_UNEXPORT:
        return vmmc_export_close(task, arguments[0]);
    case SSS_VMMC_IMPORT:
        return import(arguments);
    case SSS_VMMC_UNIMPORT:
        return vmmc_import_close(task, arguments[0]);
    case SSS_VMMC_BIND:
        return vmmc_import_bind(arguments);
    case SSS_VMMC_UNBIND:
        return vmmc_unbind_pages(task, arguments[0], arguments[1]);
    default:
        return vmmc_import_source(arguments);
    }
}
