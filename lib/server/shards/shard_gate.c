/* SPDX-License-Identifier: Apache-2.0 */
/* Rights of connections, as they were set with the generation that is noted with them. */
#include "server/shards/shard_gate.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "server/threads/audit_note.h"

#define SWEEP_MIN 1024 /* connections before any that have ended are looked for */

typedef struct gate_conn {
    ps_asker_t asker;
    uint64_t generation; /* of what follows (rights.h); 0: nothing is known */
    bool is_known;
    ps_principal_t principal;
    uint32_t table; /* of the last message; 0: none … */
    uint32_t verbs; /* … and what it may do there: a bit for each ps_verb_t */
} gate_conn_t;

void ps_shard_gate_init(ps_shard_gate_t *self, ps_rights_t *rights, const ps_gate_view_t *view)
{
    *self = (ps_shard_gate_t){.rights = rights, .view = *view, .sweep_count = SWEEP_MIN};
}

void ps_shard_gate_done(ps_shard_gate_t *self)
{
    size_t at = 0;
    uint64_t conn = 0;
    void *row = NULL;

    while (ps_map_next(&self->conns, &at, &conn, &row)) {
        ps_free(row);
    }
    ps_map_done(&self->conns);
}

void ps_shard_gate_forget(ps_shard_gate_t *self, uint64_t conn)
{
    ps_free(ps_map_remove(&self->conns, conn));
}

/* Moves those that stand to another map: nobody says when a connection of ZeroMQ ends. */
static void sweep(ps_shard_gate_t *self)
{
    ps_map_t kept = {0};
    size_t at = 0;
    uint64_t conn = 0;
    void *row = NULL;

    while (ps_map_next(&self->conns, &at, &conn, &row)) {
        if (!self->view.stands(self->view.of, conn) || !ps_map_put(&kept, conn, row)) {
            ps_free(row); /* it says HELLO again */
        }
    }
    ps_map_done(&self->conns);
    self->conns = kept;
    self->sweep_count = kept.count < SWEEP_MIN / 2 ? SWEEP_MIN : 2 * kept.count;
}

void ps_shard_gate_greet(ps_shard_gate_t *self, uint64_t conn, const ps_asker_t *asker)
{
    gate_conn_t *row = ps_map_get(&self->conns, conn);

    if (asker == NULL) {
        ps_shard_gate_forget(self, conn);
        return;
    }
    if (row == NULL) {
        if (self->conns.count >= self->sweep_count) {
            sweep(self);
        }
        row = ps_alloc(1, sizeof *row);
        if (row == NULL || !ps_map_put(&self->conns, conn, row)) {
            ps_free(row); /* the client is asked for HELLO again */
            return;
        }
    }
    *row = (gate_conn_t){.asker = *asker};
}

/* What the principals say now. false: this node has not heard of them. */
static bool renew(ps_shard_gate_t *self, gate_conn_t *row)
{
    uint64_t generation = ps_rights_generation(self->rights);

    if (row->generation != generation) {
        row->generation = generation;
        row->is_known = ps_rights_find(self->rights, &row->asker, &row->principal);
        row->table = 0;
        row->verbs = 0;
    }
    return ps_rights_epoch(self->rights) != 0;
}

/* The table that the message is for; 0: for none. */
static uint32_t table_of(const ps_message_t *message)
{
    switch ((int)message->kind) {
    case PS_KIND_PUSH:
        return message->push.table;
    case PS_KIND_PULL:
        return message->pull.table;
    case PS_KIND_MARK:
        return message->mark.table;
    case PS_KIND_PROBE:
        return message->probe.table;
    case PS_KIND_BUNDLE:
        return message->bundle.table;
    default:
        return 0;
    }
}

static void look_at_table(gate_conn_t *row, uint32_t table, const char *name)
{
    static const ps_verb_t VERBS[] = {PS_VERB_WRITE, PS_VERB_READ, PS_VERB_LOOK};

    row->table = table;
    row->verbs = 0;
    for (size_t i = 0; i < sizeof VERBS / sizeof *VERBS; i++) {
        if (ps_trust_may(&row->principal, VERBS[i], PS_OBJECT_TABLE, name)) {
            row->verbs |= UINT32_C(1) << VERBS[i];
        }
    }
}

/* A push that also pulls reads as well. */
static uint32_t wanted(const ps_message_t *message, const ps_need_t *need)
{
    uint32_t verbs = UINT32_C(1) << need->verb;

    if (message->kind == PS_KIND_PUSH && message->push.pull != 0) {
        verbs |= UINT32_C(1) << PS_VERB_READ;
    }
    return verbs;
}

/* table: its number; 0: none. name: NULL: unknown. A refusal shows the name only to a caller that
 * may look at the table. */
static psd_status_t refuse(const gate_conn_t *row, ps_verb_t verb, ps_object_t object,
                           uint32_t table, const char *name, psd_error_t *err)
{
    char who[PS_ASKER_TEXT_SIZE];
    char what[PS_NAME_MAX + 4] = "";
    char reach[PS_REACH_TEXT_SIZE];

    (void)ps_asker_print(&row->asker, who);
    if (!row->is_known) {
        return psd_error_set(err, PSD_DENIED,
                             "%s is no principal; an admin lets it in: pscli auth allow", who);
    }
    if (row->principal.denied) {
        return psd_error_set(err, PSD_DENIED, "%s (%s) is denied", row->principal.name, who);
    }
    if (name != NULL && ps_trust_may(&row->principal, PS_VERB_LOOK, PS_OBJECT_TABLE, name)) {
        (void)snprintf(what, sizeof what, " \"%s\"", name);
    } else if (table != 0) {
        (void)snprintf(what, sizeof what, " %" PRIu32, table);
    }
    return psd_error_set(err, PSD_DENIED, "%s (%s) may not %s %s%s%s; %s", row->principal.name, who,
                         ps_verb_phrase(verb), ps_object_word(object), what,
                         ps_trust_print_reach(&row->principal, verb, object, reach),
                         ps_trust_may_give(verb, object) ? "an admin can allow it"
                                                         : "only nodes may");
}

static psd_status_t check_table(const ps_shard_gate_t *self, gate_conn_t *row,
                                const ps_message_t *message, const ps_need_t *need,
                                psd_error_t *err)
{
    uint32_t table = table_of(message);
    uint32_t missing = wanted(message, need);
    const char *name = NULL;

    if (table != 0 && row->table == table && (missing & ~row->verbs) == 0) {
        return PSD_OK;
    }
    if (table == 0 || !row->is_known || row->principal.denied) {
        return refuse(row, need->verb, need->object, 0, NULL, err);
    }
    name = self->view.table(self->view.of, table);
    if (name == NULL) { /* the shard has no such table, and says so to whom tables are something */
        return ps_trust_may(&row->principal, need->verb, need->object, NULL)
                   ? PSD_OK
                   : refuse(row, need->verb, need->object, 0, NULL, err);
    }
    look_at_table(row, table, name);
    missing &= ~row->verbs;
    if (missing == 0) {
        return PSD_OK;
    }
    return refuse(row, missing == UINT32_C(1) << PS_VERB_READ ? PS_VERB_READ : need->verb,
                  need->object, table, name, err);
}

/* The second table of AXPY and DOT, whose rows are read, whatever is asked of it; 0: none. */
static uint32_t other_of(const ps_message_t *message)
{
    if (message->kind == PS_KIND_PUSH) {
        return message->push.other;
    }
    return message->kind == PS_KIND_PULL ? message->pull.other : 0;
}

/* It is looked up each time: it is rare, and the first table's rights stay in memory. One that is
 * not here is refused: it might be here when the request, which may wait, gets its turn. */
static psd_status_t check_other(const ps_shard_gate_t *self, const gate_conn_t *row, uint32_t other,
                                psd_error_t *err)
{
    const char *name = self->view.table(self->view.of, other);

    return name != NULL && ps_trust_may(&row->principal, PS_VERB_READ, PS_OBJECT_TABLE, name)
               ? PSD_OK
               : refuse(row, PS_VERB_READ, PS_OBJECT_TABLE, other, name, err);
}

static psd_status_t check(const ps_shard_gate_t *self, gate_conn_t *row,
                          const ps_message_t *message, const ps_need_t *need, psd_error_t *err)
{
    uint32_t other = other_of(message);
    psd_status_t rc = PSD_OK;

    if (need->object == PS_OBJECT_TABLE) {
        rc = check_table(self, row, message, need, err);
        return rc == PSD_OK && other != 0 ? check_other(self, row, other, err) : rc;
    }
    return row->is_known && ps_trust_may(&row->principal, need->verb, need->object, NULL)
               ? PSD_OK
               : refuse(row, need->verb, need->object, 0, NULL, err);
}

/* The audit has a table's name also where the caller does not hear it. */
static void note(const ps_shard_gate_t *self, const gate_conn_t *row, const ps_message_t *message,
                 const ps_need_t *need)
{
    ps_audit_record_t record =
        ps_audit_record_of(&row->asker, row->is_known ? row->principal.name : NULL,
                           row->is_known ? row->principal.id : 0);
    uint32_t table = table_of(message);

    record.op = need->kind;
    record.verb = ps_verb_word(need->verb);
    record.object = ps_object_word(need->object);
    record.name = table == 0 ? NULL : self->view.table(self->view.of, table);
    record.result = PSD_DENIED;
    ps_audit_note(self->audit, &record);
}

psd_status_t ps_shard_gate_check(ps_shard_gate_t *self, uint64_t conn, const ps_message_t *message,
                                 psd_error_t *err)
{
    const ps_need_t *need = ps_need_of_message(message->kind);
    gate_conn_t *row = ps_map_get(&self->conns, conn);
    psd_status_t rc = PSD_OK;

    if (row == NULL || need == NULL) {
        return psd_error_set(err, PSD_NO_SESSION, "say HELLO first");
    }
    if (!renew(self, row)) {
        return psd_error_set(err, PSD_BUSY, "this node has not heard of the principals yet");
    }
    rc = check(self, row, message, need, err);
    if (rc == PSD_DENIED) {
        note(self, row, message, need);
    }
    if (rc != PSD_OK && need->object != PS_OBJECT_TABLE) {
        ps_shard_gate_forget(self, conn); /* strangers take no room */
    }
    return rc;
}
