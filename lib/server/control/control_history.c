/* SPDX-License-Identifier: Apache-2.0 */
/* A registry of another history asks the nodes where copies are, before it says so. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "protocol/registry/registry_newer.h"
#include "server/quorum/replica.h"
#include "server/state/control_inner.h"

#define WAIT_MS 10000 /* for nodes that are not up; they may be lost for good */
#define LOOK_MS 50

/* What the registry knows now, before nodes come. */
static psd_status_t note_lines(ps_control_t *self, psd_error_t *err)
{
    size_t n = 0;

    for (size_t i = 0; i < ps_registry_n_tables(self->is.registry); i++) {
        n += ps_registry_table_at(self->is.registry, i)->spec.n_partitions;
    }
    self->doubt.lines = ps_alloc(n, sizeof *self->doubt.lines);
    if (self->doubt.lines == NULL) {
        return ps_control_no_memory(err);
    }
    for (size_t i = 0; i < ps_registry_n_tables(self->is.registry); i++) {
        const ps_table_t *table = ps_registry_table_at(self->is.registry, i);

        for (uint32_t k = 0; k < table->spec.n_partitions; k++) {
            self->doubt.lines[self->doubt.n_lines++] =
                (ps_witness_t){.table = table->id, .partition = k, .epoch = table->copies[k].epoch};
        }
    }
    return PSD_OK;
}

psd_status_t ps_control_begin_doubt(ps_control_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (ps_registry_n_tables(self->is.registry) == 0) {
        return PSD_OK;
    }
    rc = note_lines(self, err);
    if (rc == PSD_OK) {
        self->doubt.until_ms = ps_now_ms() + WAIT_MS;
        ps_overseer_hold(self->overseer, true);
    }
    return rc;
}

void ps_doubt_done(ps_doubt_t *self)
{
    ps_free(self->lines);
    *self = (ps_doubt_t){.until_ms = 0};
}

static bool are_all_up(const ps_control_t *self, uint64_t now_ms)
{
    for (size_t i = 0; i < ps_registry_n_nodes(self->is.registry); i++) {
        const ps_node_t *node = ps_registry_node_at(self->is.registry, i);

        if (ps_overseer_look(self->overseer, node, now_ms).state != PS_HEALTH_UP) {
            return false;
        }
    }
    return true;
}

bool ps_control_doubts(ps_control_t *self)
{
    uint64_t now_ms = ps_now_ms();

    if (self->doubt.until_ms == 0) {
        return false;
    }
    self->doubt.look_ms = now_ms + LOOK_MS;
    if (!self->doubt.asked && (are_all_up(self, now_ms) || now_ms >= self->doubt.until_ms)) {
        self->doubt.asked = ps_overseer_ask(self->overseer, PS_CALL_INSPECT, 0, "", self, now_ms,
                                            NULL) == PSD_OK; /* else it is tried again */
    }
    return true;
}

/* ---- what the nodes say ---- */

/* Both owned. */
typedef struct heard {
    ps_witness_t *copies;
    size_t n_copies;
    size_t copies_capacity;
    uint64_t *nodes;
    size_t n_nodes;
    size_t nodes_capacity;
} heard_t;

static void heard_done(heard_t *self)
{
    ps_free(self->copies);
    ps_free(self->nodes);
}

static bool hear(heard_t *self, const ps_shard_answer_t *answer)
{
    if (!ps_grow(&self->nodes, &self->nodes_capacity, self->n_nodes + 1, sizeof *self->nodes) ||
        !ps_grow(&self->copies, &self->copies_capacity, self->n_copies + answer->n_partitions,
                 sizeof *self->copies)) {
        return false;
    }
    self->nodes[self->n_nodes++] = answer->incarnation;
    for (size_t i = 0; i < answer->n_partitions; i++) {
        const ps_partition_info_t *info = &answer->partitions[i];

        self->copies[self->n_copies++] = (ps_witness_t){.table = info->table,
                                                        .partition = info->partition,
                                                        .incarnation = answer->incarnation,
                                                        .shard = answer->shard,
                                                        .epoch = info->epoch};
    }
    return true;
}

/* Says who has not. */
static void note_silent(const ps_control_t *self, const heard_t *heard)
{
    for (size_t i = 0; i < ps_registry_n_nodes(self->is.registry); i++) {
        const ps_node_t *node = ps_registry_node_at(self->is.registry, i);
        size_t k = 0;

        while (k < heard->n_nodes && heard->nodes[k] != node->incarnation) {
            k++;
        }
        if (k == heard->n_nodes) {
            ps_log(PS_LOG_WARN, "copies_not_all_known",
                   "node=%s hint=\"it may have newer copies than the registry, which is of another "
                   "history, knows\"",
                   node->name);
        }
    }
}

static psd_status_t learn(ps_control_t *self, const ps_answers_t *answers, psd_error_t *err)
{
    PSD_AUTO(heard_done) heard_t heard = {.copies = NULL};
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    ps_testimony_t testimony = {.before = self->doubt.lines, .n_before = self->doubt.n_lines};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < answers->n; i++) {
        if (!hear(&heard, &answers->at[i])) {
            return ps_control_no_memory(err);
        }
    }
    if (heard.n_copies > 0) {
        qsort(heard.copies, heard.n_copies, sizeof *heard.copies, ps_witness_compare);
    }
    testimony.copies = heard.copies;
    testimony.n_copies = heard.n_copies;
    testimony.nodes = heard.nodes;
    testimony.n_nodes = heard.n_nodes;
    note_silent(self, &heard);
    rc = ps_registry_plan_newer(self->is.registry, &testimony, ps_unix_ms(), &command, err);
    if (rc == PSD_OK && command.kind != 0) {
        rc = ps_control_commit(self, &command, PS_LOG_WARN, err);
    }
    return rc;
}

void ps_control_end_doubt(ps_control_t *self, ps_question_t *question)
{
    psd_status_t rc = learn(self, &question->answers, self->err);

    if (rc == PSD_OK) {
        ps_doubt_done(&self->doubt);
        ps_overseer_hold(self->overseer, false);
        return;
    }
    self->doubt.asked = false;
    ps_log(PS_LOG_ERROR, "copies_not_learnt", "status=%s hint=\"retrying\"", psd_status_name(rc));
    psd_error_clear(self->err);
}
