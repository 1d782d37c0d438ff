/* SPDX-License-Identifier: Apache-2.0 */
/* A member's start, its log, its lead. */
#include "server/quorum/quorum_steps.h"

#include "base/alloc.h"

/* ---- the log ---- */

typedef struct entries {
    ps_quorum_entry_t *at; /* owned, each too */
    size_t n;
    size_t capacity;
} entries_t;

static void entries_done(entries_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_buffer_done(&self->at[i].bytes);
    }
    ps_free(self->at);
}

static psd_status_t keep_entry(void *context, const ps_registry_entry_t *entry, psd_error_t *err)
{
    entries_t *entries = context;
    ps_quorum_entry_t copy = {.term = entry->term, .kind = (uint32_t)entry->kind};

    if (!ps_grow(&entries->at, &entries->capacity, entries->n + 1, sizeof *entries->at) ||
        !ps_buffer_append(&copy.bytes, entry->bytes.data, entry->bytes.size)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the registry's log");
    }
    entries->at[entries->n++] = copy; /* ownership moves */
    return PSD_OK;
}

/* The database was installed, and psd ended before the log began again after it. */
static psd_status_t end_install(ps_registry_log_t *log, const ps_quorum_snapshot_t *snapshot,
                                psd_error_t *err)
{
    psd_status_t rc = snapshot == NULL || ps_registry_log_last(log) >= snapshot->index
                          ? PSD_OK
                          : ps_registry_log_reset(log, snapshot->index + 1, err);

    /* The state is of a term that the log has seen, unless it has just begun. */
    if (rc == PSD_OK && snapshot != NULL && ps_registry_log_term(log) < snapshot->term) {
        rc = ps_registry_log_set_term(log, snapshot->term, 0, err);
    }
    return rc;
}

psd_status_t ps_quorum_start(ps_registry_log_t *log, const ps_quorum_args_t *args,
                             ps_quorum_t **ret_quorum, uint64_t *ret_life, psd_error_t *err)
{
    PSD_AUTO(entries_done) entries_t entries = {0};
    ps_quorum_args_t own = *args;
    psd_status_t rc = end_install(log, args->snapshot, err);

    own.member = ps_registry_log_member(log);
    own.lineage = ps_registry_log_lineage(log);
    own.term = ps_registry_log_term(log);
    own.vote = ps_registry_log_vote(log);
    own.first = ps_registry_log_first(log);
    if (rc == PSD_OK) {
        rc = ps_registry_log_count_start(log, &own.life, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_log_read(log, own.first, keep_entry, &entries, err);
    }
    own.entries = entries.at;
    own.n_entries = entries.n;
    *ret_life = own.life;
    return rc == PSD_OK ? ps_quorum_new(&own, ret_quorum, err) : rc;
}

static psd_status_t append(ps_registry_log_t *log, uint64_t index, const ps_quorum_entry_t *entry,
                           psd_error_t *err)
{
    const ps_registry_entry_t row = {
        .index = index,
        .term = entry->term,
        .kind = (ps_registry_entry_kind_t)entry->kind,
        .bytes = {.data = entry->bytes.data, .size = entry->bytes.size}};

    return ps_registry_log_append(log, &row, 1, err);
}

psd_status_t ps_quorum_log_rest(ps_registry_log_t *log, const ps_quorum_t *quorum, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    uint64_t last = ps_quorum_last_index(quorum);

    for (uint64_t i = ps_registry_log_last(log) + 1; rc == PSD_OK && i <= last; i++) {
        const ps_quorum_entry_t *entry = ps_quorum_entry(quorum, i);

        rc = entry == NULL ? PSD_OK : append(log, i, entry, err);
    }
    return rc;
}

psd_status_t ps_quorum_log_obey(ps_registry_log_t *log, const ps_quorum_t *quorum,
                                const ps_quorum_effect_t *effect, psd_error_t *err)
{
    switch ((int)effect->kind) {
    case PS_QUORUM_BEGIN:
        return ps_registry_log_reset(log, effect->index + 1, err);
    case PS_QUORUM_CUT:
        return ps_registry_log_last(log) < effect->index
                   ? PSD_OK
                   : ps_registry_log_cut_tail(log, effect->index, err);
    case PS_QUORUM_EXTEND:
    default:
        return ps_quorum_log_rest(log, quorum, err);
    }
}

bool ps_quorum_describes(ps_bytes_t bytes, uint64_t index)
{
    PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t message = {0};

    return index != 0 && ps_quorum_message_decode(bytes, &message, NULL) == PSD_OK &&
           message.snapshot.index == index;
}

/* ---- the lead ---- */

ps_duty_t ps_quorum_duty(ps_quorum_state_t state, uint64_t term, uint64_t last, uint64_t applied,
                         uint64_t led_term)
{
    if (state != PS_QUORUM_LEADER) {
        return PS_DUTY_FOLLOW;
    }
    if (led_term == term) {
        return PS_DUTY_STAY;
    }
    return applied < last ? PS_DUTY_WAIT : PS_DUTY_LEAD;
}
