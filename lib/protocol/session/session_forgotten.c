/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition that has forgotten the session: its pending operations start
 * again under another identity, over a separate connection.
 *
 * This must not apply anything twice. The first unfinished push or mark
 * decides: if it is known that none of its sends was taken, no later one can
 * have been taken. None will be: the partition refuses the old session
 * permanently within its epoch, and refuses sends of other epochs because of
 * the epoch. After a PROBE, its answers cannot be distinguished from answers to
 * the send, so earlier sends stay unsure.
 *
 * What was lent to a relay may be taken too, so it counts as a send. When the
 * relay gives it back and it is sent from here, one refusal does not take back
 * both: a client whose window the partition has retired (limits.sessions) breaks
 * with CLOSED then, where one that lends nothing starts again.
 */
#include "base/alloc.h"
#include "protocol/session/session_private.h"

void ps_op_not_taken(ps_op_t *op)
{
    if (!op->asked && op->n_unsure > 0) {
        op->n_unsure--;
    }
}

/* The first unfinished one; NULL: none. */
static const ps_op_t *first_numbered(const ps_part_t *part)
{
    const ps_op_t *op = NULL;

    TAILQ_FOREACH(op, &part->ops, in_list)
    {
        if (ps_op_is_numbered(op)) {
            break;
        }
    }
    return op;
}

bool ps_part_may_begin_anew(const ps_part_t *part)
{
    const ps_op_t *first = first_numbered(part);

    return first == NULL || first->n_unsure == 0;
}

bool ps_op_decides(const ps_op_t *op)
{
    return first_numbered(op->part) == op;
}

/* Numbers the pending operations like those of a new client. */
static void number_anew(ps_part_t *part)
{
    ps_op_t *op = NULL;

    part->seq = 0;
    part->ended_seq = 0;
    part->ended_epoch = 0;
    TAILQ_FOREACH(op, &part->ops, in_list)
    {
        part->seq += ps_op_is_numbered(op) ? 1 : 0;
        op->seq = part->seq;
        op->n_unsure = 0;
        op->asked = false;
    }
}

void ps_part_begin_anew(ps_session_t *self, uint64_t now_ms, ps_part_t *part, ps_outbox_t *outbox)
{
    uint32_t newest = (uint32_t)self->n_identities - 1;
    ps_link_t *place = NULL;
    psd_status_t rc = PSD_OK;

    ps_part_requeue(part);
    ps_part_leave_ring(part);
    part->is_forgotten = true;
    if (part->identity == newest) {
        return; /* another identity is wanted */
    }
    rc = ps_link_find(self, &part->place->route, newest, &place, NULL);
    if (rc == PSD_LIMIT) {
        ps_session_break(self, rc, "the map names too many endpoints; open a new client", outbox);
    }
    if (rc != PSD_OK) {
        self->wake_ms = 0; /* the next tick tries again */
        return;
    }
    part->is_forgotten = false;
    part->identity = newest;
    part->place = place;
    number_anew(part);
    ps_part_move(self, now_ms, part, outbox);
}

bool ps_session_wants_identity(const ps_session_t *self, uint32_t *ret_table,
                               uint32_t *ret_partition)
{
    for (size_t i = 0; i < self->n_places; i++) {
        const ps_part_t *part = NULL;

        TAILQ_FOREACH(part, &self->places[i]->active, in_active)
        {
            if (part->is_forgotten && part->identity + 1 == self->n_identities) {
                *ret_table = part->table;
                *ret_partition = part->partition;
                return true;
            }
        }
    }
    return false;
}

psd_status_t ps_session_add_identity(ps_session_t *self, const ps_identity_t *added,
                                     psd_error_t *err)
{
    if (!ps_grow(&self->identities, &self->identities_capacity, self->n_identities + 1,
                 sizeof *self->identities)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an identity");
    }
    self->identities[self->n_identities++] = *added;
    self->wake_ms = 0;
    return PSD_OK;
}

uint64_t ps_session_number(const ps_session_t *self, uint64_t link)
{
    return link < self->n_links ? self->identities[self->links[link]->identity].session : 0;
}
