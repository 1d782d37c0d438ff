/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/agent: a node whose registry is another node
 *
 * It is       The messages between the registry and the nodes. The node's side:
 *             it announces itself, sends beats, applies tells in order, answers,
 *             and forwards what its shards report.
 * It uses     registry (its values and their fields), facts, core, lib/model,
 *             lib/base.
 * It ignores  How a message travels, clocks and threads, how a shard does its
 *             work, how a node joins (in JSON, so that two builds of different
 *             format can name that).
 * Start at    node_fields.def, then ps_agent_take in agent.c.
 */
/*
 * ps_node_message - one message between the registry and a node
 *
 * Shape    magic u32 "psNm", format u16 (PS_NODE_FORMAT), kind u8, 0 u8, the head;
 *          then the kind's fields, in the order of node_fields.def
 * Owner    ps_node_message_done frees what a decoded message owns. A message
 *          that is only encoded may borrow.
 * Threads  plain values
 */
#ifndef PS_PROTOCOL_NODE_MESSAGE_H
#define PS_PROTOCOL_NODE_MESSAGE_H

#include "protocol/agent/heard.h"
#include "protocol/agent/node_fields.def"
#include "protocol/core/outbox.h"
#include "protocol/facts/shard_answer.h"
#include "protocol/registry/registry.h"

#define PS_DAMAGE_TEXT_SIZE 512
#define PS_SIZES_MAX 128    /* in a beat */
#define PS_REPORTS_MAX 1024 /* in a message */
#define PS_SEATS_MAX 16     /* nodes that have the registry */

#define PS_NODE_MESSAGE_ENUM(NAME, number, word) PS_NODE_##NAME = number,
typedef enum ps_node_message_kind {
    PS_NODE_MESSAGE_MAP(PS_NODE_MESSAGE_ENUM)
} ps_node_message_kind_t;
#undef PS_NODE_MESSAGE_ENUM

/* Where a partition is. Its route leads to the first copy. */
typedef struct ps_place {
    uint32_t partition;
    ps_copies_t copies;
    char ipc[PS_ENDPOINT_MAX + 1]; /* of the first copy's shard; "" */
} ps_place_t;

/* A node that has the registry, and its control port. */
typedef struct ps_seat {
    char node[PS_NAME_MAX + 1];
    char endpoint[PS_ENDPOINT_MAX + 1];
} ps_seat_t;

/* A copy that must take no more records of lower epochs. */
typedef struct ps_copy_fence {
    uint32_t shard; /* of the node; the only one that is asked */
    uint32_t table;
    uint32_t partition;
    uint64_t epoch;
} ps_copy_fence_t;

/* node_fields.def says which message carries which member. */
typedef struct ps_node_message {
    ps_node_message_kind_t kind;
    uint64_t serial;
    ps_id_t cluster;
    uint64_t incarnation;
    ps_moment_t at;  /* the registry's state */
    ps_node_t node;  /* without lost */
    ps_lost_t *lost; /* owned, as the other lists */
    size_t n_lost;
    uint64_t epoch;   /* the greatest that the sender knows */
    bool files_out;   /* the process is out of descriptors */
    uint32_t n_aside; /* tables that it keeps aside */
    psd_status_t status;
    char text[PS_DAMAGE_TEXT_SIZE]; /* why status is not OK; damage found at the start */
    ps_size_info_t *sizes;          /* of primaries, that differ from the last ones sent */
    size_t n_sizes;
    ps_report_t *reports;
    size_t n_reports;
    ps_answers_t answers; /* owned; times are ages */
    uint32_t *tables;
    size_t n_tables;
    uint32_t last_table; /* the greatest numbers that were given out */
    uint32_t last_job;
    uint64_t session;
    ps_setting_t *settings; /* SESSIONS: all that the cluster has set */
    size_t n_settings;
    ps_table_t table; /* without its lists */
    ps_place_t *places;
    size_t n_places;
    ps_job_t job;      /* ASK: its id; 0: none */
    uint64_t since;    /* RANKS: workers that changed after this version of the job */
    uint32_t question; /* the shell's number for what is asked */
    ps_buffer_t words; /* owned; of the question */
    ps_copy_fence_t fence;
    ps_seat_t *seats; /* that have the registry; node.name is the leader's, or "" */
    size_t n_seats;
    uint64_t member; /* that sends, of the registry; node.control is where it listens */
    ps_id_t token;   /* of an invitation; zero: none */
    ps_id_t proof;   /* MEMBER: ps_proof_place; INVITE: the key of the inviting node */
    uint64_t offset; /* in the database */
    uint64_t total;  /* its bytes */
} ps_node_message_t;

/* "beat", …; "?" when it is not a kind. */
const char *ps_node_message_name(ps_node_message_kind_t kind);
/* Frees and zeroes; fits PSD_AUTO. */
void ps_node_message_done(ps_node_message_t *self);

/* Appends the bytes. false: no memory. */
PSD_MUST_CHECK bool ps_node_message_encode(const ps_node_message_t *self, ps_buffer_t *buffer);
/* True when it begins as one: what else travels on the port is JSON. */
PSD_MUST_CHECK bool ps_node_message_is(ps_bytes_t bytes);
/* Reads kind, serial, cluster and incarnation alone. Errors: PSD_VERSION another
 * format; PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_node_message_head(ps_bytes_t bytes, ps_node_message_t *ret_message,
                                                 psd_error_t *err);
/* Reads all of the bytes. TABLE has a checked spec and a place for each
 * partition, in order; the copies of each place are checked. *ret_message is the
 * caller's on PSD_OK. Errors: PSD_VERSION another format; PSD_PROTO and
 * PSD_INVALID, naming the field; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_node_message_decode(ps_bytes_t bytes, ps_node_message_t *ret_message,
                                                   psd_error_t *err);

/* Fills `places` (owned) of TABLE or PLACES: the partitions of a table of the
 * registry that changed after `since`. false: no memory. */
PSD_MUST_CHECK bool ps_places_gather(const ps_table_t *table, uint64_t since,
                                     ps_node_message_t *message);
/* Puts places into a table whose copies and routes have room for them. Errors:
 * PSD_INVALID a partition that the table does not have. */
PSD_MUST_CHECK psd_status_t ps_places_put(const ps_node_message_t *message, ps_table_t *table,
                                          psd_error_t *err);
#endif
