/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX threads as far as lib/pthread.c has them; every wait must end, and none too early. */
#include <pthread.h>
#include <stdio.h>

#include "sss/system.h"

enum { THREADS = 6, ROUNDS = 50 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static unsigned counter, inside, overlaps, early, arrived[ROUNDS];
static unsigned waiting, woken, order[THREADS];

/* The CPU is given away while the mutex is held, and others must not come in. */
static void *add(void *argument)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned seen;

        pthread_mutex_lock(&mutex);
        overlaps += inside++ != 0;
        seen = counter;
        sss_yield();
        counter = seen + 1;
        inside--;
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}

static void *meet(void *argument)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        __atomic_add_fetch(&arrived[round], 1, __ATOMIC_RELAXED);
        pthread_barrier_wait(&barrier);
        early += arrived[round] != THREADS;
    }
    return argument;
}

static void *wait_for_work(void *argument)
{
    pthread_mutex_lock(&mutex);
    waiting++;
    pthread_cond_wait(&work, &mutex);
    order[woken++] = (unsigned)(uintptr_t)argument;
    pthread_mutex_unlock(&mutex);
    return argument;
}

static uintptr_t run(void *(*start)(void *))
{
    pthread_t threads[THREADS];
    uintptr_t sum = 0;
    void *result;

    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, start, (void *)i) != 0)
            printf("no thread %lu\n", i);
    if (start == wait_for_work) {
        while (waiting < THREADS)
            sss_yield();
        pthread_mutex_lock(&mutex);
        pthread_cond_signal(&work);
        pthread_mutex_unlock(&mutex);
        while (woken == 0)
            sss_yield();
        for (unsigned i = 0; i < 2 * THREADS; i++)
            sss_yield();
        printf("one signal woke %u, the first of them %u\n", woken, order[0]);
        pthread_mutex_lock(&mutex);
        pthread_cond_broadcast(&work);
        pthread_cond_signal(&work); /* no thread is left */
        pthread_mutex_unlock(&mutex);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        sum += (uintptr_t)result;
    }
    return sum;
}

int main(void)
{
    pthread_barrier_init(&barrier, NULL, THREADS);
    printf("joined %lu", run(add));
    printf(", counted %u, overlaps %u\n", counter, overlaps);
    printf("joined %lu", run(meet));
    printf(", early %u\n", early);
    printf("joined %lu", run(wait_for_work));
    printf(", all woken %u\n", woken);
    return 0;
}
