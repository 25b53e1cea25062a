/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The job: what the harness tells this machine (ARCHITECTURE.md, "Job"). Everything in it is
 * checked here, before anything is done; init and the tasks read the checked text again. Pure: the
 * tests on the host compile the same file.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sss/abi.h"

enum {
    JOB_BYTES = 65536,
    JOB_INTERFACES = 8,
    JOB_NEIGHBOURS = 64, /* of an interface */
    JOB_ERROR = 256,
    JOB_MACHINE = 64,
    JOB_LEAST_MTU = 576, /* every host must take datagrams of this (RFC 791) */
    JOB_MOST_MTU = 1500,
};

struct job_neighbour {
    uint32_t address; /* host byte order */
    uint8_t mac[6];
};

struct job_interface {
    unsigned adapter; /* N of ethN */
    bool has_mac;
    uint8_t mac[6];
    uint32_t address, netmask; /* host byte order; address 0: none */
    uint16_t mtu;
    unsigned neighbour_count;
    struct job_neighbour neighbours[JOB_NEIGHBOURS];
};

struct job_node {
    uint16_t node;
    uint8_t mac[6];
    char machine[JOB_MACHINE];
};

struct job {
    bool wait, interactive, tsc;
    char machine[JOB_MACHINE];
    uint64_t seed, zero_ns, start_ns;
    uint16_t node;
    uint32_t epoch;
    unsigned interface_count, node_count, service_count, step_count;
    struct job_interface interfaces[JOB_INTERFACES];
    struct job_node nodes[SSS_NODES];
};

/* `task_exists` knows the names of the image's tasks. False: `error` says what is wrong, in one
 * line. */
bool job_parse(const char *text, size_t length, bool (*task_exists)(const char *name),
               struct job *job, char error[JOB_ERROR]);
