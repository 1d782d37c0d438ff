/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the registry when the shards are done, and forwards their reports. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/nodes/fleet_doc.h"
#include "daemon/nodes/member_inner.h"

#define WORD_MS 3000 /* for the registry's decision about damage */
#define LOOK_MS 50

psd_status_t ps_member_expect(ps_member_t *self, size_t n, psd_error_t *err)
{
    return ps_grow(&self->deliveries, &self->deliveries_capacity, self->n_deliveries + n,
                   sizeof *self->deliveries)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for a delivery");
}

void ps_member_await(ps_member_t *self, const ps_delivery_t *delivery)
{
    self->deliveries[self->n_deliveries++] = *delivery;
}

/* ---- answers ---- */

static ps_doc_t *new_answer(ps_member_t *self, uint64_t serial)
{
    ps_doc_t *doc = ps_member_message(self, "node_answer");

    if (doc != NULL && !ps_doc_set_u64(doc, "serial", serial)) {
        ps_doc_destroy(&doc);
    }
    return doc;
}

void ps_member_answer(ps_member_t *self, uint64_t serial, psd_status_t rc, const char *text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = new_answer(self, serial);

    if (doc == NULL || !ps_doc_set_u64(doc, "result", (uint64_t)rc) ||
        !ps_doc_set_text(doc, "text", text) || ps_member_send(self, doc, NULL) != PSD_OK) {
        ps_log(PS_LOG_WARN, "registry_not_answered", "serial=%" PRIu64, serial);
    }
}

static void answer_question(ps_member_t *self, uint64_t serial, const ps_shards_done_t *done)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = new_answer(self, serial);
    psd_status_t rc = done->status;

    if (rc != PSD_OK) {
        ps_member_answer(self, serial, rc, done->text);
        return;
    }
    if (doc == NULL ||
        !ps_answers_to_doc(&done->answers, ps_now_ms(), ps_doc_add_array(doc, "shards"))) {
        rc = psd_error_set(self->err, PSD_NOMEM, "no memory for an answer");
    } else {
        rc = ps_member_send(self, doc, self->err);
    }
    if (rc != PSD_OK) {
        ps_member_answer(self, serial, rc, psd_error_text(self->err));
        psd_error_clear(self->err);
    }
}

/* Dropped: there is nothing left to drop when the registry names its tables. */
static void forget_table(ps_member_t *self, uint32_t table)
{
    for (size_t i = 0; table != 0 && i < self->n_tables; i++) {
        if (self->tables[i] == table) {
            self->tables[i] = self->tables[--self->n_tables];
            return;
        }
    }
}

static bool has_delivery(const ps_member_t *self, uint64_t serial)
{
    for (size_t i = 0; i < self->n_deliveries; i++) {
        if (self->deliveries[i].serial == serial) {
            return true;
        }
    }
    return false;
}

/* The i-th task is done. Tasks of one serial are adjacent and get one
 * answer. */
static void finish(ps_member_t *self, size_t i, const ps_shards_done_t *done)
{
    const ps_delivery_t delivery = self->deliveries[i];

    self->n_deliveries--;
    memmove(&self->deliveries[i], &self->deliveries[i + 1],
            (self->n_deliveries - i) * sizeof *self->deliveries);
    if (delivery.asks) {
        answer_question(self, delivery.serial, done);
        return;
    }
    if (done->status == PSD_OK) {
        forget_table(self, delivery.drop);
    } else {
        self->worst = done->status;
    }
    if (!has_delivery(self, delivery.serial)) {
        ps_member_answer(self, delivery.serial, self->worst,
                         done->status == PSD_OK ? "" : done->text);
        self->worst = PSD_OK;
    }
}

static void take_done(ps_member_t *self, const ps_shards_done_t *done)
{
    if (done->serial == self->look) {
        self->look = 0;
        ps_sizes_learn(&self->sizes, &done->answers);
        return;
    }
    for (size_t i = 0; i < self->n_deliveries; i++) {
        if (self->deliveries[i].local == done->serial) {
            finish(self, i, done);
            return;
        }
    }
}

/* ---- reports ---- */

/* Forwards up to PS_REPORTS_MAX reports. Shards repeat a report while it
 * holds. false: there is none. */
static bool pass_reports(ps_member_t *self)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    ps_doc_t *array = NULL;
    ps_report_t report;
    bool fits = true;
    int n = 0;

    while (n < PS_REPORTS_MAX && ps_shards_next_report(self->is.shards, &report)) {
        if (n++ == 0) {
            doc = ps_member_message(self, "node_report");
            array = doc == NULL ? NULL : ps_doc_add_array(doc, "reports");
        }
        fits = fits && array != NULL && ps_report_to_doc(&report, array);
    }
    if (n > 0 && self->is_announced && (!fits || ps_member_send(self, doc, NULL) != PSD_OK)) {
        ps_log(PS_LOG_WARN, "reports_not_sent", "n=%d", n);
    }
    return n > 0;
}

void ps_member_receive_shards(ps_member_t *self)
{
    ps_shards_done_t done;
    bool more = true;

    ps_shards_take(self->is.shards, ps_now_ms());
    while (ps_shards_next_done(self->is.shards, &done)) {
        take_done(self, &done);
        ps_shards_done_done(&done);
    }
    while (more) {
        more = pass_reports(self);
    }
}

/* ---- damage ---- */

psd_status_t ps_member_failure(const ps_member_t *self, psd_error_t *err)
{
    return self->refusal[0] == '\0'
               ? PSD_OK
               : ps_node_damage_wrap(self->is.damage,
                                     psd_error_set(err, PSD_DAMAGED, "%s", self->refusal), err);
}

psd_status_t ps_member_await_word(ps_member_t *self, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + WORD_MS;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && !self->is_announced && self->refusal[0] == '\0' &&
           ps_now_ms() < until_ms) {
        bool ready = false;

        rc = ps_socket_wait(&self->link, 1, LOOK_MS, &ready, err);
        ps_member_receive(self);
    }
    return rc == PSD_OK ? ps_member_failure(self, err) : rc;
}
