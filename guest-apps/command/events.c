/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a timeline does to the programs of this machine. An event is due at an instant of the run,
 * or some time after a line of a program or after its end.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "command.h"
#include "samples.h"

static const uint64_t NEVER = UINT64_MAX;

enum verb { PAUSE, CONTINUE, KILL, RESTART, START, VERBS };

static const char *const NAMES[VERBS] = {"pause", "continue", "kill", "restart", "start"};

struct event {
    const json_t *options;
    enum verb verb;
    struct program *program;
    const struct program *source; /* whose line or end it comes after */
    bool has_line;
    regex_t line;
    uint64_t due_ns;  /* NEVER: not known */
    uint64_t over_ns; /* when what it did is undone; NEVER: it is not, or that is done */
    bool done;
};

static struct event events[EVENTS_MOST];
static size_t event_count;
static uint64_t zero_ns;

static struct program *named(const json_t *name, struct program *programs, size_t count)
{
    const char *text = json_string_value(name);

    for (size_t i = 0; text != NULL && i < count; i++)
        if (strcmp(programs[i].name, text) == 0)
            return &programs[i];
    samples_refuse("option events: no program %s", text == NULL ? "" : text);
}

static enum verb verb_of(const char *word)
{
    for (int verb = 0; word != NULL && verb < VERBS; verb++)
        if (strcmp(NAMES[verb], word) == 0)
            return (enum verb)verb;
    samples_refuse("option events: verb %s", word == NULL ? "" : word);
}

void events_take(const json_t *options, struct program *programs, size_t count, uint64_t zero)
{
    size_t index;
    json_t *value;

    zero_ns = zero;
    if (json_array_size(options) > EVENTS_MOST)
        samples_refuse("option events: up to %d", EVENTS_MOST);
    json_array_foreach (options, index, value) {
        struct event *event = &events[event_count++];
        const json_t *after = json_object_get(value, "after");
        const char *line = json_string_value(json_object_get(after, "line"));

        *event = (struct event){.options = value, .due_ns = NEVER, .over_ns = NEVER};
        event->verb = verb_of(json_string_value(json_object_get(value, "verb")));
        event->program = named(json_object_get(value, "program"), programs, count);
        if (after == NULL) {
            event->due_ns = zero_ns + (uint64_t)command_number(value, "at_ns", 0);
            continue;
        }
        event->source = named(json_object_get(after, "program"), programs, count);
        event->has_line = line != NULL;
        if (event->has_line)
            pattern_take(&event->line, line);
    }
}

static void come(struct event *event, uint64_t now)
{
    event->due_ns = now + (uint64_t)command_number(json_object_get(event->options, "after"),
                                                   "delay_ns", 0);
}

void events_line(const struct program *program, const char *line, uint64_t now)
{
    for (size_t i = 0; i < event_count; i++)
        if (events[i].source == program && events[i].has_line && events[i].due_ns == NEVER &&
            pattern_matches(&events[i].line, line))
            come(&events[i], now);
}

void events_end(const struct program *program, uint64_t now)
{
    for (size_t i = 0; i < event_count; i++)
        if (events[i].source == program && !events[i].has_line && events[i].due_ns == NEVER)
            come(&events[i], now);
}

static const char *state_of(const struct program *program)
{
    bool alive = program->state == PROGRAM_STARTS || program->state == PROGRAM_RUNS;

    if (alive)
        return program->paused ? "paused" : "running";
    return program->state == PROGRAM_ENDED ? "ended" : "waiting";
}

/* Does it; false if the program is in no state for it. */
static bool carry_out(struct program *program, enum verb verb, int number, uint64_t now)
{
    bool alive = program->state == PROGRAM_STARTS || program->state == PROGRAM_RUNS;
    bool begun = program->start_ns != 0;

    switch (verb) {
    case PAUSE:
        if (!alive || program->paused)
            return false;
        program_signal(program, SIGSTOP);
        program->paused = true;
        return true;
    case CONTINUE:
        if (!alive || !program->paused)
            return false;
        program->paused = false;
        program_signal(program, SIGCONT);
        return true;
    case KILL:
        if (!alive)
            return false;
        program->hit = true;
        program_signal(program, number);
        return true;
    case RESTART:
        if (!begun)
            return false;
        program->again = true;
        if (alive) {
            program->hit = true;
            program_end(program, now);
        }
        return true;
    case START:
        if (!begun || (alive && !program->hit))
            return false;
        program->again = true;
        return true;
    default:
        return false;
    }
}

static void record(const struct event *event, enum verb verb, const char *state, uint64_t due,
                   bool met)
{
    json_t *line = samples_object("event");
    uint64_t now = clock_now_ns();

    json_object_set_new(line, "number", json_integer(command_number(event->options, "number", 0)));
    json_object_set_new(line, "name", json_string(event->program->name));
    json_object_set_new(line, "verb", json_string(NAMES[verb]));
    json_object_set_new(line, "at", json_integer((json_int_t)now));
    json_object_set_new(line, "due", json_integer((json_int_t)(due - zero_ns)));
    json_object_set_new(line, "late", json_integer((json_int_t)(now - due)));
    json_object_set_new(line, "state", json_string(state));
    json_object_set_new(line, "met", json_boolean(met));
    samples_put(line);
}

static bool act(struct event *event, enum verb verb, uint64_t due, uint64_t now)
{
    const char *state = state_of(event->program);
    int number = (int)command_number(event->options, "signal", SIGKILL);
    bool met = carry_out(event->program, verb, number, now);

    record(event, verb, state, due, met);
    return met;
}

bool events_look(uint64_t now)
{
    bool any = false;

    for (size_t i = 0; i < event_count; i++) {
        struct event *event = &events[i];
        long long lasts = command_number(event->options, "for_ns", 0);

        if (!event->done && now >= event->due_ns) {
            event->done = any = true;
            if (act(event, event->verb, event->due_ns, now) && lasts > 0)
                event->over_ns = event->due_ns + (uint64_t)lasts;
        } else if (now >= event->over_ns) {
            act(event, event->verb == PAUSE ? CONTINUE : START, event->over_ns, now);
            event->over_ns = NEVER;
            any = true;
        }
    }
    return any;
}

uint64_t events_next(void)
{
    uint64_t next = NEVER;

    for (size_t i = 0; i < event_count; i++) {
        uint64_t due = events[i].done ? events[i].over_ns : events[i].due_ns;

        if (due < next)
            next = due;
    }
    return next;
}
