/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netns - network namespaces without names, for one test
 *
 * What     A hub that this process moves to, with a bridge 10.77.0.1/24; nodes
 *          with an address on it each, in namespaces of their own; and sites, each
 *          with one link to the hub, which its nodes share. The kernel removes all of
 *          it when the last process and descriptor is gone.
 * Threads  Before the process has any: a thread moves alone.
 */
#ifndef PS_TESTS_NETNS_H
#define PS_TESTS_NETNS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the machine allows it; if not, the reason is on stderr. */
bool netns_can(void);
/* Moves this process to a new hub. false: the reason is on stderr. */
bool netns_enter_hub(void);
/* Makes the namespace of node 0 .. 99, 10.77.0.(10 + node). A descriptor of
 * it; -1: the reason is on stderr. */
int netns_add(unsigned node);
/* For a child that is to live there, before its exec. */
bool netns_enter(int netns);
/* Whether packets to the node (in) and from it (out) are lost. */
bool netns_set_link(int netns, unsigned node, bool in_up, bool out_up);
/* Whether its link is up: if not, it has no way to anywhere. */
bool netns_set_device(int netns, bool is_up);
/* Whether what it sends to another node is lost, and nothing else. */
bool netns_set_hole(int netns, unsigned to, bool is_there);
/* Both ways at bytes_per_s; 0: no limit. */
bool netns_set_rate(int netns, unsigned node, uint64_t bytes_per_s);
/* Makes site 0 .. 9: a bridge of its own with one link to the hub, which has that rate both ways.
 */
bool netns_add_site(unsigned site, uint64_t bytes_per_s);
/* The node is in that site from then on. */
bool netns_move(unsigned node, unsigned site);
/* Bytes that have left the site (out), or come into it. */
uint64_t netns_passed(unsigned site, bool out);
#endif
