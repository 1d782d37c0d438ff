/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_plugins - the updaters that a program has loaded, as data
 *
 * What     Who may load shared objects (the daemon) makes the list; rooms below
 *          only look a name up. A file that was found and refused is in the
 *          list too, with the reason, so that whoever asks for it learns why.
 * Owner    The list is the caller's; functions stay where they are for good.
 * Threads  Read-only once made.
 */
#ifndef PS_MODEL_PLUGIN_H
#define PS_MODEL_PLUGIN_H

#include "model/tables/table.h"
#include "psd_updater.h"

#define PS_PLUGIN_REASON_SIZE 256

typedef struct ps_plugin {
    char name[PS_NAME_MAX + 1];
    const psd_updater_t *functions;     /* NULL: refused */
    char reason[PS_PLUGIN_REASON_SIZE]; /* why it was */
} ps_plugin_t;

typedef struct ps_plugins {
    const char *dir; /* where they may lie; "" when none are allowed */
    ps_plugin_t *plugins;
    size_t n_plugins;
} ps_plugins_t;

/* Whether what a shared object of this name gave can be called at all: its ABI,
 * its name, its functions. Errors: PSD_VERSION another ABI; PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_plugin_check(const char *name, const psd_updater_t *functions,
                                            psd_error_t *err);

/*
 * Finds the functions of a table's plug-in and asks them whether they take the
 * table's type, row format and parameters. True to any other updater.
 *
 * table  in/out  has passed ps_table_spec_check; updater.functions is set
 *
 * Errors: PSD_DENIED the operator allows no plug-ins; PSD_UNSUPPORTED none of
 * that name, or it was refused; PSD_INVALID it does not take the table, with
 * its own reason.
 */
PSD_MUST_CHECK psd_status_t ps_plugins_bind(const ps_plugins_t *self, ps_table_spec_t *table,
                                            psd_error_t *err);
#endif
