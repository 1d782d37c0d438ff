/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster - nodes of one test, each with a link that can fail
 *
 * What     Starts $PSD_PROGRAM n times in one temporary directory: node n0, and
 *          the others with --join to it. Kills, freezes, restarts, cuts off.
 * Shape    CLUSTER_DIRECT: loopback, nothing in between. CLUSTER_PROXY: every
 *          connection to a node, also from another node, goes through its
 *          tcp_proxy; connections that the node itself opens go through the
 *          others' proxies. CLUSTER_NETNS: each node in a network namespace of
 *          its own, with a veth pair to a bridge in a namespace that the test
 *          has moved to. These have no names and end with the processes: the
 *          machine's own network is not touched.
 * Owner    The caller; cluster_drop. Nodes die with the test, however that
 *          ends, and a keeper, a process that waits for that, removes the
 *          directory.
 * Threads  Confined to the thread that started it; start it before others.
 */
#ifndef PS_TESTS_CLUSTER_H
#define PS_TESTS_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/tcp_proxy.h"
#include "support/temp_dir.h"

#define CLUSTER_NODES_MAX 16
#define CLUSTER_TEXT_SIZE 64

typedef enum cluster_net { CLUSTER_DIRECT = 0, CLUSTER_PROXY = 1, CLUSTER_NETNS = 2 } cluster_net_t;

typedef struct cluster_args {
    unsigned n_nodes; /* 1 .. CLUSTER_NODES_MAX */
    cluster_net_t net;
    const char *config;  /* of every node; no key of node, listen and security.
                            NULL: defaults. Without a section "registry:" node 0
                            has the registry alone: what such a test asks and
                            kills is not at the mercy of an election on a busy
                            machine; without a section "workers:" no worker is
                            lost there */
    bool calm;           /* a node is suspect after 3 s only: for tests that wait
                            for no failover; no section "cluster:" in config */
    uint64_t data_bytes; /* each node's data lies on a tmpfs of that size, in a
                            mount namespace of the test's own; 0: on the disk
                            that the directory is on */
} cluster_args_t;

typedef struct cluster_node {
    char name[CLUSTER_TEXT_SIZE];    /* "n0" */
    pid_t pid;                       /* 0: it does not run */
    char host[CLUSTER_TEXT_SIZE];    /* it listens there */
    char front[CLUSTER_TEXT_SIZE];   /* the address that others get; host if
                                      * nothing is in between */
    uint16_t port;                   /* of control; the same for good */
    char control[CLUSTER_TEXT_SIZE]; /* "tcp://FRONT:PORT" */
    tcp_proxy_t *proxy;              /* CLUSTER_PROXY; else NULL */
    int netns;                       /* CLUSTER_NETNS; else -1 */
} cluster_node_t;

typedef struct cluster {
    cluster_net_t net;
    bool calm;
    const char *config; /* borrowed; of every node */
    temp_dir_t dir;     /* holds n0/psd.yaml, n0/data, n0/log, … */
    uint64_t data_bytes;
    unsigned n_nodes;
    cluster_node_t nodes[CLUSTER_NODES_MAX];
    pid_t keeper;
    int keeper_fd; /* the keeper acts when this is closed */
} cluster_t;

/* Whether such a net is possible here; if not, the reason is on stderr. */
bool cluster_can(cluster_net_t net);

/* Starts all nodes and waits until they are ready. false: one is not; the
 * reason is on stderr. Call cluster_drop in any case. */
bool cluster_start(cluster_t *self, const cluster_args_t *args);
/* Ends what runs, prints the logs if `failed`, removes everything. */
void cluster_drop(cluster_t *self, bool failed);

/* By number of the node. false: it does not run, or the call failed. */
bool cluster_kill(cluster_t *self, unsigned node, int signal_number);
/* Stops all its threads; true when they have stopped. */
bool cluster_freeze(cluster_t *self, unsigned node);
bool cluster_thaw(cluster_t *self, unsigned node);
/* Adds a node, which joins, with the configuration of the others. */
bool cluster_add(cluster_t *self);
/* Starts one that does not run, with its data, and waits until it is ready. */
bool cluster_restart(cluster_t *self, unsigned node);
/* Starts all that do not run, at once, in the order of `first`, `first` + 1 …,
 * and waits until all are ready. */
bool cluster_restart_all(cluster_t *self, unsigned first);
/* Fills a node's disk, or frees it; with data_bytes. */
bool cluster_fill(cluster_t *self, unsigned node);
bool cluster_empty(cluster_t *self, unsigned node);

/* Cuts a node off, one way or both, and back: with a proxy it holds the
 * links to the node; in namespaces all packets to it (in) or from it (out)
 * are lost. Not for CLUSTER_DIRECT. */
bool cluster_set_link(cluster_t *self, unsigned node, bool in_up, bool out_up);
/* Both ways slow; 0: as fast as before. With namespaces by tbf. */
bool cluster_set_rate(cluster_t *self, unsigned node, uint64_t bytes_per_s);

/* Whether the node has logged that, in any of its lives. */
bool cluster_log_has(const cluster_t *self, unsigned node, const char *part);
/* Resident memory of the node, in bytes; 0: unknown. */
uint64_t cluster_resident(const cluster_t *self, unsigned node);
#endif
