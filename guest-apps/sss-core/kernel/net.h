/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Adapters eth0, eth1, ...: sending, addresses, counters. Received frames are ethernet.c's. */
#include "virtio_net.h"

enum {
    ETHERNET_HEADER = 14,
    ETHERNET_TYPE_AT = 12,
    TYPE_IPV4 = 0x0800,
    TYPE_ARP = 0x0806,
    TYPE_CONTROL = 0x88b5,
    TYPE_MBCF = 0x88b6,
};

/* The pool of frames and every adapter; `received` is called in the interrupt, with the adapter. */
void net_init(interrupt_function received);
unsigned net_adapter_count(void);
const uint8_t *net_mac(unsigned adapter);
/* The job's: frames to other unicast addresses are dropped. */
void net_set_mac(unsigned adapter, const uint8_t mac[NET_MAC]);
const struct net_counters *net_counters(unsigned adapter);
bool net_transmit(unsigned adapter, struct sss_frame *frame); /* takes a reference */
/*
 * Gives sent frames back. The end of a transmission does not interrupt: call this before asking
 * whether a frame is still in the adapter (users > 1).
 */
void net_collect(unsigned adapter);
/* After a restart: all frames but those that an adapter is sending return to the pool. */
void net_reclaim_frames(void);
/* A frame of Sundial's own, EtherType 0x88B5, which is never forwarded: to broadcast on eth0. */
bool net_send_control(const void *payload, size_t length);
