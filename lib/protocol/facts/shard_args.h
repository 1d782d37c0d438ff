/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_args - what a shard is told at its start: its name and its limits
 *
 * Units    bytes, ms
 * Owner    Plain values; copied.
 */
#ifndef PS_PROTOCOL_SHARD_ARGS_H
#define PS_PROTOCOL_SHARD_ARGS_H

#include <stdbool.h>

#include "base/bytes.h"

typedef struct ps_shard_args {
    ps_id_t cluster;
    uint64_t incarnation;           /* of the node */
    uint32_t shard;                 /* number within the node */
    uint32_t credit_requests;       /* granted to each connection, >= 1 */
    uint64_t credit_bytes;          /* granted to each connection */
    uint32_t chunk_bytes;           /* told in WELCOME */
    uint64_t slice_bytes;           /* largest body; also cuts answers to pulls */
    uint64_t held_bytes;            /* over the shard: bodies kept for a gate to open
                                       (above it: BUSY), and again as many for
                                       clocks to close (above it: LIMIT) */
    uint64_t memory_bytes;          /* of the node: rows, and bodies that are kept;
                                       0: as much as there is */
    uint64_t table_bytes;           /* the same of each table: a shard keeps as much
                                       of it as its share of the partitions; 0: as
                                       much as there is */
    uint64_t keys_bytes;            /* lists of keys kept for each connection */
    uint32_t sessions_max;          /* windows kept for each partition; twice as many
                                       while they are all in use */
    uint32_t retire_after_ms;       /* so long a window must be idle to give way to
                                       another one; 0: it need not */
    bool trace;                     /* a note for every push, mark and pull too */
    bool log;                       /* a record for every change: somebody reads them
                                     */
    bool disk;                      /* somebody writes the records of tables with ack
                                       level disk, and tells what is flushed */
    uint64_t snapshot_after_bytes;  /* partitions are written as snapshots when
                                       the log has grown by so much, and by as
                                       much as their rows take; 0: never */
    uint64_t log_queue_bytes;       /* records that are not flushed, before pushes
                                       wait; 0: 64 MiB */
    uint32_t lease_ms;              /* that other copies lend; 0: 300 */
    uint32_t slow_after_ms;         /* a copy is reported; 0: 2000 */
    uint64_t tail_bytes;            /* records of a partition kept for copies
                                       (ps_replicas_tail_most: no more than it has),
                                       and as much of answers that wait for them,
                                       before pushes wait; 0: 64 MiB */
    uint64_t record_bytes;          /* largest record that can be sent to a copy; 0:
                                       any */
    uint64_t flight_bytes;          /* of them under way to each; 0: 4 MiB. As much of
                                       rows, to a new copy */
    uint64_t copy_bytes_per_s;      /* of rows that the node gives to new copies; 0:
                                       no limit */
    uint64_t busy_copy_bytes_per_s; /* the same while clients ask a shard that
                                       gives or takes; 0: no other one */
} ps_shard_args_t;

#endif
