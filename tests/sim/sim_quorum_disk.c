/* SPDX-License-Identifier: Apache-2.0 */
/* A disk: what is flushed, and what is on the way. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim_quorum.h"

static void need(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void write_done(write_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_buffer_done(&self->entries[i].bytes);
    }
    ps_free(self->entries);
}

void disk_done(disk_t *self)
{
    for (size_t i = 0; i < self->n_writes; i++) {
        write_done(&self->writes[i]);
    }
    ps_free(self->writes);
    ps_quorum_cache_done(&self->log);
    *self = (disk_t){0};
}

void disk_set_term(disk_t *self, uint64_t term, uint64_t vote)
{
    self->term = term;
    self->vote = vote;
}

void disk_write(disk_t *self, const ps_quorum_effect_t *effect, uint64_t due_ms, const db_t *db)
{
    write_t *write = NULL;

    need(ps_grow(&self->writes, &self->capacity, self->n_writes + 1, sizeof *self->writes));
    write = &self->writes[self->n_writes++];
    *write =
        (write_t){.kind = effect->kind, .op = effect->op, .index = effect->index, .due_ms = due_ms};
    if (db != NULL) {
        write->is_install = true;
        write->db = *db;
    }
    write->entries = ps_alloc(effect->n_entries + 1, sizeof *write->entries);
    need(write->entries != NULL);
    for (; write->n < effect->n_entries; write->n++) {
        const ps_quorum_entry_t *entry = &effect->entries[write->n];

        write->entries[write->n] = (ps_quorum_entry_t){.term = entry->term, .kind = entry->kind};
        need(ps_buffer_append(&write->entries[write->n].bytes, entry->bytes.data,
                              entry->bytes.size));
    }
}

/* Carries out the first n entries of a write. */
static void carry_out(disk_t *self, write_t *write, size_t n)
{
    switch ((int)write->kind) {
    case PS_QUORUM_CUT:
        ps_quorum_cache_cut(&self->log, write->index);
        break;
    case PS_QUORUM_BEGIN:
        if (write->is_install) {
            self->db = write->db;
            self->has_db = true;
        }
        ps_quorum_cache_begin(&self->log, write->index);
        break;
    default:
        need(ps_quorum_cache_last(&self->log) + 1 == write->index);
        need(ps_quorum_cache_reserve(&self->log, n));
        for (size_t i = 0; i < n; i++) {
            ps_quorum_cache_add(&self->log, &write->entries[i]);
        }
        break;
    }
}

static void drop_first(disk_t *self)
{
    write_done(&self->writes[0]);
    self->n_writes--;
    memmove(self->writes, self->writes + 1, self->n_writes * sizeof *self->writes);
}

uint64_t disk_flush(disk_t *self, uint64_t now, bool *ret_is_install)
{
    uint64_t op = 0;

    *ret_is_install = false;
    while (self->n_writes > 0 && self->writes[0].due_ms <= now && !*ret_is_install) {
        if (self->writes[0].is_install && op != 0) {
            break; /* it is reported by itself */
        }
        op = self->writes[0].op;
        *ret_is_install = self->writes[0].is_install;
        carry_out(self, &self->writes[0], self->writes[0].n);
        drop_first(self);
    }
    return op;
}

void disk_crash(disk_t *self, ps_rng_t *rng, bool has_power)
{
    size_t whole = has_power ? self->n_writes : (size_t)ps_rng_below(rng, self->n_writes + 1);

    for (size_t i = 0; i < whole; i++) {
        carry_out(self, &self->writes[0], self->writes[0].n);
        drop_first(self);
    }
    if (self->n_writes > 0 && self->writes[0].kind == PS_QUORUM_EXTEND) {
        carry_out(self, &self->writes[0], (size_t)ps_rng_below(rng, self->writes[0].n + 1));
    } else if (self->n_writes > 0 && self->writes[0].is_install && ps_rng_below(rng, 2) == 0) {
        self->db = self->writes[0].db; /* the log is the old one still */
        self->has_db = true;
    }
    while (self->n_writes > 0) {
        drop_first(self);
    }
}
