/* SPDX-License-Identifier: Apache-2.0 */
/* The allowed values of message fields, as tables of rules. */
#include "wire/messages/message_check.h"

#include <inttypes.h>
#include <stdio.h>

#define LEVEL_MAX 3 /* ps_ack_t of model/tables/table.h ends with DISK */

/* A field, its value and its allowed range; `why` says what the range depends
 * on. */
typedef struct rule {
    const char *field;
    uint64_t value;
    uint64_t min;
    uint64_t max;
    const char *why; /* NULL: always so */
} rule_t;

/* True when value lies within min .. max; otherwise *ret_broken names the
 * violation. The success path writes nothing. */
static inline bool lies_in(rule_t *ret_broken, const char *field, uint64_t value, uint64_t min,
                           uint64_t max, const char *why)
{
    if (value >= min && value <= max) {
        return true;
    }
    *ret_broken = (rule_t){field, value, min, max, why};
    return false;
}

static psd_status_t refuse(ps_kind_t kind, const rule_t *rule, psd_error_t *err)
{
    char most[32] = "";

    if (rule->max > rule->min) {
        (void)snprintf(most, sizeof most, "..%" PRIu64, rule->max);
    }
    return psd_error_set(err, PSD_PROTO, "%s.%s is %" PRIu64 "; allowed: %" PRIu64 "%s%s%s",
                         ps_kind_name(kind), rule->field, rule->value, rule->min, most,
                         rule->why != NULL ? " as " : "", rule->why != NULL ? rule->why : "");
}

static psd_status_t check_one(ps_kind_t kind, const char *field, uint64_t value, uint64_t min,
                              uint64_t max, const char *why, psd_error_t *err)
{
    rule_t broken;

    return lies_in(&broken, field, value, min, max, why) ? PSD_OK : refuse(kind, &broken, err);
}

/* How the slice names rows and columns. Without columns a dense row has no
 * bytes, and a short message could name 2^64 of them; so there is one at
 * least. */
static psd_status_t check_slice_shape(ps_kind_t kind, const ps_slice_t *slice, psd_error_t *err)
{
    bool range = slice->rows == PS_ROWS_RANGE;
    bool sparse = slice->layout == PS_LAYOUT_SPARSE;
    bool cols_range = slice->cols == PS_COLS_RANGE;
    uint64_t rows_max =
        range && slice->first_row > 0 ? UINT64_MAX - slice->first_row + 1 : UINT64_MAX;
    uint64_t cols_max = cols_range ? UINT64_C(0x100000000) - slice->first_col : UINT32_MAX;
    bool answers = kind == PS_KIND_VALUES;
    rule_t broken;

    return (lies_in(&broken, "rows", slice->rows, 0, answers ? PS_ROWS_ASKED : PS_ROWS_CACHED,
                    NULL) &&
            lies_in(&broken, "rows", slice->rows, 0,
                    !answers && slice->rows == PS_ROWS_ASKED ? PS_ROWS_RANGE : PS_ROWS_CACHED,
                    "it asks") &&
            lies_in(&broken, "layout", slice->layout, 0, PS_LAYOUT_SPARSE, NULL) &&
            lies_in(&broken, "cols", slice->cols, 0, PS_COLS_LIST, NULL) &&
            lies_in(&broken, "cols", slice->cols, 0, sparse ? 0 : PS_COLS_LIST,
                    "layout is SPARSE") &&
            lies_in(&broken, "type", slice->type, PS_TYPE_I32, PS_TYPE_F64, NULL) &&
            lies_in(&broken, "n_rows", slice->n_rows, kind == PS_KIND_VALUES ? 0 : 1, UINT64_MAX,
                    NULL) &&
            lies_in(&broken, "n_rows", slice->n_rows, 0, rows_max, "first_row is no smaller") &&
            lies_in(&broken, "first_row", slice->first_row, 0, range ? UINT64_MAX : 0,
                    "rows is not RANGE") &&
            lies_in(&broken, "first_col", slice->first_col, 0, cols_range ? UINT32_MAX : 0,
                    "cols is not RANGE") &&
            lies_in(&broken, "n_cols", slice->n_cols, 0, sparse ? 0 : UINT32_MAX,
                    "layout is SPARSE") &&
            lies_in(&broken, "n_cols", slice->n_cols, sparse || slice->n_rows == 0 ? 0 : 1,
                    UINT32_MAX, "layout is DENSE") &&
            lies_in(&broken, "n_cols", slice->n_cols, 0, cols_max, "first_col is no smaller"))
               ? PSD_OK
               : refuse(kind, &broken, err);
}

static psd_status_t check_slice(const ps_message_t *self, psd_error_t *err)
{
    ps_slice_t slice = {0};
    uint64_t n_values = 0;
    psd_status_t rc = PSD_OK;

    ps_message_slice(self, &slice);
    rc = check_slice_shape(self->kind, &slice, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (self->kind == PS_KIND_PULL || (self->kind == PS_KIND_PUSH && self->push.op != 0)) {
        return check_one(self->kind, "n_values", slice.n_values, 0, 0, NULL, err);
    }
    if (slice.layout == PS_LAYOUT_SPARSE) {
        return PSD_OK; /* the counts say whether n_values is right */
    }
    if (__builtin_mul_overflow(slice.n_rows, (uint64_t)slice.n_cols, &n_values)) {
        return psd_error_set(err, PSD_PROTO,
                             "%s.n_rows is %" PRIu64 "; %" PRIu32
                             " columns of that many rows cannot be counted",
                             ps_kind_name(self->kind), slice.n_rows, slice.n_cols);
    }
    if (slice.n_values != n_values) {
        return psd_error_set(
            err, PSD_PROTO,
            "%s.n_values is %" PRIu64 "; %" PRIu64 " rows of %" PRIu32 " columns need %" PRIu64,
            ps_kind_name(self->kind), slice.n_values, slice.n_rows, slice.n_cols, n_values);
    }
    return PSD_OK;
}

/* Only a worker marks, and only after all values that it asked for. */
static inline bool marks_rightly(const ps_message_t *self, rule_t *ret_broken)
{
    return (self->flags & PS_FLAG_MARK) == 0 ||
           (lies_in(ret_broken, "job", self->push.job, 1, UINT32_MAX, "it marks") &&
            lies_in(ret_broken, "pull", self->push.pull, 0, 0, "it marks") &&
            lies_in(ret_broken, "clock", self->push.clock, 0, UINT64_MAX - 1, "it marks"));
}

static psd_status_t check_push(const ps_message_t *self, psd_error_t *err)
{
    rule_t broken;
    psd_status_t rc =
        (lies_in(&broken, "seq", self->push.seq, 1, UINT64_MAX, NULL) &&
         lies_in(&broken, "ack", self->push.ack, 0, LEVEL_MAX, NULL) &&
         lies_in(&broken, "pull", self->push.pull, 0, self->push.op == 0 ? 1 : 0, NULL) &&
         lies_in(&broken, "op", self->push.op, 0, PS_CHANGE_AXPY, NULL) &&
         lies_in(&broken, "other", self->push.other, 0,
                 self->push.op == PS_CHANGE_AXPY ? UINT32_MAX : 0, "op is not AXPY") &&
         lies_in(&broken, "operand", self->push.operand, 0, self->push.op != 0 ? UINT64_MAX : 0,
                 "op is UPDATE") &&
         lies_in(&broken, "layout", self->push.layout, 0,
                 self->push.op == 0 ? UINT8_MAX : PS_LAYOUT_DENSE, "op is not UPDATE") &&
         marks_rightly(self, &broken))
            ? PSD_OK
            : refuse(self->kind, &broken, err);

    return rc == PSD_OK ? check_slice(self, err) : rc;
}

static psd_status_t check_pull(const ps_message_t *self, psd_error_t *err)
{
    rule_t broken;
    psd_status_t rc =
        (lies_in(&broken, "op", self->pull.op, 0, PS_READ_DIGEST, NULL) &&
         lies_in(&broken, "other", self->pull.other, 0,
                 self->pull.op == PS_READ_DOT ? UINT32_MAX : 0, "op is not DOT") &&
         lies_in(&broken, "operand", self->pull.operand, 0,
                 self->pull.op == PS_READ_TOP ? UINT64_MAX : 0, "op is not TOP") &&
         lies_in(&broken, "since", self->pull.since, 0, self->pull.op == 0 ? UINT64_MAX : 0,
                 "op is not VALUES") &&
         lies_in(&broken, "layout", self->pull.layout, 0,
                 self->pull.op == 0 ? UINT8_MAX : PS_LAYOUT_DENSE, "op is not VALUES"))
            ? PSD_OK
            : refuse(self->kind, &broken, err);

    return rc == PSD_OK ? check_slice(self, err) : rc;
}

static psd_status_t check_values(const ps_message_t *self, psd_error_t *err)
{
    psd_status_t rc = check_one(self->kind, "level", self->values.level, 0, LEVEL_MAX, NULL, err);

    return rc == PSD_OK ? check_slice(self, err) : rc;
}

static psd_status_t check_mark(const ps_message_t *self, psd_error_t *err)
{
    return check_one(self->kind, "seq", self->mark.seq, 1, UINT64_MAX, NULL, err);
}

static psd_status_t check_probe(const ps_message_t *self, psd_error_t *err)
{
    rule_t broken;

    return lies_in(&broken, "ack", self->probe.ack, 0, LEVEL_MAX, NULL) &&
                   lies_in(&broken, "mark", self->probe.mark, 0, 1, NULL)
               ? PSD_OK
               : refuse(self->kind, &broken, err);
}

static psd_status_t check_ack(const ps_message_t *self, psd_error_t *err)
{
    return check_one(self->kind, "level", self->ack.level, 1, LEVEL_MAX, NULL, err);
}

static psd_status_t check_hello(const ps_message_t *self, psd_error_t *err)
{
    return check_one(self->kind, "bulk", self->hello.bulk, 0, 1, NULL, err);
}

/* The first piece is never a CHUNK, and no type is narrower than 4 bytes. */
static psd_status_t check_chunk(const ps_message_t *self, psd_error_t *err)
{
    return check_one(self->kind, "offset", self->chunk.offset, 4, UINT64_MAX, NULL, err);
}

static psd_status_t check_append(const ps_message_t *self, psd_error_t *err)
{
    const ps_msg_append_t *append = &self->append;
    rule_t broken;

    return (lies_in(&broken, "first_lsn", append->first_lsn, 1, UINT64_MAX - append->n_records,
                    NULL) &&
            lies_in(&broken, "in_sync_lsn", append->in_sync_lsn, 0,
                    append->first_lsn - 1 + append->n_records, "that is the last record") &&
            lies_in(&broken, "lease_ms", append->lease_ms, 0, PS_LEASE_MS_MAX, NULL) &&
            lies_in(&broken, "flush", append->flush, 0, 1, NULL) &&
            lies_in(&broken, "release", append->release, 0, 1, NULL) &&
            lies_in(&broken, "n_records", append->n_records, 0,
                    append->release != 0 ? 0 : UINT32_MAX, "release is 1"))
               ? PSD_OK
               : refuse(self->kind, &broken, err);
}

static psd_status_t check_appended(const ps_message_t *self, psd_error_t *err)
{
    const ps_msg_appended_t *appended = &self->appended;
    rule_t broken;

    return (lies_in(&broken, "status", appended->status, 0, PS_APPENDED_PARTIAL, NULL) &&
            lies_in(&broken, "flushed_lsn", appended->flushed_lsn, 0, appended->lsn,
                    "lsn is no greater") &&
            lies_in(&broken, "detail", appended->detail, 0,
                    appended->status == PS_APPENDED_EPOCH ? UINT64_MAX : 0, "status is not EPOCH"))
               ? PSD_OK
               : refuse(self->kind, &broken, err);
}

static psd_status_t check_rows(const ps_message_t *self, psd_error_t *err)
{
    const ps_msg_rows_t *rows = &self->rows;
    bool is_piece = rows->kind == PS_GIVEN_PIECE;
    rule_t broken;

    return (lies_in(&broken, "transfer", rows->transfer, 1, UINT64_MAX, NULL) &&
            lies_in(&broken, "request", rows->request, 1, UINT64_MAX, NULL) &&
            lies_in(&broken, "kind", rows->kind, PS_GIVEN_STATE, PS_GIVEN_PIECE, NULL) &&
            lies_in(&broken, "last", rows->last, 0, 1, NULL) &&
            lies_in(&broken, "last", rows->last, 0, is_piece ? 1 : 0, "kind is STATE") &&
            lies_in(&broken, "place", rows->place, 0, is_piece ? UINT64_MAX : 0, "kind is STATE") &&
            lies_in(&broken, "size", rows->size, 1, PS_GIVEN_SIZE_MAX, NULL) &&
            lies_in(&broken, "offset", rows->offset, 0, rows->size - 1, "size is no greater"))
               ? PSD_OK
               : refuse(self->kind, &broken, err);
}

static psd_status_t check_taken(const ps_message_t *self, psd_error_t *err)
{
    const ps_msg_taken_t *taken = &self->taken;
    rule_t broken;

    return (lies_in(&broken, "transfer", taken->transfer, 1, UINT64_MAX, NULL) &&
            lies_in(&broken, "request", taken->request, 1, UINT64_MAX, NULL) &&
            lies_in(&broken, "wants", taken->wants, PS_TAKEN_STATE, PS_TAKEN_NOTHING, NULL) &&
            lies_in(&broken, "status", taken->status, 0, PS_TAKEN_NOMEM, NULL) &&
            lies_in(&broken, "detail", taken->detail, 0,
                    taken->status == PS_TAKEN_EPOCH ? UINT64_MAX
                    : taken->status == PS_TAKEN_OK  ? 1
                                                    : 0,
                    taken->status == PS_TAKEN_OK ? NULL : "status is neither OK nor EPOCH"))
               ? PSD_OK
               : refuse(self->kind, &broken, err);
}

/* An ASK proves nothing yet. */
static psd_status_t check_meet(const ps_message_t *self, psd_error_t *err)
{
    const ps_msg_meet_t *meet = &self->meet;
    bool proves = false;
    rule_t broken;

    for (size_t i = 0; i < PS_ID_SIZE; i++) {
        proves = proves || meet->proof.bytes[i] != 0;
    }
    return (lies_in(&broken, "step", meet->step, PS_MEET_ASK, PS_MEET_PROOF, NULL) &&
            lies_in(&broken, "job", meet->job, 1, UINT32_MAX, NULL) &&
            lies_in(&broken, "worker", meet->worker, 0, PS_BUNDLE_POSITIONS - 1, NULL) &&
            lies_in(&broken, "proof", proves ? 1 : 0, 0, meet->step == PS_MEET_ASK ? 0 : 1,
                    "step is ASK"))
               ? PSD_OK
               : refuse(self->kind, &broken, err);
}

static psd_status_t check_bundle(const ps_message_t *self, psd_error_t *err)
{
    const ps_msg_bundle_t *bundle = &self->bundle;
    rule_t broken;

    return (lies_in(&broken, "job", bundle->job, 1, UINT32_MAX, NULL) &&
            lies_in(&broken, "clock", bundle->clock, 0, UINT64_MAX - 1, NULL) &&
            lies_in(&broken, "urgent", bundle->urgent, 0, 1, NULL) &&
            lies_in(&broken, "n_from", bundle->n_from, 1, PS_BUNDLE_FROM_MAX, NULL) &&
            lies_in(&broken, "n_spans", bundle->n_spans, 0, PS_BUNDLE_SPANS_MAX, NULL))
               ? PSD_OK
               : refuse(self->kind, &broken, err);
}

static psd_status_t check_relayed(const ps_message_t *self, psd_error_t *err)
{
    const ps_msg_relayed_t *relayed = &self->relayed;
    rule_t broken;

    return (lies_in(&broken, "news", relayed->news, PS_RELAYED_TAKEN, PS_RELAYED_RETURNED, NULL) &&
            lies_in(&broken, "waits_for", relayed->waits_for, 0,
                    relayed->news == PS_RELAYED_WAITS ? UINT32_MAX : 0, "news is not WAITS"))
               ? PSD_OK
               : refuse(self->kind, &broken, err);
}

static psd_status_t check_want(const ps_message_t *self, psd_error_t *err)
{
    const ps_msg_want_t *want = &self->want;
    uint64_t most = want->first_row > 0 ? UINT64_MAX - want->first_row + 1 : UINT64_MAX;
    rule_t broken;

    return (lies_in(&broken, "request", want->request, 1, UINT64_MAX, NULL) &&
            lies_in(&broken, "n_rows", want->n_rows, 1, UINT64_MAX, NULL) &&
            lies_in(&broken, "n_rows", want->n_rows, 1, most, "first_row is no smaller"))
               ? PSD_OK
               : refuse(self->kind, &broken, err);
}

static psd_status_t check_rows_on(const ps_message_t *self, psd_error_t *err)
{
    rule_t broken;

    return lies_in(&broken, "request", self->rows_on.request, 1, UINT64_MAX, NULL) &&
                   lies_in(&broken, "has", self->rows_on.has, 0, 1, NULL)
               ? PSD_OK
               : refuse(self->kind, &broken, err);
}

static bool is_refusal(uint16_t number)
{
#define KNOWN(name, number, ...) \
    case number:                 \
        return number != PSD_OK;
    switch (number) {
        PSD_STATUS_MAP(KNOWN)
    default:
        return false;
    }
#undef KNOWN
}

static psd_status_t check_refused(const ps_message_t *self, psd_error_t *err)
{
    if (is_refusal(self->refused.status)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_PROTO,
                         "REFUSED.status is %u; allowed: the numbers of the "
                         "status list but 0",
                         (unsigned)self->refused.status);
}

static uint8_t flags_of(ps_kind_t kind)
{
    if (kind == PS_KIND_PUSH) {
        return PS_FLAG_MORE | PS_FLAG_CODED | PS_FLAG_KEEP | PS_FLAG_MARK | PS_FLAG_TIMES;
    }
    if (kind == PS_KIND_VALUES) {
        return PS_FLAG_MORE | PS_FLAG_CODED | PS_FLAG_TIMES;
    }
    if (kind == PS_KIND_ACK) {
        return PS_FLAG_TIMES;
    }
    return kind == PS_KIND_PULL ? PS_FLAG_CODED | PS_FLAG_KEEP | PS_FLAG_TIMES : 0;
}

static psd_status_t check_flags(const ps_message_t *self, psd_error_t *err)
{
    uint8_t allowed = flags_of(self->kind);

    if ((self->flags & ~allowed) == 0) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_PROTO, "%s.flags is %u; allowed: the bits of %u",
                         ps_kind_name(self->kind), (unsigned)self->flags, (unsigned)allowed);
}

psd_status_t ps_message_check(const ps_message_t *self, psd_error_t *err)
{
    psd_status_t rc = check_flags(self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    switch (self->kind) {
    case PS_KIND_PUSH:
        return check_push(self, err);
    case PS_KIND_PULL:
        return check_pull(self, err);
    case PS_KIND_HELLO:
        return check_hello(self, err);
    case PS_KIND_MARK:
        return check_mark(self, err);
    case PS_KIND_PROBE:
        return check_probe(self, err);
    case PS_KIND_ACK:
        return check_ack(self, err);
    case PS_KIND_VALUES:
        return check_values(self, err);
    case PS_KIND_REFUSED:
        return check_refused(self, err);
    case PS_KIND_CHUNK:
        return check_chunk(self, err);
    case PS_KIND_APPEND:
        return check_append(self, err);
    case PS_KIND_APPENDED:
        return check_appended(self, err);
    case PS_KIND_ROWS:
        return check_rows(self, err);
    case PS_KIND_TAKEN:
        return check_taken(self, err);
    case PS_KIND_MEET:
        return check_meet(self, err);
    case PS_KIND_BUNDLE:
        return check_bundle(self, err);
    case PS_KIND_RELAYED:
        return check_relayed(self, err);
    case PS_KIND_WANT:
        return check_want(self, err);
    case PS_KIND_ROWS_ON:
        return check_rows_on(self, err);
    case PS_KIND_WELCOME:
    case PS_KIND_PARKED:
    case PS_KIND_MOVED:
    case PS_KIND_BYE:
    case PS_KIND_PEER:
        return PSD_OK; /* every number is allowed */
    }
    return PSD_OK;
}
