// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions.pb.h"
#include "guest.h"

// The twelve functions as gRPC has them: the request of each and what has to be answered.
constexpr int PORT = 50051;

// Fills a message with the argument of a function, which tells apart those that have one type.
void fill(enum function function, sundial::Empty *message);
void fill(enum function function, sundial::BooleanValue *message);
void fill(enum function function, sundial::IntValue *message);
void fill(enum function function, sundial::LongValue *message);
void fill(enum function function, sundial::StringValue *message);
void fill(enum function function, sundial::IntArrayValue *message);
void fill(enum function function, sundial::FloatArrayValue *message);
void fill(enum function function, sundial::StringArrayValue *message);
void fill(enum function function, sundial::PersonValue *message);
void fill(enum function function, sundial::Points *message);

// What a server answers: the same, or the distance.
template <class Message> const Message &answer(const Message &request)
{
    return request;
}

sundial::FloatValue answer(const sundial::Points &request);
