/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a task asks of the kernel beside MBCF. Results below zero are -enum sss_error. See abi.h for
 * each call. */
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

#define SSS_FOREVER UINT64_MAX

long sss_call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);

_Noreturn void sss_exit(int status);
/* stack with a guard page, from the heap */
int sss_thread(void (*entry)(void *), void *argument, size_t stack_bytes);
void sss_yield(void);
int sss_wait(const struct sss_wait *words, unsigned count, uint64_t timeout_ns);
int sss_wait_word(const volatile uint32_t *word, uint32_t seen, uint64_t timeout_ns);
uint64_t sss_now_ns(void);
int sss_task(const char *name, const char *options, unsigned flags);
int sss_kill(int task);
int sss_task_status(int task, struct sss_task_status *status);
/* one line of the samples, without \n */
void sss_record(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* one line of the console, without \n */
void sss_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sss_ready(void);

void *sss_map(void *address, size_t bytes, unsigned protection); /* NULL where it fails */
int sss_unmap(void *address, size_t bytes);
int sss_protect(void *address, size_t bytes, unsigned protection);
int sss_csm_share(void *address, size_t bytes);
int sss_csm_map(int task, int csm, uint64_t address, unsigned protection);

int sss_socket(int protocol, uint32_t *counter);
int sss_bind(int socket, uint32_t address, uint16_t port);
int sss_send_to(int socket, const void *data, size_t length, uint32_t address, uint16_t port);
int sss_receive_from(int socket, void *data, size_t size, struct sss_peer *peer);
int sss_connect(int socket, uint32_t address, uint16_t port);
int sss_listen(int socket, int backlog);
int sss_accept(int socket, uint32_t *counter, struct sss_peer *peer);
int sss_send(int socket, const void *data, size_t length);
int sss_receive(int socket, void *data, size_t size);
int sss_socket_close(int socket);
int sss_socket_state(int socket, struct sss_socket_state *state);
