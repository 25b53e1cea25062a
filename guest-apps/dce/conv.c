/* SPDX-License-Identifier: Apache-2.0 */
#include "conv.h"

const struct dce_uuid dce_conv_interface = {{0x33, 0x3a, 0x22, 0x76, 0x00, 0x00, 0x00, 0x00, 0x0d,
                                             0x00, 0x00, 0x80, 0x9c, 0x00, 0x00, 0x00}};

bool dce_conv_get_question(const struct dce_pdu *pdu, struct dce_conv_question *question)
{
    struct dce_ndr ndr = dce_ndr_reader(pdu->body, pdu->length, pdu->big_endian);

    dce_ndr_get_uuid(&ndr, &question->activity);
    question->boot_time = dce_ndr_get32(&ndr);
    return !ndr.failed;
}

uint16_t dce_conv_put_question(const struct dce_conv_question *question, uint8_t *body,
                               bool big_endian)
{
    struct dce_ndr ndr = dce_ndr_writer(body, DCE_CONV_IN, big_endian);

    dce_ndr_put_uuid(&ndr, &question->activity);
    dce_ndr_put32(&ndr, question->boot_time);
    return (uint16_t)ndr.at;
}

bool dce_conv_get_answer(const struct dce_pdu *pdu, struct dce_conv_answer *answer)
{
    struct dce_ndr ndr = dce_ndr_reader(pdu->body, pdu->length, pdu->big_endian);

    answer->seq = dce_ndr_get32(&ndr);
    answer->space = (struct dce_uuid){{0}};
    if (pdu->opnum == DCE_CONV_WHO_ARE_YOU2)
        dce_ndr_get_uuid(&ndr, &answer->space);
    answer->status = dce_ndr_get32(&ndr);
    return !ndr.failed;
}

uint16_t dce_conv_put_answer(const struct dce_conv_answer *answer, uint16_t opnum, uint8_t *body,
                             bool big_endian)
{
    struct dce_ndr ndr = dce_ndr_writer(body, DCE_CONV_OUT2, big_endian);

    dce_ndr_put32(&ndr, answer->seq);
    if (opnum == DCE_CONV_WHO_ARE_YOU2)
        dce_ndr_put_uuid(&ndr, &answer->space);
    dce_ndr_put32(&ndr, answer->status);
    return (uint16_t)ndr.at;
}
