/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * As much of POSIX threads as programs shared with Linux use. Attributes are NULL. A thread has
 * PTHREAD_STACK bytes of stack, which are not given back when it ends.
 */
#include <stdint.h>

enum { PTHREAD_STACK = 65536 };

struct pthread;
typedef struct pthread *pthread_t;
int pthread_create(pthread_t *thread, const void *attributes, void *(*start)(void *),
                   void *argument);
int pthread_join(pthread_t thread, void **result);

typedef struct {
    uint32_t state;
} pthread_mutex_t;
#define PTHREAD_MUTEX_INITIALIZER                                                                  \
    {                                                                                              \
        0                                                                                          \
    }
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_unlock(pthread_mutex_t *mutex);

/* Its calls are made with the mutex locked. */
typedef struct {
    struct pthread_waiter *first;
} pthread_cond_t;
#define PTHREAD_COND_INITIALIZER                                                                   \
    {                                                                                              \
        0                                                                                          \
    }
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int pthread_cond_signal(pthread_cond_t *cond);
int pthread_cond_broadcast(pthread_cond_t *cond);

typedef struct {
    uint32_t count, waiting, generation;
    pthread_mutex_t mutex;
} pthread_barrier_t;
int pthread_barrier_init(pthread_barrier_t *barrier, const void *attributes, unsigned count);
int pthread_barrier_wait(pthread_barrier_t *barrier);
