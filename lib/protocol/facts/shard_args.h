/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_args - a shard's arguments at its start: its name and its limits
 *
 * Units    bytes, ms
 * Owner    Plain values; copied.
 */
#ifndef PS_PROTOCOL_SHARD_ARGS_H
#define PS_PROTOCOL_SHARD_ARGS_H

#include <stdbool.h>

#include "base/bytes.h"
#include "protocol/facts/counts.h"

typedef struct ps_shard_args {
    ps_id_t cluster;
    uint64_t incarnation;           /* of the node */
    uint32_t shard;                 /* number within the node */
    uint32_t credit_requests;       /* granted to each connection, >= 1 */
    uint64_t credit_bytes;          /* granted to each connection */
    uint32_t chunk_bytes;           /* sent in WELCOME */
    uint64_t slice_bytes;           /* largest body; also cuts answers to pulls */
    uint64_t held_bytes;            /* for the whole shard: bodies kept until a gate opens (above
                                       it: BUSY), and the same again until clocks close (above it:
                                       LIMIT) */
    uint64_t memory_bytes;          /* of the node: rows, and kept bodies; 0: no limit */
    uint64_t table_bytes;           /* the same for each table: a shard may keep its share of it, by
                                       its share of the partitions; 0: no limit */
    uint64_t keys_bytes;            /* lists of keys kept for each connection */
    uint32_t sessions_max;          /* windows kept for each partition; twice this number while all
                                       are in use */
    uint32_t retire_after_ms;       /* a window must be idle for this time before another one
                                       replaces it; 0: no wait */
    uint32_t slow_ms;               /* a part of a request's time is slow from here on (slow_log.h);
                                       0: none is */
    bool trace;                     /* also a note for every push, mark and pull */
    bool log;                       /* a record effect for every change, because the shell reads
                                     * them
                                     */
    bool disk;                      /* the shell writes the records of tables with ack level disk,
                                       and reports what is flushed */
    uint64_t snapshot_after_bytes;  /* snapshots are written when the log has grown by this, and by
                                       the size of the rows; 0: never */
    uint64_t log_queue_bytes;       /* unflushed records before pushes wait; 0: 64 MiB */
    uint32_t lease_ms;              /* of leases that other copies grant; 0: 300 */
    uint32_t slow_after_ms;         /* after which a copy is reported; 0: 2000 */
    uint64_t tail_bytes;            /* records of a partition kept for copies
                                       (ps_replicas_tail_most: at most the partition's size), and
                                       the same size of answers that wait for them, before pushes
                                       wait; 0: 64 MiB */
    uint64_t record_bytes;          /* largest record that can be sent to a copy; 0:
                                       any */
    uint64_t flight_bytes;          /* of records in flight to each copy; 0: 4 MiB. The same for
                                       rows to a new copy */
    uint64_t copy_bytes_per_s;      /* of rows that the node sends to new copies; 0: no limit */
    uint64_t busy_copy_bytes_per_s; /* the same while clients use the sending or the receiving
                                       shard; 0: the limit above */
    ps_shard_counts_t *counts;      /* borrowed; where it counts; NULL: in memory of its own */
} ps_shard_args_t;

/* Those of the arguments that the cluster may set while the shard runs. */
typedef struct ps_shard_limits {
    uint64_t slow_after_ms; /* 0: those of the arguments count */
    uint64_t copy_bytes_per_s;
    uint64_t busy_copy_bytes_per_s;
} ps_shard_limits_t;

#endif
