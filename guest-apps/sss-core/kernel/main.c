/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's table of contents: its parts in the order of their layers, and the functions that
 * lower layers call without knowing them. */
#include "boot_info.h"
#include "console.h"
#include "ethernet.h"
#include "gates.h"
#include "initrd.h"
#include "interrupt.h"
#include "memory.h"
#include "net.h"
#include "node.h"
#include "paging.h"
#include "panic.h"
#include "pci.h"
#include "records.h"
#include "runqueue.h"
#include "schedule.h"
#include "services.h"
#include "sockets.h"
#include "task.h"
#include "task_table.h"
#include "timer.h"
#include "virtio_console.h"
#include "vmmc.h"

#ifndef SSS_VERSION
#define SSS_VERSION "1.0"
#endif

_Noreturn void kernel_main(uint64_t start_info_physical); /* boot.S */

void kernel_main(uint64_t start_info_physical)
{
    console_init();                      /* output on the serial port */
    panic_who(task_print_current);       /* a panic names the current task */
    boot_info_init(start_info_physical); /* command line, initrd, memory map */
    memory_init();                       /* physical pages */
    paging_init();                       /* the kernel's mappings, with protection */
    initrd_init();                       /* names of programs */
    gates_init();                        /* exceptions and system calls */
    interrupt_init();                    /* local APIC and I/O APIC */
    timer_init();                        /* the clock */
    pci_scan();
    virtio_console_init();       /* named ports of the host */
    records_init();              /* the port of the samples */
    net_init(ethernet_received); /* adapters, and whose their frames are */
    node_init(1, 1, net_mac(0)); /* MBCF; the job says later which node this is */
    sockets_init();              /* UDP and TCP */
    vmmc_init();                 /* the adapter of a backplane */
    runqueue_on_idle(node_idle);
    task_ids_from(node_task_open);
    task_on_end(node_task_ended);
    task_on_end(system_task_ended); /* init must not end early */
    task_on_end(sockets_task_ended);
    system_start(SSS_VERSION); /* the job, the identity, init */
    schedule_run();
}
