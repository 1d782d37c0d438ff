/* SPDX-License-Identifier: Apache-2.0 */
/* What outer steps need of options, job and tables. */
#include <inttypes.h>

#include "client/requests/table.h"
#include "train/setup/setup.h"

/* The option that says otherwise when sums leave or rows are fetched, or that
 * counts pushes, which outer steps put off; NULL: none. */
static const char *find_clash(const ps_train_options_t *self)
{
    if (self->queue != NULL) {
        return "queue";
    }
    if (self->push_every != 1) {
        return "push-every";
    }
    if (self->fetch_every > 1) {
        return "fetch-every";
    }
    return self->staleness != PS_KEPT_NEVER ? "staleness" : NULL;
}

static const char *find_needy(const ps_train_options_t *self)
{
    if (self->outer_fragments > 1) {
        return "outer-fragments";
    }
    return self->outer_overlap > 0 ? "outer-overlap" : NULL;
}

psd_status_t ps_outer_check_options(const ps_train_options_t *self, psd_error_t *err)
{
    const char *other = self->outer_every > 0 ? find_clash(self) : find_needy(self);

    if (other != NULL) {
        return psd_error_set(err, PSD_INVALID,
                             self->outer_every > 0
                                 ? "%s is set, and outer-every too; allowed: one of the two"
                                 : "%s is set; allowed with outer-every only",
                             other);
    }
    if (self->outer_every > 0 && self->lock == PS_LOCK_IMMUTABLE) {
        return psd_error_set(err, PSD_INVALID,
                             "lock is immutable, and outer-every is %" PRIu32
                             ", with which adds change the cache; allowed: lock-free, locked",
                             self->outer_every);
    }
    if (self->outer_every > 0 && self->outer_overlap >= self->outer_every) {
        return psd_error_set(err, PSD_INVALID,
                             "outer-overlap is %" PRIu32 ", and outer-every %" PRIu32
                             "; allowed: less than that",
                             self->outer_overlap, self->outer_every);
    }
    return PSD_OK;
}

psd_status_t ps_outer_check_delay(const psd_train_t *self, psd_error_t *err)
{
    return self->options.outer_every == 0 || self->max_delay == 0
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID,
                               "max-delay of the job is %" PRId32 ", and outer-every %" PRIu32
                               "; allowed: max-delay 0",
                               self->max_delay, self->options.outer_every);
}

psd_status_t ps_outer_check_table(const psd_train_t *self, const psd_table_t *table,
                                  psd_error_t *err)
{
    ps_updater_kind_t updater = table->spec.updater.kind;
    ps_type_t type = table->spec.type;

    if (self->options.outer_every == 0) {
        return PSD_OK;
    }
    if (table->spec.combine != PS_COMBINE_CLOCK_MEAN) {
        return psd_error_set(err, PSD_INVALID,
                             "table \"%s\" has combine %s; allowed with outer-every: clock-mean",
                             psd_table_name(table), ps_combine_name(table->spec.combine));
    }
    if (updater == PS_UPDATER_ASSIGN || updater == PS_UPDATER_MIN || updater == PS_UPDATER_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "table \"%s\" has updater %s; allowed with outer-every: add, and "
                             "those that take gradients, as nesterov",
                             psd_table_name(table), ps_updater_name(updater));
    }
    if (type == PS_TYPE_I32 || type == PS_TYPE_I64) { /* a mean of small ones is 0 */
        return psd_error_set(err, PSD_INVALID,
                             "table \"%s\" has type %s; allowed with outer-every: f32, f64",
                             psd_table_name(table), ps_type_name(type));
    }
    return PSD_OK;
}
