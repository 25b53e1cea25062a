/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "functions.h"
#include "ndr.h"

/*
 * What the operations of twelve.idl pass, and its representation: C706, chapter 14. Numbers with a
 * point are passed on as the bytes that they are.
 */
enum {
    DCE_TWELVE_TEXT = 3 * 4 + FUNCTION_WORD_BYTES + 1, /* an element of the array of strings */
    /* Bytes of the longest arguments: those of the array of strings. All but its last element end
     * where the next one is aligned. */
    DCE_TWELVE_MOST = 2 * 4 + FUNCTION_ELEMENTS * (4 + DCE_TWELVE_TEXT + 1) - 1,
};

struct dce_value {
    uint32_t count; /* elements of an array */
    union {
        uint8_t boolean;
        int32_t integer;
        int64_t hyper;
        char text[FUNCTION_TEXT_BYTES + 1];
        int32_t ints[FUNCTION_ELEMENTS];
        float floats[FUNCTION_ELEMENTS];
        char texts[FUNCTION_ELEMENTS][FUNCTION_WORD_BYTES + 1];
        struct function_person person;
        float points[2][FUNCTION_DIMENSIONS];
        double distance;
    } of;
};

/* A call passes its arguments one way and its results the other. */
enum dce_way { DCE_ARGUMENTS, DCE_RESULTS };

/* What a function is called with, and what it must return. */
void dce_twelve_value(enum function function, enum dce_way way, struct dce_value *value);
bool dce_twelve_is_value(enum function function, enum dce_way way, const struct dce_value *value);

/* The length of the representation, which is written to DCE_TWELVE_MOST bytes. */
size_t dce_twelve_put(enum function function, enum dce_way way, const struct dce_value *value,
                      uint8_t *bytes, bool big_endian);
/* False: these bytes are none, or more than the values. */
bool dce_twelve_get(enum function function, enum dce_way way, struct dce_value *value,
                    const uint8_t *bytes, size_t length, bool big_endian);
