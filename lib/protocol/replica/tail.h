/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_tail - the newest records of a partition, kept as long as a copy may need
 * them
 *
 * What     The primary keeps records that not every in-sync copy has. The
 *          followers keep the same, because one of them may have to send them
 *          to the rest. The bytes are those of the wire and of the log: encoded
 *          once.
 * Shape    records of consecutive lsn, `first` .. `first` + n - 1
 * Owner    The partition's ps_replicas. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_TAIL_H
#define PS_PROTOCOL_TAIL_H

#include "wire/records/record.h"

typedef struct ps_tail_record {
    uint64_t epoch;       /* of the record */
    ps_bytes_t bytes;     /* of the whole record; borrowed from holder */
    ps_payload_t *holder; /* held */
    uint64_t end;         /* total bytes of all records ever added, up to this one */
} ps_tail_record_t;

typedef struct ps_tail {
    ps_tail_record_t *ring; /* owned; room for capacity, a power of two */
    size_t capacity;
    size_t n;
    uint64_t first;  /* lsn of the oldest; of the next one when n is 0 */
    uint64_t before; /* epoch of the record before `first`; 0: none */
    uint64_t bytes;  /* of all records */
    uint64_t end;    /* of all records ever added */
    uint64_t *sum;   /* of several tails, updated together with bytes; borrowed; NULL: none */
} ps_tail_t;

/* An empty tail after record lsn, which was made under `epoch`. */
void ps_tail_init(ps_tail_t *self, uint64_t lsn, uint64_t epoch);
void ps_tail_done(ps_tail_t *self);
/* Drops everything, and starts after another record. */
void ps_tail_restart(ps_tail_t *self, uint64_t lsn, uint64_t epoch);
/* Makes sure that the next ps_tail_add succeeds. false: no memory. */
PSD_MUST_CHECK bool ps_tail_reserve(ps_tail_t *self);
/* Adds the next record; room was reserved. bytes are holder's, of which the
 * tail becomes one more holder. */
void ps_tail_add(ps_tail_t *self, uint64_t epoch, ps_bytes_t bytes, ps_payload_t *holder);
/* The next record was made, but no copy will need it: drops all records,
 * including this one. */
void ps_tail_pass(ps_tail_t *self, uint64_t lsn, uint64_t epoch);
/* The record; NULL: not here (any more). Borrowed until the tail changes. */
const ps_tail_record_t *ps_tail_get(const ps_tail_t *self, uint64_t lsn);
/* The epoch of record lsn, which may also be the one before the oldest. false:
 * not known here; lsn 0 is known and has epoch 0. */
PSD_MUST_CHECK bool ps_tail_epoch(const ps_tail_t *self, uint64_t lsn, uint64_t *ret_epoch);
/* lsn of the newest record, also when it was cut. */
static inline uint64_t ps_tail_last(const ps_tail_t *self)
{
    return self->first + self->n - 1;
}
/* Drops the records up to lsn. */
void ps_tail_cut(ps_tail_t *self, uint64_t lsn);

/* Packs records from lsn on as the values of one payload: as many as fit into
 * `most` bytes, but at least one. A single record is not copied. *ret_n is 0
 * and the result NULL when lsn is not here or there is no memory.
 */
PSD_MUST_CHECK ps_payload_t *ps_tail_pack(const ps_tail_t *self, uint64_t lsn, size_t most,
                                          uint32_t *ret_n);
#endif
