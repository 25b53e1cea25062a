/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the kernel and its tasks agree on: system calls, errors, memory-based queues. Also used by
 * the Linux endpoint, so nothing here is the kernel's own. Times are nanoseconds, sizes bytes,
 * words little endian in memory.
 */
#include <stdint.h>

/* ---- limits; what exceeds one is refused with a message, never truncated ---- */
enum {
    SSS_NODES = 64,       /* node ids 1..64; 0 names none */
    SSS_TASKS = 64,       /* living tasks of a node */
    SSS_THREADS = 128,    /* of a node */
    SSS_NAME = 32,        /* bytes of a task's name with its NUL */
    SSS_OPTIONS = 16384,  /* bytes of a task's options with their NUL */
    SSS_WAITS = 32,       /* words of one wait */
    SSS_SOCKETS = 64,     /* of a node */
    MB_KEYS = 4,          /* accesskeys of a task */
    MB_FIFOS = 24,        /* memory-based FIFOs of a task */
    MB_HANDLERS = 16,     /* entries for memory-based signals of a task */
    MB_CONNECTIONS = 512, /* logical connections of a node */
    MB_OPERATIONS = 256,  /* operations of a node that wait for their result */
    MB_SEGMENT = 131072,  /* bytes of the largest segment */
};

/* ---- errors of system calls, returned as negative numbers; MBCF statuses are in mbcf.h ---- */
enum sss_error {
    SSS_EPERM = 1,
    SSS_ENOENT = 2,
    SSS_EIO = 5,
    SSS_EAGAIN = 11,
    SSS_ENOMEM = 12,
    SSS_EFAULT = 14,
    SSS_EEXIST = 17,
    SSS_EINVAL = 22,
    SSS_EPIPE = 32,
    SSS_ENOSYS = 38,
    SSS_EMSGSIZE = 90,
    SSS_EADDRINUSE = 98,
    SSS_ECONNRESET = 104,
    SSS_ENOTCONN = 107,
    SSS_ETIMEDOUT = 110,
    SSS_ECONNREFUSED = 111,
};

/* System calls: number in rax, arguments in rdi rsi rdx r10 r8 r9, result in rax; rcx and r11 are
 * lost. */
enum sss_call {
    /* tasks, threads, time */
    SSS_EXIT = 0,      /* (status): the whole task ends */
    SSS_THREAD_CREATE, /* (entry, stack_top, argument) -> thread id */
    SSS_THREAD_EXIT,   /* () */
    SSS_YIELD,         /* () */
    /* (struct sss_wait *, count, timeout_ns or UINT64_MAX) -> index of a changed word, ETIMEDOUT */
    SSS_WAIT,
    SSS_CLOCK,       /* () -> ns of the node's clock, as in the samples */
    SSS_TASK_CREATE, /* (name, options, flags) -> task id */
    SSS_TASK_KILL,   /* (task): itself or one it created */
    SSS_TASK_STATUS, /* (task, struct sss_task_status *) */
    SSS_RECORD,      /* (text, length): whole lines to the samples port */
    SSS_LOG,         /* (text, length): to the console */
    SSS_READY,       /* (): this service serves */
    SSS_DONE,        /* (status): the node has done its steps (init only) */
    SSS_JOB,         /* (buffer, size) -> length of the node's job (init only) */
    SSS_RESTART, /* (next): forget every task, channel and socket as a crash would, then start init
                    again with options {"next":N}, the step to go on with (init only) */
    /* memory */
    /* (address or 0, bytes, SSS_READ|SSS_WRITE|SSS_EXECUTE) -> address; never write and execute */
    SSS_MEMORY_MAP = 20,
    SSS_MEMORY_UNMAP, /* (address, bytes) */
    /* (address, bytes, protection); EPERM: memory that is shared never becomes executable, and a
       CSM mapping never writable that was made without */
    SSS_MEMORY_PROTECT,
    /* (address, bytes) -> CSM id, until the caller unmaps them; whole pages of the caller */
    SSS_CSM_SHARE,
    /* (task or 0, CSM id, address, protection without SSS_EXECUTE): into itself or a task it
       created; EAGAIN: a page has 65,536 users already */
    SSS_CSM_MAP,
    /* MBCF: see mbcf.h for what each does; `task` is 0 for oneself or a task one has created */
    SSS_MB_KEY = 32,      /* (task, slot, key, permission) */
    SSS_MB_TASKQUE,       /* (task, FIFO address or 0, bytes) */
    SSS_MB_FIFO,          /* (task, FIFO address, bytes) */
    SSS_MB_FIFO_REMOVE,   /* (task, FIFO address) */
    SSS_MB_SIGNAL,        /* (struct mb_signal_setup *) */
    SSS_MB_SIGNAL_RETURN, /* (): only from a handler; does not return */
    SSS_MB_CONNECT,       /* (node, task, key) -> ltn */
    SSS_MB_CLOSE,         /* (ltn) */
    /* (struct mb_operation *): 0 when all of it is on its way, else an error or -status */
    SSS_MB_OPERATE,
    SSS_MB_CONNECTION, /* (ltn, struct mb_connection *) */
    /* The same as SSS_MB_OPERATE for an operation that mb_is_short: the first 48 bytes of its
       struct mb_operation, as they are there */
    SSS_MB_OPERATE_SHORT,
    /* UDP and TCP; `counter` is a word of the caller that the kernel increments whenever something
       changes */
    SSS_SOCKET = 48, /* (SSS_UDP | SSS_TCP, uint32_t *counter) -> socket */
    /* (socket, address, port): address 0 is any, port 0 lets the kernel choose; host byte order */
    SSS_BIND,
    SSS_SEND_TO, /* (socket, data, length, address, port) */
    /* (socket, data, size, struct sss_peer *) -> length; EAGAIN where nothing is there */
    SSS_RECEIVE_FROM,
    SSS_CONNECT,      /* (socket, address, port): begins; see SSS_SOCKET_STATE */
    SSS_LISTEN,       /* (socket, backlog) */
    SSS_ACCEPT,       /* (socket, uint32_t *counter, struct sss_peer *) -> socket; EAGAIN */
    SSS_SEND,         /* (socket, data, length) -> bytes taken, maybe fewer; EAGAIN where none */
    SSS_RECEIVE,      /* (socket, data, size) -> length, 0 at the end of the stream; EAGAIN */
    SSS_SOCKET_CLOSE, /* (socket) */
    SSS_SOCKET_STATE, /* (socket, struct sss_socket_state *) */
    /* Virtual memory-mapped communication: see vmmc.h; ENOSYS where the node has no adapter */
    SSS_VMMC_EXPORT = 64, /* (struct vmmc_export_setup *) -> id */
    SSS_VMMC_UNEXPORT,    /* (id) */
    SSS_VMMC_IMPORT,      /* (struct vmmc_import_setup *) -> handle */
    SSS_VMMC_UNIMPORT,    /* (handle) */
    SSS_VMMC_BIND,        /* (address or 0, pages, handle, first, flags) -> address */
    SSS_VMMC_UNBIND,      /* (address, pages) */
    SSS_VMMC_SOURCE,      /* (handle, address, pages) -> slot */
    SSS_CALLS             /* how many numbers there are */
};

enum { SSS_READ = 1, SSS_WRITE = 2, SSS_EXECUTE = 4 };
enum { SSS_UDP = 17, SSS_TCP = 6 };

/* SSS_TASK_CREATE flags. EMPTY: an address space without a thread (a dummy task), `name` only names
 * it. */
enum { SSS_EMPTY = 1 };

/* SSS_WAIT returns when *address != seen. Looks at the word first, so nothing is missed. 4-byte
 * aligned. */
struct sss_wait {
    const volatile uint32_t *address;
    uint32_t seen;
    uint32_t reserved;
};

struct sss_task_status {
    uint32_t state; /* enum sss_task_state */
    int32_t status; /* of SSS_EXIT; -vector for a fault; see SSS_KILLED */
    char name[SSS_NAME];
};
enum sss_task_state { SSS_GONE = 0, SSS_RUNNING = 1, SSS_SERVING = 2 /* after SSS_READY */ };
enum { SSS_KILLED = -256 };

struct sss_peer {
    uint32_t address;
    uint16_t port;
    uint16_t task; /* the peer's id where it is a task of this node, else 0 */
};

enum sss_socket_phase {
    SSS_CLOSED,
    SSS_CONNECTING,
    SSS_OPEN,
    SSS_LISTENING,
    SSS_ENDED /* peer has closed */,
    SSS_FAILED
};
struct sss_socket_state {
    uint32_t phase;
    int32_t error;        /* enum sss_error where FAILED */
    uint32_t readable;    /* bytes (TCP), datagrams (UDP), connections (listening) */
    uint32_t writable;    /* bytes that SSS_SEND would take now */
    uint32_t retransmits; /* TCP segments sent again */
    struct sss_peer local;
    struct sss_peer peer;
};

/* One page at SSS_INFO in every task, read-only for it; the kernel keeps it up to date. */
#ifdef SSS_LINUX
/* There, several tasks may live in one process: that of the calling thread. */
const volatile struct sss_info *sss_info(void);
#define SSS_INFO sss_info()
#else
#define SSS_INFO ((const volatile struct sss_info *)0x3ff000)
#endif
enum { SSS_CLOCK_TSC = 0, SSS_CLOCK_CALL = 1 };
struct sss_info {
    uint32_t version; /* 1 */
    uint32_t clock;   /* TSC: rdtsc is ns of the node's clock; CALL: ask with SSS_CLOCK */
    uint16_t node;
    uint16_t task;
    uint32_t address; /* of eth0, host byte order; 0 where there is none */
    /* counts operations that failed, and connections that broke; a word to wait for */
    uint32_t errors;
    uint32_t tasks;   /* counts changes of any task's state; a word to wait for */
    char machine[64]; /* the node's name in the topology */
};

/*
 * Where things lie in a task. Programs are linked at SSS_TEXT; anonymous memory without a wanted
 * address comes from SSS_HEAP upward; a thread's stack has an unmapped page below it.
 */
#define SSS_TEXT        0x400000ull
#define SSS_HEAP        0x40000000ull
#define SSS_STACK_TOP   0x7ffffff00000ull
#define SSS_STACK_BYTES 65536ull
