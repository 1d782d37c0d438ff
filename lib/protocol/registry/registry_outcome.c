/* SPDX-License-Identifier: Apache-2.0 */
/* What requests have changed: a ring, so that one that is repeated is known. */
#include "base/alloc.h"
#include "protocol/registry/command_code.h"
#include "protocol/registry/registry_journal.h"

psd_status_t ps_registry_hold_outcomes(ps_registry_t *self, psd_error_t *err)
{
    if (self->outcomes == NULL) {
        self->outcomes = ps_alloc(PS_OUTCOMES_KEPT, sizeof *self->outcomes);
    }
    return self->outcomes != NULL ? PSD_OK
                                  : psd_error_set(err, PSD_NOMEM, "no memory for outcomes");
}

static ps_outcome_t *place_of(const ps_registry_t *self, uint64_t id)
{
    return &self->outcomes[id % PS_OUTCOMES_KEPT];
}

const ps_outcome_t *ps_registry_outcome(const ps_registry_t *self, uint64_t id)
{
    const ps_outcome_t *outcome = self->outcomes == NULL ? NULL : place_of(self, id);

    return id != 0 && outcome != NULL && outcome->id == id ? outcome : NULL;
}

uint64_t ps_registry_number_of(const ps_registry_t *self, const ps_command_t *command)
{
    const ps_node_t *node = NULL;

    switch ((int)command->kind) {
    case PS_COMMAND_TABLE:
        return command->table.id;
    case PS_COMMAND_JOB:
    case PS_COMMAND_JOB_TABLE:
        return command->job.id;
    case PS_COMMAND_QUEUE:
    case PS_COMMAND_WORK:
        return command->work.queue;
    case PS_COMMAND_NODE:
        node = ps_registry_find_node(self, command->node.name);
        return node == NULL ? 0 : node->id;
    case PS_COMMAND_PRINCIPAL:
        return command->principals[0].id;
    case PS_COMMAND_NODE_STATE:
        node = ps_registry_find_node(self, command->name);
        return node == NULL ? 0 : node->id;
    default:
        return command->number;
    }
}

/* Forgets the one that was in its place. */
psd_status_t ps_registry_note_outcome(ps_registry_t *self, const ps_command_t *command,
                                      uint64_t number, psd_error_t *err)
{
    ps_outcome_t *place = NULL;

    if (command->session == 0) {
        return PSD_OK;
    }
    place = place_of(self, self->n_outcomes + 1);
    if (!ps_journal_save(self, place, sizeof *place)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an outcome");
    }
    if (place->id != 0) {
        ps_touch(self, PS_ROW_ANSWER, place->id);
    }
    *place = (ps_outcome_t){.id = ++self->n_outcomes,
                            .session = command->session,
                            .request = command->request,
                            .kind = (uint32_t)command->kind,
                            .number = number,
                            .detail = command->detail};
    ps_touch(self, PS_ROW_ANSWER, place->id);
    return PSD_OK;
}

psd_status_t ps_registry_load_outcome(ps_registry_t *self, const ps_outcome_t *outcome,
                                      psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (outcome->id == 0 || outcome->id > PS_STORED_MAX || outcome->session == 0 ||
        outcome->session > PS_STORED_MAX ||
        (self->n_outcomes != 0 && outcome->id != self->n_outcomes + 1) ||
        ps_command_name((ps_command_kind_t)outcome->kind)[0] == '?') {
        return psd_error_set(err, PSD_DAMAGED,
                             "outcome %llu of session %llu and command kind %u is out of order, or "
                             "none",
                             (unsigned long long)outcome->id, (unsigned long long)outcome->session,
                             outcome->kind);
    }
    rc = ps_registry_hold_outcomes(self, err);
    if (rc == PSD_OK) {
        *place_of(self, outcome->id) = *outcome;
        self->n_outcomes = outcome->id;
    }
    return rc;
}

const ps_outcome_t *ps_registry_answer(const ps_registry_t *self, uint64_t session,
                                       uint64_t request)
{
    for (uint64_t n = 0; n < PS_OUTCOMES_KEPT && n < self->n_outcomes; n++) {
        const ps_outcome_t *outcome = ps_registry_outcome(self, self->n_outcomes - n);

        if (outcome == NULL) {
            return NULL;
        }
        if (outcome->session == session && outcome->request == request) {
            return outcome;
        }
    }
    return NULL;
}
