/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_log_kit - a registry's log on a virtual disk, and what it must have
 *
 * What     A model of the log in an array. Each appended entry has a serial
 *          number of its own, from which its bytes follow: an old entry is
 *          never taken for a newer one of the same index. A call that fails or
 *          crashes has a state before and a state after; an open finds one of
 *          the two.
 */
#ifndef PS_TESTS_REGISTRY_LOG_KIT_H
#define PS_TESTS_REGISTRY_LOG_KIT_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "storage/registry/registry_log.h"
#include "support/sim_disk.h"

#define KIT_DIR "data/registry-log"
#define KIT_ENTRIES 1024 /* no index is higher */
#define KIT_ENTRY_MAX 1200

static const ps_id_t KIT_CLUSTER = {{1, 2, 3, 4}};

typedef struct kit_model {
    uint64_t first;
    uint64_t last;
    uint64_t flushed;
    uint64_t term;
    uint64_t vote;
    ps_id_t lineage;
    uint64_t serials[KIT_ENTRIES];
    uint64_t terms[KIT_ENTRIES];
} kit_model_t;

typedef struct kit {
    sim_disk_t *sim;
    const char *real_dir; /* on the system's disk, instead; NULL: none */
    ps_registry_log_t *log;
    uint64_t segment_bytes;
    uint64_t serial;  /* of the entry appended last */
    kit_model_t now;  /* what was reported */
    kit_model_t next; /* what the call would make of it that has not ended */
    kit_model_t seen; /* of the walk that is under way */
} kit_t;

static inline ps_registry_log_args_t kit_args(const kit_t *self)
{
    const char *dir = self->real_dir;

    return (ps_registry_log_args_t){.disk = dir == NULL ? sim_disk_face(self->sim) : ps_disk_real(),
                                    .dir = dir == NULL ? KIT_DIR : dir,
                                    .cluster = KIT_CLUSTER,
                                    .member = 77,
                                    .segment_bytes = self->segment_bytes};
}

static inline void kit_begin(kit_t *self, uint64_t seed, uint64_t segment_bytes)
{
    memset(self, 0, sizeof *self);
    self->sim = sim_disk_new(seed);
    self->segment_bytes = segment_bytes;
}

static inline void kit_end(kit_t *self)
{
    ps_registry_log_close(&self->log);
    sim_disk_destroy(&self->sim);
}

/* ---- entries ---- */

static inline size_t kit_size(uint64_t serial)
{
    return serial % 5 == 0 ? 0 : (size_t)(serial * 37 % (serial % 3 == 0 ? KIT_ENTRY_MAX : 40));
}

static inline uint8_t kit_byte(uint64_t serial, size_t i)
{
    return (uint8_t)(serial * 31 + i * 7 + (serial >> 8));
}

/* One of the model; its bytes are in `bytes`. */
static inline ps_registry_entry_t kit_entry(uint64_t index, uint64_t term, uint64_t serial,
                                            uint8_t bytes[KIT_ENTRY_MAX + 8])
{
    size_t size = kit_size(serial);

    memcpy(bytes, &serial, sizeof serial);
    for (size_t i = 0; i < size; i++) {
        bytes[sizeof serial + i] = kit_byte(serial, i);
    }
    return (ps_registry_entry_t){.index = index,
                                 .term = term,
                                 .kind = (ps_registry_entry_kind_t)(1 + serial % 3),
                                 .bytes = {bytes, sizeof serial + size}};
}

static inline psd_status_t kit_see(void *context, const ps_registry_entry_t *entry,
                                   psd_error_t *err)
{
    kit_t *self = context;
    uint8_t bytes[KIT_ENTRY_MAX + 8];
    uint64_t serial = 0;
    ps_registry_entry_t wanted;

    (void)err;
    cr_assert_eq(entry->index, self->seen.last + 1);
    cr_assert_geq(entry->bytes.size, sizeof serial);
    memcpy(&serial, entry->bytes.data, sizeof serial);
    cr_assert(serial > 0 && serial <= self->serial + 4, "entry %" PRIu64 " is none", entry->index);
    wanted = kit_entry(entry->index, entry->term, serial, bytes);
    cr_assert_eq(entry->kind, wanted.kind);
    cr_assert_eq(entry->bytes.size, wanted.bytes.size);
    cr_assert_arr_eq(entry->bytes.data, bytes, wanted.bytes.size);
    self->seen.last = entry->index;
    self->seen.serials[entry->index] = serial;
    self->seen.terms[entry->index] = entry->term;
    return PSD_OK;
}

/* ---- the model ---- */

static inline bool kit_fits(const kit_model_t *seen, const kit_model_t *model)
{
    if (seen->first != model->first || seen->last < model->flushed || seen->last > model->last ||
        seen->term != model->term || seen->vote != model->vote ||
        !ps_id_equal(&seen->lineage, &model->lineage)) {
        return false;
    }
    for (uint64_t i = seen->first; i <= seen->last; i++) {
        if (seen->serials[i] != model->serials[i] || seen->terms[i] != model->terms[i]) {
            return false;
        }
    }
    return true;
}

/* Opens and reads all. The log is what it was, or what the interrupted call
 * makes of it. */
static inline psd_status_t kit_open(kit_t *self, psd_error_t *err)
{
    ps_registry_log_args_t args = kit_args(self);
    psd_status_t rc = ps_registry_log_open(&args, &self->log, err);

    if (rc != PSD_OK) {
        cr_assert_null(self->log);
        return rc;
    }
    cr_assert_not_null(self->log);
    cr_assert(!ps_registry_log_is_broken(self->log));
    self->seen.first = ps_registry_log_first(self->log);
    self->seen.last = self->seen.first - 1;
    self->seen.term = ps_registry_log_term(self->log);
    self->seen.vote = ps_registry_log_vote(self->log);
    self->seen.lineage = ps_registry_log_lineage(self->log);
    rc = ps_registry_log_read(self->log, 0, kit_see, self, err);
    if (rc != PSD_OK) {
        ps_registry_log_close(&self->log);
        return rc;
    }
    cr_assert_eq(ps_registry_log_last(self->log), self->seen.last);
    cr_assert_eq(ps_registry_log_flushed(self->log), self->seen.last);
    cr_assert(kit_fits(&self->seen, &self->now) || kit_fits(&self->seen, &self->next),
              "found %" PRIu64 "..%" PRIu64 " term %" PRIu64 " vote %" PRIu64 "; was %" PRIu64
              "..%" PRIu64 " flushed %" PRIu64 " term %" PRIu64 "; next %" PRIu64 "..%" PRIu64
              " flushed %" PRIu64 " term %" PRIu64,
              self->seen.first, self->seen.last, self->seen.term, self->seen.vote, self->now.first,
              self->now.last, self->now.flushed, self->now.term, self->next.first, self->next.last,
              self->next.flushed, self->next.term);
    self->seen.flushed = self->seen.last;
    self->now = self->seen;
    self->next = self->now;
    return PSD_OK;
}

static inline void kit_must_open(kit_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = kit_open(self, err);

    cr_assert_eq(rc, PSD_OK, "%s", psd_error_text(err));
}

/* A new log; true: it was made and opened. */
static inline bool kit_create(kit_t *self, uint64_t first)
{
    ps_registry_log_args_t args = kit_args(self);
    const ps_id_t lineage = {{9}};

    self->now.first = first;
    self->now.last = first - 1;
    self->now.flushed = first - 1;
    self->now.lineage = lineage;
    self->next = self->now;
    return ps_registry_log_create(&args, &lineage, first, NULL) == PSD_OK &&
           kit_open(self, NULL) == PSD_OK;
}

/* ---- calls ---- */

/* After a call: what it was to do is done, or open. */
static inline psd_status_t kit_done(kit_t *self, psd_status_t rc)
{
    if (rc == PSD_OK) {
        self->now = self->next;
        cr_assert_eq(ps_registry_log_first(self->log), self->now.first);
        cr_assert_eq(ps_registry_log_last(self->log), self->now.last);
        cr_assert_eq(ps_registry_log_term(self->log), self->now.term);
        cr_assert_eq(ps_registry_log_vote(self->log), self->now.vote);
        cr_assert_geq(ps_registry_log_flushed(self->log), self->now.flushed);
        self->now.flushed = ps_registry_log_flushed(self->log);
        self->next = self->now;
    } else if (rc == PSD_IO) {
        cr_assert(ps_registry_log_is_broken(self->log));
    }
    return rc;
}

static inline psd_status_t kit_append(kit_t *self, size_t n)
{
    static uint8_t bytes[4][KIT_ENTRY_MAX + 8];
    ps_registry_entry_t entries[4];
    kit_model_t *next = &self->next;
    psd_status_t rc = PSD_OK;

    cr_assert_leq(n, 4);
    for (size_t i = 0; i < n; i++) {
        uint64_t index = ++next->last;

        cr_assert_lt(index, KIT_ENTRIES);
        next->serials[index] = self->serial + i + 1;
        next->terms[index] = next->term;
        entries[i] = kit_entry(index, next->term, next->serials[index], bytes[i]);
    }
    rc = ps_registry_log_append(self->log, entries, n, NULL);
    /* Also of a failed one some may be found. */
    self->serial += n;
    return kit_done(self, rc);
}

static inline psd_status_t kit_flush(kit_t *self)
{
    self->next.flushed = self->next.last;
    return kit_done(self, ps_registry_log_flush(self->log, NULL));
}

static inline psd_status_t kit_set_term(kit_t *self, uint64_t term, uint64_t vote)
{
    self->next.term = term;
    self->next.vote = vote;
    return kit_done(self, ps_registry_log_set_term(self->log, term, vote, NULL));
}

static inline psd_status_t kit_set_lineage(kit_t *self, uint8_t byte)
{
    self->next.lineage.bytes[3] = byte;
    return kit_done(self, ps_registry_log_set_lineage(self->log, &self->next.lineage, NULL));
}

static inline psd_status_t kit_cut_tail(kit_t *self, uint64_t from)
{
    kit_model_t *next = &self->next;

    next->last = from <= next->last ? from - 1 : next->last;
    next->flushed = next->flushed < next->last ? next->flushed : next->last;
    return kit_done(self, ps_registry_log_cut_tail(self->log, from, NULL));
}

/* Where the log begins after a cut of its head follows from its segments. */
static inline uint64_t kit_first_after(const kit_t *self, uint64_t before)
{
    uint64_t first = self->now.first;

    for (size_t i = 0; i < sim_disk_count(self->sim); i++) {
        uint64_t at = 0;

        if (sscanf(sim_disk_name(self->sim, i), KIT_DIR "/entries-%20" SCNu64, &at) == 1 &&
            strstr(sim_disk_name(self->sim, i), ".tmp") == NULL && at <= before && at > first) {
            first = at;
        }
    }
    return first;
}

static inline psd_status_t kit_cut_head(kit_t *self, uint64_t before)
{
    self->next.first = kit_first_after(self, before);
    return kit_done(self, ps_registry_log_cut_head(self->log, before, NULL));
}

static inline psd_status_t kit_reset(kit_t *self, uint64_t next)
{
    self->next.first = next;
    self->next.last = next - 1;
    self->next.flushed = next - 1;
    return kit_done(self, ps_registry_log_reset(self->log, next, NULL));
}

/* What lasted of an append that found no room, or of a refused call: nothing. */
static inline void kit_forget(kit_t *self)
{
    self->next = self->now;
}
#endif
