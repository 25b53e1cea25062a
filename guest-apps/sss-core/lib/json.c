/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

/* ---- the text, character by character; every look ahead is checked against `end` ---- */
struct reader {
    const char *at;
    const char *end;
    const char *wrong; /* the first thing that was wrong */
};

static bool fail(struct reader *reader, const char *what)
{
    if (reader->wrong == NULL)
        reader->wrong = what;
    return false;
}

static int peek(const struct reader *reader)
{
    return reader->at < reader->end ? (unsigned char)*reader->at : -1;
}

static void skip_space(struct reader *reader)
{
    int next;

    while ((next = peek(reader)) == ' ' || next == '\t' || next == '\n' || next == '\r')
        reader->at++;
}

static bool take(struct reader *reader, int expected)
{
    if (peek(reader) != expected)
        return false;
    reader->at++;
    return true;
}

static bool is_digit(int character)
{
    return character >= '0' && character <= '9';
}

static int hex_digit(int character)
{
    if (is_digit(character))
        return character - '0';
    character |= 0x20;
    return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

/* Four hexadecimal digits -> their value, or -1. */
static int read_unit(struct reader *reader)
{
    int unit = 0;

    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(peek(reader));

        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
        reader->at++;
    }
    return unit;
}

/* Behind the backslash -> the code point, or -1. Surrogates must come in pairs. */
static long read_escape(struct reader *reader)
{
    static const char names[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    int next = peek(reader);
    int unit;
    int low;

    for (unsigned i = 0; names[i] != '\0'; i++) {
        if (next == names[i]) {
            reader->at++;
            return meant[i];
        }
    }
    if (!take(reader, 'u'))
        return -1;
    unit = read_unit(reader);
    if (unit < 0xd800 || unit > 0xdfff)
        return unit;
    if (unit > 0xdbff || !take(reader, '\\') || !take(reader, 'u'))
        return -1;
    low = read_unit(reader);
    if (low < 0xdc00 || low > 0xdfff)
        return -1;
    return 0x10000 + ((long)(unit - 0xd800) << 10) + (low - 0xdc00);
}

static bool skip_string(struct reader *reader)
{
    if (!take(reader, '"'))
        return fail(reader, "a string is missing");
    for (;;) {
        int next = peek(reader);

        if (next < 0x20) /* the end of the text, too */
            return fail(reader,
                        next < 0 ? "a string does not end" : "a control character in a string");
        reader->at++;
        if (next == '"')
            return true;
        if (next == '\\' && read_escape(reader) < 0)
            return fail(reader, "an escape that JSON does not know");
    }
}

static bool skip_digits(struct reader *reader)
{
    if (!is_digit(peek(reader)))
        return fail(reader, "a number without digits");
    while (is_digit(peek(reader)))
        reader->at++;
    return true;
}

static bool skip_number(struct reader *reader)
{
    take(reader, '-');
    if (take(reader, '0')) {
        if (is_digit(peek(reader)))
            return fail(reader, "a number that begins with 0");
    } else if (!skip_digits(reader)) {
        return false;
    }
    if (take(reader, '.') && !skip_digits(reader))
        return false;
    if (take(reader, 'e') || take(reader, 'E')) {
        if (!take(reader, '+'))
            take(reader, '-');
        return skip_digits(reader);
    }
    return true;
}

static bool skip_word(struct reader *reader, const char *word)
{
    while (*word != '\0')
        if (!take(reader, *word++))
            return fail(reader, "a value is missing");
    return true;
}

static bool skip_value(struct reader *reader, int depth);

/* Compares by the letters as written: names with escapes do not occur where it matters. */
static bool same(const struct json_value *one, const struct json_value *other)
{
    if (one->length != other->length)
        return false;
    for (size_t i = 0; i < one->length; i++)
        if (one->text[i] != other->text[i])
            return false;
    return true;
}

/* Whether `name` is the name of a member that begins before it. */
static bool is_twice(const char *object, const struct json_value *name)
{
    struct json_walk walk;
    struct json_value before;
    struct json_value value;
    struct json_value seen = {.text = object, .length = (size_t)(name->text - object)};

    json_walk_start(&walk, &seen);
    while (json_walk_next(&walk, &before, &value))
        if (same(&before, name))
            return true;
    return false;
}

static bool skip_name(struct reader *reader, const char *object)
{
    struct json_value name = {.text = reader->at};

    if (!skip_string(reader))
        return false;
    name.length = (size_t)(reader->at - name.text);
    if (object != NULL && is_twice(object, &name))
        return fail(reader, "a name twice in one object");
    skip_space(reader);
    return take(reader, ':') || fail(reader, "a colon is missing");
}

static bool skip_members(struct reader *reader, int close, int depth)
{
    const char *object = reader->at;

    if (depth == 0)
        return fail(reader, "nested too deeply");
    reader->at++;
    skip_space(reader);
    if (take(reader, close))
        return true;
    do {
        skip_space(reader);
        if (close == '}' && !skip_name(reader, object))
            return false;
        skip_space(reader);
        if (!skip_value(reader, depth - 1))
            return false;
        skip_space(reader);
    } while (take(reader, ','));
    return take(reader, close) || fail(reader, "a comma or a closing bracket is missing");
}

static bool skip_value(struct reader *reader, int depth)
{
    switch (peek(reader)) {
    case '{':
        return skip_members(reader, '}', depth);
    case '[':
        return skip_members(reader, ']', depth);
    case '"':
        return skip_string(reader);
    case 't':
        return skip_word(reader, "true");
    case 'f':
        return skip_word(reader, "false");
    case 'n':
        return skip_word(reader, "null");
    default:
        return is_digit(peek(reader)) || peek(reader) == '-' ? skip_number(reader)
                                                             : fail(reader, "a value is missing");
    }
}

const char *json_check(const char *text, size_t length, struct json_value *value)
{
    struct reader reader = {.at = text, .end = text + length};

    skip_space(&reader);
    value->text = reader.at;
    if (skip_value(&reader, JSON_DEPTH)) {
        value->length = (size_t)(reader.at - value->text);
        skip_space(&reader);
        if (reader.at == reader.end)
            return NULL;
        fail(&reader, "something behind the value");
    }
    *value = (struct json_value){.text = reader.at};
    return reader.wrong;
}

/* ---- looking at a value ---- */
enum json_kind json_kind(const struct json_value *value)
{
    if (value->length == 0)
        return JSON_IS_NOTHING;
    switch (*value->text) {
    case '{':
        return JSON_IS_OBJECT;
    case '[':
        return JSON_IS_ARRAY;
    case '"':
        return JSON_IS_STRING;
    case 't':
    case 'f':
        return JSON_IS_BOOL;
    case 'n':
        return JSON_IS_NULL;
    default:
        return JSON_IS_NUMBER;
    }
}

void json_walk_start(struct json_walk *walk, const struct json_value *value)
{
    enum json_kind kind = json_kind(value);

    walk->whole = *value;
    walk->at = kind == JSON_IS_ARRAY || kind == JSON_IS_OBJECT ? value->text + 1
                                                               : value->text + value->length;
}

/* Skips names and values without looking for doubles, which json_check has done: is_twice walks
 * inside of it. */
static bool take_value(struct reader *reader, struct json_value *value)
{
    int depth = 0;

    value->text = reader->at;
    do {
        int next = peek(reader);

        if (next < 0)
            return false;
        if (next == '"') {
            if (!skip_string(reader))
                return false;
            continue;
        }
        if (next == '{' || next == '[')
            depth++;
        else if (next == '}' || next == ']')
            depth--;
        reader->at++;
        if (depth == 0 && (next == '}' || next == ']'))
            break;
        if (depth == 0) /* a number or a word ends where something else begins */
            while ((next = peek(reader)) >= 0 && next != ',' && next != ']' && next != '}' &&
                   next > ' ')
                reader->at++;
    } while (depth > 0);
    value->length = (size_t)(reader->at - value->text);
    return true;
}

bool json_walk_next(struct json_walk *walk, struct json_value *name, struct json_value *value)
{
    struct reader reader = {.at = walk->at, .end = walk->whole.text + walk->whole.length};
    struct json_value own_name = {.text = walk->at};

    skip_space(&reader);
    if (peek(&reader) == ']' || peek(&reader) == '}')
        return false;
    if (json_kind(&walk->whole) == JSON_IS_OBJECT) {
        own_name.text = reader.at;
        if (!skip_string(&reader))
            return false;
        own_name.length = (size_t)(reader.at - own_name.text);
        skip_space(&reader);
        if (!take(&reader, ':'))
            return false;
        skip_space(&reader);
    }
    if (!take_value(&reader, value))
        return false;
    skip_space(&reader);
    take(&reader, ',');
    walk->at = reader.at;
    if (name != NULL)
        *name = own_name;
    return true;
}

bool json_field(const struct json_value *object, const char *name, struct json_value *value)
{
    struct json_walk walk;
    struct json_value member_name;
    struct json_value member;

    if (json_kind(object) != JSON_IS_OBJECT)
        return false;
    json_walk_start(&walk, object);
    while (json_walk_next(&walk, &member_name, &member)) {
        if (json_is(&member_name, name)) {
            *value = member;
            return true;
        }
    }
    return false;
}

size_t json_count(const struct json_value *value)
{
    struct json_walk walk;
    struct json_value member;
    size_t count = 0;

    json_walk_start(&walk, value);
    while (json_walk_next(&walk, NULL, &member))
        count++;
    return count;
}

bool json_uint(const struct json_value *value, uint64_t *number)
{
    uint64_t sum = 0;

    if (json_kind(value) != JSON_IS_NUMBER)
        return false;
    for (size_t i = 0; i < value->length; i++) {
        uint64_t digit = (uint64_t)(value->text[i] - '0');

        if (!is_digit(value->text[i]) || sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *number = sum;
    return true;
}

bool json_bool(const struct json_value *value, bool *flag)
{
    if (json_kind(value) != JSON_IS_BOOL)
        return false;
    *flag = *value->text == 't';
    return true;
}

/* Writes a code point as UTF-8 -> how many bytes, 0 where they do not fit. */
static size_t put_utf8(long point, char *out, size_t room)
{
    size_t bytes = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};

    if (bytes > room)
        return 0;
    for (size_t i = bytes; i > 1; i--) {
        out[i - 1] = (char)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    out[0] = (char)(marks[bytes] | point);
    return bytes;
}

bool json_text(const struct json_value *value, char *text, size_t size)
{
    struct reader reader = {.at = value->text + 1, .end = value->text + value->length};
    size_t done = 0;

    if (json_kind(value) != JSON_IS_STRING || size == 0)
        return false;
    while (peek(&reader) >= 0 && peek(&reader) != '"') {
        long point = (unsigned char)*reader.at++;

        if (point == '\\') {
            size_t bytes;

            point = read_escape(&reader);
            bytes = point > 0 ? put_utf8(point, text + done, size - 1 - done) : 0;
            if (bytes == 0)
                return false;
            done += bytes;
        } else {
            if (point == 0 || done + 1 >= size)
                return false;
            text[done++] = (char)point;
        }
    }
    text[done] = '\0';
    return true;
}

bool json_is(const struct json_value *string, const char *text)
{
    size_t i = 0;

    if (json_kind(string) != JSON_IS_STRING)
        return false;
    while (i + 2 < string->length && text[i] != '\0' && string->text[i + 1] == text[i])
        i++;
    return i + 2 == string->length && text[i] == '\0';
}

bool json_escape(const char *text, size_t length, char *out, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    size_t done = 0;

    for (size_t i = 0; i < length; i++) {
        unsigned char next = (unsigned char)text[i];

        if (size - done < 7) /* the longest escape and NUL */
            return false;
        if (next == '"' || next == '\\') {
            out[done++] = '\\';
            out[done++] = (char)next;
        } else if (next < 0x20) {
            for (const char *prefix = "\\u00"; *prefix != '\0'; prefix++)
                out[done++] = *prefix;
            out[done++] = hex[next >> 4];
            out[done++] = hex[next & 15];
        } else {
            out[done++] = (char)next;
        }
    }
    if (done >= size)
        return false;
    out[done] = '\0';
    return true;
}
