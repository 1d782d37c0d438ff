/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/server: a node
 *
 * It is       The shell around the pure rooms: a node's files, sockets, threads and
 *             control port.
 * It uses     lib/protocol, lib/storage, lib/transport and what stands below them.
 * It ignores  Command lines, YAML, signals, and the process that it runs in.
 * Start at    this header, then state/control.h and shards/shards.h.
 */
/*
 * ps_server - this node: its registry, shards and control port, wired together
 *
 * What     Opens everything in the order of the dependencies and closes it in
 *          reverse. Decides nothing.
 * Owner    The caller. Threads: confined to one (the shards have their own).
 */
#ifndef PS_SERVER_SERVER_H
#define PS_SERVER_SERVER_H

#include "server/config/host.h"
#include "server/state/control.h"

typedef struct ps_server ps_server_t;

/*
 * Opens the data directory and the registry, binds the ports, starts the
 * shards, and is ready for requests; with cluster.join it has no registry but
 * joins that of another node. config is borrowed until the close, and metrics (may
 * be NULL), where its threads count; who reads those ends before the close. host is
 * copied. The first line of the log has the addresses. *ret_server is to be closed after
 * an error, too, once nobody reads the metrics.
 *
 * Errors: PSD_IO a port or the data directory, named; PSD_BUSY another psd has
 * the data directory; PSD_FOREIGN it is another cluster's or node's;
 * PSD_DAMAGED; PSD_NOMEM; with cluster.join those of ps_member_join.
 */
PSD_MUST_CHECK psd_status_t ps_server_open(const ps_config_t *config, const ps_server_host_t *host,
                                           ps_metrics_t *metrics, ps_server_t **ret_server,
                                           psd_error_t *err);
/* Answers waiting requests, sends what is queued, closes everything. Takes NULL. */
void ps_server_close(ps_server_t **self_p);

/* The control port, to wait for; ps_server_receive then. Borrowed. */
ps_socket_t *ps_server_port(const ps_server_t *self);
/* The link to a registry elsewhere; ps_server_receive_link then. NULL: the
 * registry is here. Borrowed until the next call. */
ps_socket_t *ps_server_link(const ps_server_t *self);
/* The ZeroMQ sockets of both, for a zloop: of a server all of whose endpoints
 * are ZeroMQ's. */
void *ps_server_handle(ps_server_t *self);
void *ps_server_link_handle(ps_server_t *self);
/* The sockets of the shards' pipes, 0 .. n - 1; ps_server_receive_shards then. */
uint32_t ps_server_n_pipes(const ps_server_t *self);
void *ps_server_pipe_handle(ps_server_t *self, uint32_t i);
void ps_server_receive(ps_server_t *self);
void ps_server_receive_link(ps_server_t *self);
void ps_server_receive_shards(ps_server_t *self);
/* Readable when this node's member of the registry has news; -1: it is none.
 * ps_server_receive_quorum then. */
int ps_server_quorum_fd(const ps_server_t *self);
void ps_server_receive_quorum(ps_server_t *self);
void ps_server_tick(ps_server_t *self);
/* When to call ps_server_tick next; UINT64_MAX for never. */
uint64_t ps_server_deadline(const ps_server_t *self);
/* Lost rows have no other copy, or a shard is deaf: this node must end. */
bool ps_server_is_broken(const ps_server_t *self);
/* Why the node must end; PSD_OK: it need not. */
PSD_MUST_CHECK psd_status_t ps_server_failure(const ps_server_t *self, psd_error_t *err);
/* The registry knows this node, which may be its own. */
bool ps_server_is_known(const ps_server_t *self);
/* The control port as clients reach it, and the node's name. Borrowed until the close. */
const char *ps_server_endpoint(const ps_server_t *self);
const char *ps_server_node(const ps_server_t *self);
/* The same port for this process: by its unix socket, if it has one. */
const char *ps_server_own_endpoint(const ps_server_t *self);
/* "serving on tcp://…", for systemd. */
void ps_server_status(const ps_server_t *self, char *ret_text, size_t size);
/* The page where the node's threads report that they turn. Borrowed until the close. */
ps_turns_t *ps_server_turns(const ps_server_t *self);
/* What its shards keep, as ps_shards_bytes. */
uint64_t ps_server_bytes(const ps_server_t *self);
/* The process ran out of descriptors, or has some again. */
void ps_server_set_files_out(ps_server_t *self, bool is_out);
/* The config passed to the open has new values. */
void ps_server_reloaded(ps_server_t *self);

/* Writes DATA_DIR/endpoints.json in one piece; http: where the HTTP port is, "": there is
 * none. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_server_announce(const ps_server_t *self, const char *http,
                                               psd_error_t *err);
#endif
