/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads as POSIX has them. All waiting is sss_wait: the kernel looks at the words that threads of
 * a task wait for whenever one of its threads leaves the CPU.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "sss/system.h"

/* ---- threads ---- */

struct pthread {
    void *(*start)(void *);
    void *argument;
    void *result;
    uint32_t ended;
};

static void run(void *argument)
{
    struct pthread *thread = argument;

    thread->result = thread->start(thread->argument);
    __atomic_store_n(&thread->ended, 1, __ATOMIC_RELEASE);
}

int pthread_create(pthread_t *thread, const void *attributes, void *(*start)(void *),
                   void *argument)
{
    struct pthread *made = malloc(sizeof(*made));
    int error = -SSS_ENOMEM;

    (void)attributes;
    if (made != NULL) {
        *made = (struct pthread){.start = start, .argument = argument};
        error = sss_thread(run, made, PTHREAD_STACK);
    }
    if (error < 0) {
        free(made);
        return -error;
    }
    *thread = made;
    return 0;
}

int pthread_join(pthread_t thread, void **result)
{
    while (__atomic_load_n(&thread->ended, __ATOMIC_ACQUIRE) == 0)
        sss_wait_word(&thread->ended, 0, SSS_FOREVER);
    if (result != NULL)
        *result = thread->result;
    free(thread);
    return 0;
}

/* ---- mutexes ---- */

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    while (__atomic_exchange_n(&mutex->state, 1, __ATOMIC_ACQUIRE) != 0)
        sss_wait_word(&mutex->state, 1, SSS_FOREVER);
    return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    __atomic_store_n(&mutex->state, 0, __ATOMIC_RELEASE);
    return 0;
}

/* ---- conditions: each waiting thread has a word of its own, so that a signal wakes one ---- */

struct pthread_waiter {
    struct pthread_waiter *next;
    uint32_t signalled;
};

/* The one that has waited longest is at the end. */
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    struct pthread_waiter self = {.next = cond->first};

    /* cppcheck-suppress autoVariables; who signals takes it out before the wait is over */
    cond->first = &self;
    pthread_mutex_unlock(mutex);
    while (__atomic_load_n(&self.signalled, __ATOMIC_ACQUIRE) == 0)
        sss_wait_word(&self.signalled, 0, SSS_FOREVER);
    return pthread_mutex_lock(mutex);
}

int pthread_cond_signal(pthread_cond_t *cond)
{
    struct pthread_waiter **at = &cond->first, *waiter;

    if (*at == NULL)
        return 0;
    while ((*at)->next != NULL)
        at = &(*at)->next;
    waiter = *at;
    *at = NULL;
    __atomic_store_n(&waiter->signalled, 1, __ATOMIC_RELEASE);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
    while (cond->first != NULL)
        pthread_cond_signal(cond);
    return 0;
}

/* ---- barriers ---- */

int pthread_barrier_init(pthread_barrier_t *barrier, const void *attributes, unsigned count)
{
    (void)attributes;
    *barrier = (pthread_barrier_t){.count = count};
    return 0;
}

int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    uint32_t generation;

    pthread_mutex_lock(&barrier->mutex);
    generation = barrier->generation;
    if (++barrier->waiting == barrier->count) {
        barrier->waiting = 0;
        __atomic_store_n(&barrier->generation, generation + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&barrier->mutex);
    while (__atomic_load_n(&barrier->generation, __ATOMIC_ACQUIRE) == generation)
        sss_wait_word(&barrier->generation, generation, SSS_FOREVER);
    return 0;
}
