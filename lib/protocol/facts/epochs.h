/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_epochs - the epochs of a partition's records
 *
 * What     For each of the newest PS_EPOCHS_MAX epochs, the last record made
 *          under it. One primary makes all records of an epoch. So a copy that
 *          has a record of that epoch with the same or a greater lsn has the
 *          same records up to it, whatever was lost or promoted since. A
 *          partition that lost its rows with its node counts from 1 again,
 *          under another epoch.
 * Shape    epochs and lsns ascend
 * Owner    The partition; plain data. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_EPOCHS_H
#define PS_PROTOCOL_EPOCHS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "psd/status.h"

#define PS_EPOCHS_MAX 32

typedef struct ps_epochs {
    uint64_t epoch[PS_EPOCHS_MAX];
    uint64_t last[PS_EPOCHS_MAX]; /* lsn of its last record */
    uint32_t n;
} ps_epochs_t;

/* Adds the next record, made under `epoch`; forgets the oldest epoch when there
 * are too many. */
void ps_epochs_add(ps_epochs_t *self, uint64_t lsn, uint64_t epoch);
/* Whether record lsn, made under `epoch`, is one of these records. false: it is
 * not, or it is too old to know. lsn 0 precedes all. */
bool ps_epochs_have(const ps_epochs_t *self, uint64_t lsn, uint64_t epoch);
/* u32 n; n times u64 epoch, u64 last. false: no memory. */
PSD_MUST_CHECK bool ps_epochs_put(const ps_epochs_t *self, ps_buffer_t *to);
/* The same, back. Errors: PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_epochs_take(ps_cursor_t *cursor, ps_epochs_t *ret, psd_error_t *err);
#endif
