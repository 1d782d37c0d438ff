/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_plugins - the updaters that a program has loaded, as data
 *
 * What     A program that may load shared objects (the daemon) makes the list;
 *          lower rooms only look up a name. The list also has each file that
 *          was found and refused, with the reason, so that the refusal can say
 *          why.
 * Owner    The list is the caller's; functions stay valid forever.
 * Threads  Read-only after construction.
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
    const char *dir; /* the directory of plug-ins; "" when none are allowed */
    ps_plugin_t *plugins;
    size_t n_plugins;
} ps_plugins_t;

/* Checks that the functions from a shared object of this name can be called:
 * its ABI, its name, its functions. Errors: PSD_VERSION another ABI;
 * PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_plugin_check(const char *name, const psd_updater_t *functions,
                                            psd_error_t *err);

/*
 * Finds the functions of a table's plug-in and asks them whether they take the
 * table's type, row format and parameters. Always succeeds for any other
 * updater.
 *
 * table  in/out  has passed ps_table_spec_check; updater.functions is set
 *
 * Errors: PSD_DENIED the operator allows no plug-ins; PSD_UNSUPPORTED no
 * plug-in of that name, or it was refused; PSD_INVALID it does not take the
 * table, with its own reason.
 */
PSD_MUST_CHECK psd_status_t ps_plugins_bind(const ps_plugins_t *self, ps_table_spec_t *table,
                                            psd_error_t *err);
#endif
