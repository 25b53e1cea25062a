/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the parts of the kernel know of each other. One CPU; the kernel runs with interrupts off and
 * is never preempted, so nothing here locks. Physical memory is mapped at DIRECT_MAP; the kernel is
 * linked at KERNEL_BASE + 1 MiB.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sss/abi.h"
#include "sss/frame.h"

#define DIRECT_MAP  0xffff800000000000ull
#define DEVICE_MAP  0xffff808000000000ull
#define KERNEL_BASE 0xffffffff80000000ull
#define PAGE        4096ull

/* ---- boot: boot.S calls kernel_main with the PVH start info, on a stack of its own, interrupts
 * off ---- */
_Noreturn void kernel_main(uint64_t start_info_physical); /* main.c */
/* the memory map, the direct map, where the initrd is */
void memory_init(uint64_t start_info_physical);
/* traps, system calls, interrupt controllers with everything masked */
void trap_init(void);
void time_init(void);       /* the TSC is the clock until time_select */
void time_select(bool tsc); /* the job's: TSC in virtual time, else the HPET */
void task_init(void);
/* runs threads for ever; halts where none can run */
_Noreturn void schedule_run(void);

/* ---- memory.c ---- */
/* one zeroed page in the direct map, NULL where none is left */
void *page_alloc(void);
void page_free(void *page);
void *pages_alloc(size_t count);        /* contiguous; at start only for more than one page */
uint64_t physical(const void *address); /* of the direct map or the kernel image */
void *direct(uint64_t physical_address);
void *map_device(uint64_t physical_address, size_t bytes); /* uncached */
size_t pages_free(void);
size_t pages_total(void);
/* Kernel objects of less than a page. */
void *kmalloc(size_t bytes);
void kfree(void *object);

/* ---- console.c: the first serial port; the only output before the records port is there ---- */
void console_init(void);
void console_write(const char *text, size_t length);
int console_read(void); /* a byte that was typed, or -1 */
void kprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int kvsnprintf(char *text, size_t size, const char *format, va_list arguments);
int ksnprintf(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- panic.c: prints what, task, registers and a symbolised backtrace, then ends the machine ----
 */
struct trap_frame;
_Noreturn void panic(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void panic_at(const struct trap_frame *frame, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- trap.c ---- */
typedef void (*interrupt_handler)(void);
/* A free vector for a message-signalled interrupt; the handler runs with interrupts off and need
 * not end it. */
int interrupt_allocate(interrupt_handler handler);
/* an edge-triggered ISA interrupt through the I/O APIC */
void interrupt_route(unsigned gsi, int vector);

/* ---- time.c ---- */
uint64_t now_ns(void); /* rdtsc under virtual time, the HPET else; see job */
struct timer {
    struct timer *next;
    uint64_t due_ns;
    void (*expired)(struct timer *timer); /* in the timer interrupt */
    void *context;
    bool armed;
};
void timer_set(struct timer *timer, uint64_t due_ns);
void timer_cancel(struct timer *timer);

/* ---- task.c, schedule.c ---- */
struct task;
struct thread;
struct task *task_current(void);
struct thread *thread_current(void);
struct task *task_by_id(uint16_t id);
uint16_t task_id(const struct task *task);
const char *task_name(const struct task *task);
/* From `name` in the initrd; creator NULL: the kernel. -> id or a negative error. */
int task_create(const char *name, const char *options, unsigned flags, struct task *creator);
int task_create_as(uint16_t id, const char *name, const char *options);
void task_kill(struct task *task, int status);
/* Changed memory of the task, or of a task it shares CSM with: its waiting threads look again. */
void task_memory_changed(struct task *task);
/* 0: the current task; else one that it has created, or NULL */
struct task *task_owned(uint16_t id);
/* as a crash would: all tasks and threads vanish, and nobody is told */
void tasks_forget(void);
/* What the information pages of all tasks say, of those that live too. */
void task_identity(uint16_t node, uint32_t address, const char *machine);
void task_operation_failed(struct task *task); /* counted in its information page */
/* Handlers of the current task run on this stack, in the current thread, entered through
 * `trampoline` (rdi: the handler). */
int thread_signal_setup(uint64_t trampoline, uint64_t stack_top);
void task_signalled(struct task *task, uint64_t handler);
/*
 * Sleeping in a system call: the call returns TASK_AGAIN after thread_sleep, and is called anew
 * with the same arguments when thread_wake_all(queue) has been called.
 */
struct wait_queue {
    struct thread *first;
};
void thread_sleep(struct wait_queue *queue);
void thread_wake_all(struct wait_queue *queue);
/* of the current thread: 0 when a system call begins, kept over TASK_AGAIN */
uint64_t *call_progress(void);

/* What the monitor shows; false behind the last one. */
struct task_row {
    uint16_t id, creator; /* creator 0: the kernel */
    enum sss_task_state state;
    unsigned threads;
    size_t pages;
    uint64_t run_ns;
    const char *name;
};
struct thread_row {
    uint16_t id, task;
    const char *state;
    uint64_t run_ns;
    uint64_t instruction; /* where it goes on at user level */
};
bool task_at(unsigned index, struct task_row *row);
bool thread_at(unsigned index, struct thread_row *row);

/* ---- user memory: all system calls go through these; false where it is not mapped so for the
 * current task ---- */
bool user_read(void *to, uint64_t from, size_t length);
bool user_write(uint64_t to, const void *from, size_t length);
long user_string(char *to, size_t size, uint64_t from); /* -> length without NUL, or -1 */
/* The byte of `task` at `address`, good to the end of its page; NULL with *why = MB_FAULT or
 * MB_READONLY. */
void *task_page(struct task *task, uint64_t address, bool write, int *why);

/* ---- initrd.c: a cpio newc archive ---- */
const void *initrd_find(const char *name, size_t *length); /* `name` without folder */
const char *initrd_at(unsigned index);                     /* NULL after the last */

/* ---- fwcfg.c, job.c ---- */
/* Reads opt/sundial/job; the text without padding. NULL where there is none. */
const char *job_text(size_t *length);

/* ---- net.c over virtio_net.c: adapters eth0.. ---- */
struct sss_frame *frame_get(void); /* users == 1 */
void frame_put(struct sss_frame *frame);
bool net_transmit(unsigned adapter, struct sss_frame *frame); /* takes a reference of its own */
unsigned net_adapters(void);
const uint8_t *net_mac(unsigned adapter);
/* the job's: frames to other unicast addresses are dropped */
void net_set_mac(unsigned adapter, const uint8_t mac[6]);
/* Called by virtio_net.c for each frame, in the interrupt; dispatches by EtherType to mbcf and
 * lwIP. */
void net_received(unsigned adapter, const uint8_t *frame, size_t length);

/* ---- records.c over virtio_console.c: the port sundial.samples ---- */
void records_write(const char *text, size_t length);

/* ---- sockets.c over lwip/: system calls SSS_SOCKET.. and the frames of IPv4 and ARP ---- */
void sockets_init(void);
void sockets_interface(unsigned adapter, uint32_t address, uint32_t netmask, uint16_t mtu);
/* a static ARP entry */
void sockets_neighbour(unsigned adapter, uint32_t address, const uint8_t mac[6]);
void sockets_received(unsigned adapter, const uint8_t *frame, size_t length);
void sockets_task_gone(struct task *task);
void sockets_restart(void);
struct socket_row {
    uint16_t number, task;
    int protocol; /* SSS_UDP or SSS_TCP */
    struct sss_socket_state state;
};
/* for the monitor; false behind the last one */
bool socket_at(unsigned index, struct socket_row *row);
long sockets_call(unsigned call, const uint64_t arguments[6]);

/* ---- node.c over mbcf/: system calls SSS_MB_... and the frames of MBCF ---- */
void node_init(uint16_t node, uint32_t epoch, const uint8_t mac[6]);
void node_received(const uint8_t *frame, size_t length);
void node_idle(void); /* before the CPU halts */
long node_call(unsigned call, const uint64_t arguments[6]);
/* SSS_MB_OPERATE, by a way of its own: most calls are this one */
long node_operate(uint64_t operation);
struct mbcf *node_mbcf(void);
/* wanted 0: any -> the task's id, or a negative error */
int node_task_open(struct task *task, uint16_t wanted);
void node_task_gone(struct task *task);
void node_restart(void); /* forgets channels, connections and tasks; a new epoch */

/* ---- main.c ---- */
void system_done(int status); /* SSS_DONE: the control frame, after all records are out */
void system_task_gone(const struct task *task); /* node.c: one has ended */
/* SSS_RESTART: everything but the adapters begins anew; init goes on with step `next` */
void system_restart(uint64_t next);

/* ---- monitor.c: the console's commands, also of the port sundial.exec ---- */
/* -> 0, or 1 where the line was no command. */
int monitor_line(const char *line, void (*print)(void *context, const char *text), void *context);

/* ---- cpu.h, ports ---- */
enum { TASK_AGAIN = -4096 };
