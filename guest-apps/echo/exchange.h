/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One call of echo.x or function_calls.x: what is made before its clock starts, and checked after
 * it has stopped. */
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "echo.h"
#include "function_values.h"

enum procedure {
    PROCEDURE_NULL,
    PROCEDURE_ECHO,
    PROCEDURE_STRING,
    PROCEDURE_SINK,
    PROCEDURE_SOURCE,
};
/* In the order of the numbers in echo.x, of which a client names all but the last; then NULL. */
extern const char *const echo_procedure_names[];
extern const char *const echo_client_procedures[];

struct exchange {
    enum function function; /* 0: a procedure of echo.x */
    rpcproc_t procedure;
    xdrproc_t encode;
    void *argument;
    xdrproc_t decode; /* NULL: one-way */
    void *result;
    echo_data data;
    echo_text text;
    echo_source_request request;
    echo_data data_back;
    echo_text text_back;
    uint32_t sequence;
    size_t expected;       /* bytes that must come back */
    char *sent, *received; /* memory for what is sent, and for what comes back */
    struct function_values given, returned;
};

void exchange_prepare(struct exchange *exchange, enum procedure procedure, bool one_way,
                      uint32_t sequence, size_t size);
void exchange_prepare_function(struct exchange *exchange, enum function function);
/* Whether the reply holds what it should. */
bool exchange_matches(const struct exchange *exchange, enum procedure procedure);
