/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ndr.h"

/*
 * The conversation manager: how a server that does not know an activity asks its client which call
 * it is making (C706, appendix P: conv, version 3.0).
 */
enum {
    DCE_CONV_WHO_ARE_YOU = 0,
    DCE_CONV_WHO_ARE_YOU2 = 1,
    DCE_CONV_VERSION = 3,
    DCE_CONV_IN = 20,
    DCE_CONV_OUT = 8,
    DCE_CONV_OUT2 = 24,
};

extern const struct dce_uuid dce_conv_interface;

struct dce_conv_question {
    struct dce_uuid activity;
    uint32_t boot_time; /* the server's */
};
bool dce_conv_get_question(const struct dce_pdu *pdu, struct dce_conv_question *question);
/* Bytes written: DCE_CONV_IN. */
uint16_t dce_conv_put_question(const struct dce_conv_question *question, uint8_t *body,
                               bool big_endian);

struct dce_conv_answer {
    uint32_t seq;
    struct dce_uuid space; /* of who_are_you2 only: of the client's address space */
    uint32_t status;
};
bool dce_conv_get_answer(const struct dce_pdu *pdu, struct dce_conv_answer *answer);
/* Of the operation `opnum`; bytes written. */
uint16_t dce_conv_put_answer(const struct dce_conv_answer *answer, uint16_t opnum, uint8_t *body,
                             bool big_endian);
