/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include <string.h>

#include "pattern.h"

const char *const echo_procedure_names[] = {"null",   "echo",         "echo_string", "sink",
                                            "source", "sink_one_way", NULL};
const char *const echo_client_procedures[] = {"null", "echo",   "echo_string",
                                              "sink", "source", NULL};

static void prepare_data(struct exchange *exchange, size_t size)
{
    pattern_fill(PATTERN_OPAQUE, exchange->sequence, 0, exchange->sent, size);
    exchange->data.echo_data_len = (u_int)size;
    exchange->data.echo_data_val = exchange->sent;
    exchange->encode = (xdrproc_t)xdr_echo_data;
    exchange->argument = &exchange->data;
}

static void expect_data(struct exchange *exchange, size_t size)
{
    exchange->data_back = (echo_data){.echo_data_val = exchange->received};
    exchange->decode = (xdrproc_t)xdr_echo_data;
    exchange->result = &exchange->data_back;
    exchange->expected = size;
}

static void prepare_text(struct exchange *exchange, size_t size)
{
    pattern_fill(PATTERN_TEXT, exchange->sequence, 0, exchange->sent, size);
    exchange->sent[size] = '\0';
    exchange->text = exchange->sent;
    exchange->text_back = exchange->received;
    exchange->encode = exchange->decode = (xdrproc_t)xdr_echo_text;
    exchange->argument = &exchange->text;
    exchange->result = &exchange->text_back;
    exchange->expected = size;
}

void exchange_prepare(struct exchange *exchange, enum procedure procedure, bool one_way,
                      uint32_t sequence, size_t size)
{
    exchange->encode = exchange->decode = (xdrproc_t)xdr_void;
    exchange->argument = exchange->result = NULL;
    exchange->function = (enum function)0;
    exchange->sequence = sequence;
    exchange->expected = 0;
    switch (procedure) {
    case PROCEDURE_NULL:
        exchange->procedure = ECHO_NULL;
        break;
    case PROCEDURE_ECHO:
        exchange->procedure = ECHO_OPAQUE;
        prepare_data(exchange, size);
        expect_data(exchange, size);
        break;
    case PROCEDURE_STRING:
        exchange->procedure = ECHO_STRING;
        prepare_text(exchange, size);
        break;
    case PROCEDURE_SINK:
        exchange->procedure = one_way ? ECHO_SINK_ONE_WAY : ECHO_SINK;
        prepare_data(exchange, size);
        if (one_way)
            exchange->decode = (xdrproc_t)NULL;
        break;
    case PROCEDURE_SOURCE:
        exchange->procedure = ECHO_SOURCE;
        exchange->request = (echo_source_request){.sequence = sequence, .size = (u_int)size};
        exchange->encode = (xdrproc_t)xdr_echo_source_request;
        exchange->argument = &exchange->request;
        expect_data(exchange, size);
        break;
    }
}

void exchange_prepare_function(struct exchange *exchange, enum function function)
{
    exchange->function = function;
    exchange->procedure = (rpcproc_t)function;
    function_values_fill(&exchange->given, function);
    function_values_empty(&exchange->returned, function);
    exchange->encode = function_argument_filter(function);
    exchange->argument = function_argument(&exchange->given);
    exchange->decode = function_result_filter(function);
    exchange->result = function_result(&exchange->returned, function);
}

bool exchange_matches(const struct exchange *exchange, enum procedure procedure)
{
    if (exchange->function != 0)
        return function_is_result(&exchange->returned, exchange->function);
    switch (procedure) {
    case PROCEDURE_ECHO:
    case PROCEDURE_SOURCE:
        return exchange->data_back.echo_data_len == exchange->expected &&
               pattern_matches(PATTERN_OPAQUE, exchange->sequence, 0, exchange->received,
                               exchange->expected);
    case PROCEDURE_STRING:
        return strlen(exchange->received) == exchange->expected &&
               pattern_matches(PATTERN_TEXT, exchange->sequence, 0, exchange->received,
                               exchange->expected);
    default:
        return true;
    }
}
