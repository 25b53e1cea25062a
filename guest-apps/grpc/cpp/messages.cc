// SPDX-License-Identifier: Apache-2.0
#include "messages.h"

void fill(enum function, sundial::Empty *)
{
}

void fill(enum function, sundial::BooleanValue *message)
{
    message->set_value(FUNCTION_BOOLEAN_VALUE != 0);
}

void fill(enum function, sundial::IntValue *message)
{
    message->set_value(FUNCTION_INT_VALUE);
}

void fill(enum function, sundial::LongValue *message)
{
    message->set_value(FUNCTION_LONG_VALUE);
}

void fill(enum function function, sundial::StringValue *message)
{
    message->set_value(function_text, function_size(function));
}

void fill(enum function, sundial::IntArrayValue *message)
{
    message->mutable_values()->Add(function_ints, function_ints + FUNCTION_ELEMENTS);
}

void fill(enum function, sundial::FloatArrayValue *message)
{
    message->mutable_values()->Add(function_floats, function_floats + FUNCTION_ELEMENTS);
}

void fill(enum function, sundial::StringArrayValue *message)
{
    for (int i = 0; i < FUNCTION_ELEMENTS; i++)
        message->add_values(function_word, FUNCTION_WORD_BYTES);
}

void fill(enum function, sundial::PersonValue *message)
{
    message->set_name(function_person.name);
    message->set_age(function_person.age);
    message->set_weight(function_person.weight);
}

void fill(enum function, sundial::Points *message)
{
    message->mutable_first()->Add(function_points[0], function_points[0] + FUNCTION_DIMENSIONS);
    message->mutable_second()->Add(function_points[1], function_points[1] + FUNCTION_DIMENSIONS);
}

sundial::FloatValue answer(const sundial::Points &request)
{
    sundial::FloatValue reply;
    double distance = 0;

    // Nothing else is a point; of what is none there is no distance.
    if (request.first_size() == FUNCTION_DIMENSIONS && request.second_size() == FUNCTION_DIMENSIONS)
        function_distance(request.first().data(), request.second().data(), &distance);
    reply.set_value(static_cast<float>(distance));
    return reply;
}
