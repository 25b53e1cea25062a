/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The binder: task 1 of every node, which tells where programs are served over MBCF, as a
 * portmapper tells ports. One TASKQUE write asks, one remote WRITE into the asker's memory answers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sss/mbcf.h"

enum { MB_BINDER_TASK = 1, MB_BINDER_PLACES = 64 };
enum mb_binder_kind { MB_BINDER_SET = 1, MB_BINDER_UNSET = 2, MB_BINDER_FIND = 3 };
enum mb_binder_status {
    MB_BINDER_PENDING = 0,
    MB_BINDER_FOUND = 1,
    MB_BINDER_NOT_FOUND = 2,
    MB_BINDER_REFUSED = 3
};

/* The data of the TASKQUE write. */
struct mb_binder_query {
    uint32_t magic; /* MB_BINDER_MAGIC */
    uint32_t kind;
    uint32_t program;
    uint32_t version;
    uint32_t type; /* enum mbcf_type */
    uint32_t reserved;
    uint64_t answer; /* address of the asker's struct mb_binder_answer */
};
enum { MB_BINDER_MAGIC = 0x4442424d };

/* Written by the binder with one WRITE; `status` is last looked at by the asker. */
struct mb_binder_answer {
    uint16_t node;
    uint16_t task;
    volatile uint32_t status; /* enum mb_binder_status */
};

/* The binder's side: declares the TASKQUE (NULL: it cannot), and answers what has come whenever its
 * `events` have grown. */
struct mb_fifo *mb_binder_declare(void);
void mb_binder_serve(void);

/* The portmapper's side: declares the TASKQUE and has svc_run serve it -> 0 or a negative error. */
int mbcf_binder_open(void);
void mbcf_binder_task_gone(uint16_t task); /* forgets what it has set */

/*
 * Everybody's side. Only a task of the same node may set and unset, and only for itself. -> enum
 * mb_binder_status, or
 * -(enum sss_error), or -(MB_STATUS_BASE + enum mb_status).
 */
int mb_binder_ask(uint16_t node, uint32_t kind, uint32_t program, uint32_t version, uint32_t type,
                  uint64_t timeout_ns, struct mb_binder_answer *answer);
