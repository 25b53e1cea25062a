/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What carries the lines of vRPC: pairs over VMMC, and remote WRITEs of MBCF. */
#include "mbcf_service.h"
#include "vrpc_line.h"

/* ---- vrpc_vmmc.c ---- */

struct vrpc_line *vrpc_vmmc_connect(uint16_t node, rpcprog_t program, rpcvers_t version,
                                    const struct clntvrpc_options *options, int *error);

/* A server's place for the next client of a program. `notified` grows with what comes on any of its
 * lines. */
struct vrpc_offer;
struct vrpc_offer *vrpc_vmmc_offer(rpcprog_t program, rpcvers_t version,
                                   const struct svcvrpc_options *options,
                                   volatile uint32_t *notified);
/* The line of the client that has come, and the next one is offered; NULL: none has. */
struct vrpc_line *vrpc_vmmc_accept(struct vrpc_offer *offer);
bool vrpc_vmmc_offers(const struct vrpc_offer *offer, rpcprog_t program, rpcvers_t version);
/* Offers a place if there is none. Whether a client has found none since this was last asked, and
 * there still is none. */
bool vrpc_vmmc_was_full(struct vrpc_offer *offer);
/* Grows when one does. */
const volatile uint32_t *vrpc_vmmc_wanted(const struct vrpc_offer *offer);

/* ---- vrpc_mbcf.c ---- */

enum { MBM_RINGS = MBCF_TYPES }; /* a type for the binder, and of BIND */

struct vrpc_line *vrpc_mbcf_connect(uint16_t node, rpcprog_t program, rpcvers_t version,
                                    const struct clntvrpc_options *options, int *error);
/* A client asks to be bound: its line, and it is answered; NULL: it is refused with `why`. */
struct vrpc_line *vrpc_mbcf_accept(const struct mbm_origin *origin, const struct mbm_bind *bind,
                                   enum mbm_refusal why);
const char *vrpc_mbcf_error_text(int error);
