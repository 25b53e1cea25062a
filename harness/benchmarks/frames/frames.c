/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames FROM TO BYTES COUNT INTERVAL_NS WINDOW
 *
 * Sends COUNT frames of BYTES (without FCS) from one station to another and says on stdout, as
 * JSON, how many arrived, when the first and the last did, and how long each took. INTERVAL_NS 0:
 * as fast as the wire takes them. WINDOW: at most so many are on their way at once, as TCP would
 * have it; 0: no limit. Both stations are in this process, so that there is one clock. Stations are
 * written as in endpoint.h.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "endpoint.h"

enum {
    HEADER = 14,
    ETHERTYPE_AT = 12,
    ETHERTYPE = 0x88b6, /* IEEE 802 local experimental 2 */
    STAMP_AT = HEADER,
    NUMBER_AT = STAMP_AT + 8,
    LEAST = 60,
    MOST = 9216,
    NS_PER_S = 1000000000,
    QUIET_S = 1, /* nothing arrived for so long: nothing more will */
    SPIN_NS = 60000,
    LOST_NS = 100 * 1000 * 1000,
    FAILED = 4,
};

static const uint8_t FROM_MAC[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t TO_MAC[6] = {2, 0, 0, 0, 0, 2};

static struct endpoint from, to;
static size_t frame_bytes;
static uint64_t frame_count, interval_ns, window;

static uint64_t *latency_ns; /* by order of arrival */
static atomic_uint_fast64_t received;
static uint64_t first_ns, last_ns, disordered;

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* Sleeps most of the way and spins the rest, so that the sender's own lateness does not count. */
static void wait_until(uint64_t at)
{
    uint64_t now = now_ns();

    if (at > now + SPIN_NS) {
        uint64_t wake = at - SPIN_NS;
        struct timespec time = {.tv_sec = (time_t)(wake / NS_PER_S),
                                .tv_nsec = (long)(wake % NS_PER_S)};

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
    }
    while (now_ns() < at)
        continue;
}

static void make_frame(uint8_t *frame, const uint8_t *target, const uint8_t *source)
{
    memset(frame, 0, MOST);
    memcpy(frame, target, 6);
    memcpy(frame + 6, source, 6);
    frame[ETHERTYPE_AT] = ETHERTYPE >> 8;
    frame[ETHERTYPE_AT + 1] = ETHERTYPE & 0xff;
}

/* A switch learns where the receiver is from its first frame. */
static void introduce(void)
{
    uint8_t frame[MOST];
    struct timespec moment = {.tv_nsec = 50 * 1000 * 1000};

    make_frame(frame, FROM_MAC, TO_MAC);
    if (send(to.socket, frame, LEAST, 0) < 0)
        err(FAILED, "cannot send");
    nanosleep(&moment, NULL);
}

static void *receive(void *unused)
{
    uint8_t frame[MOST];
    uint64_t arrived = 0;
    uint64_t next = 0;

    (void)unused;
    while (arrived < frame_count) {
        ssize_t got = recv(to.socket, frame, sizeof(frame), 0);
        uint64_t now = now_ns();
        uint64_t stamp, number;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break; /* quiet for QUIET_S */
        if (got < LEAST || frame[ETHERTYPE_AT] != ETHERTYPE >> 8 ||
            frame[ETHERTYPE_AT + 1] != (ETHERTYPE & 0xff) || memcmp(frame, TO_MAC, 6) != 0)
            continue;
        memcpy(&stamp, frame + STAMP_AT, sizeof(stamp));
        memcpy(&number, frame + NUMBER_AT, sizeof(number));
        if (arrived == 0)
            first_ns = now;
        last_ns = now;
        latency_ns[arrived++] = now - stamp;
        atomic_store(&received, arrived);
        disordered += number < next;
        next = number + 1;
    }
    return NULL;
}

/* Waits until a frame may follow; what does not arrive for LOST_NS is taken as lost. */
static void wait_for_room(uint64_t sent)
{
    static uint64_t lost;
    uint64_t seen = atomic_load(&received);
    uint64_t since = now_ns();

    while (sent - lost - seen >= window) {
        uint64_t now_seen = atomic_load(&received);

        if (now_seen != seen) {
            since = now_ns();
            seen = now_seen;
        } else if (now_ns() - since > LOST_NS) {
            lost = sent - seen;
        }
        sched_yield();
    }
}

static uint64_t send_all(void)
{
    uint8_t frame[MOST];
    uint64_t start = now_ns();
    uint64_t sent = 0;

    make_frame(frame, TO_MAC, FROM_MAC);
    for (uint64_t number = 0; number < frame_count; number++) {
        uint64_t stamp;

        if (interval_ns > 0)
            wait_until(start + number * interval_ns);
        if (window > 0)
            wait_for_room(number);
        stamp = now_ns();
        memcpy(frame + STAMP_AT, &stamp, sizeof(stamp));
        memcpy(frame + NUMBER_AT, &number, sizeof(number));
        while (send(from.socket, frame, frame_bytes, 0) < 0)
            if (errno != EINTR && errno != ENOBUFS)
                err(FAILED, "cannot send");
        sent++;
    }
    return sent;
}

static uint64_t number_of(const char *text, uint64_t least, uint64_t most)
{
    char *end;
    uint64_t number = strtoull(text, &end, 10);

    if (*text == '\0' || *end != '\0' || number < least || number > most)
        errx(2, "%s: must be a number from %" PRIu64 " to %" PRIu64, text, least, most);
    return number;
}

int main(int argc, char **argv)
{
    struct timeval quiet = {.tv_sec = QUIET_S};
    pthread_t receiver;
    uint64_t began, sent, arrived;

    if (argc != 7)
        errx(2, "usage: frames FROM TO BYTES COUNT INTERVAL_NS WINDOW");
    frame_bytes = number_of(argv[3], LEAST, MOST);
    frame_count = number_of(argv[4], 1, 100000000);
    interval_ns = number_of(argv[5], 0, NS_PER_S);
    window = number_of(argv[6], 0, frame_count);
    latency_ns = calloc(frame_count, sizeof(*latency_ns));
    if (latency_ns == NULL)
        err(FAILED, "no memory for %" PRIu64 " frames", frame_count);
    prctl(PR_SET_TIMERSLACK, 1);
    endpoint_open(&from, argv[1]);
    endpoint_open(&to, argv[2]);
    setsockopt(to.socket, SOL_SOCKET, SO_RCVTIMEO, &quiet, sizeof(quiet));
    introduce();
    if (pthread_create(&receiver, NULL, receive, NULL) != 0)
        errx(FAILED, "cannot start the receiver");
    began = now_ns();
    sent = send_all();
    pthread_join(receiver, NULL);
    arrived = atomic_load(&received);
    endpoint_close(&from);
    endpoint_close(&to);
    printf("{\"sent\":%" PRIu64 ",\"received\":%" PRIu64 ",\"disordered\":%" PRIu64
           ",\"first_ns\":%" PRIu64 ",\"last_ns\":%" PRIu64 ",\"latency_ns\":[",
           sent, arrived, disordered, arrived ? first_ns - began : 0,
           arrived ? last_ns - began : 0);
    for (uint64_t i = 0; i < arrived; i++)
        printf("%s%" PRIu64, i ? "," : "", latency_ns[i]);
    printf("]}\n");
    return 0;
}
