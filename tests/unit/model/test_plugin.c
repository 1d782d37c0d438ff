/* SPDX-License-Identifier: Apache-2.0 */
/* model/updaters/plugin.h: which plug-ins are taken and which tables they take; and
 * model/updaters/updater.h over one. */
#include "model/updaters/plugin.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "model/updaters/updater.h"

/* w += factor d; state 0 counts, state 1 keeps the first value. "factor=F" with
 * one digit. */
typedef struct times {
    float factor;
} times_t;

static int n_open;

static int times_open(uint32_t type, const char *text, void **ret_self, char *ret_reason,
                      size_t reason_size)
{
    times_t *self = NULL;

    if (strlen(text) != 8 || strncmp(text, "factor=", 7) != 0) {
        (void)snprintf(ret_reason, reason_size, "factor=F is needed");
        return -1;
    }
    cr_assert_eq(type, PSD_UPDATER_F32);
    self = ps_alloc(1, sizeof *self);
    cr_assert_not_null(self);
    self->factor = (float)(text[7] - '0');
    *ret_self = self;
    n_open++;
    return 0;
}

static void times_close(void *self)
{
    ps_free(self);
    n_open--;
}

static uint32_t times_n_states(const void *self)
{
    (void)self;
    return 2;
}

static void times_begin(const void *self, const void *values, void *state, size_t state_stride,
                        size_t n)
{
    float *first = (float *)state + state_stride;

    (void)self;
    memcpy(first, values, n * sizeof *first);
}

static void times_apply(const void *self, uint32_t worker, void *values, void *state,
                        size_t state_stride, const void *deltas, size_t n)
{
    const times_t *times = self;
    const float *d = deltas;
    float *w = values;
    float *count = state;

    (void)state_stride;
    cr_assert_eq((uintptr_t)deltas % sizeof(float), 0);
    cr_assert_eq(worker, 5);
    for (size_t i = 0; i < n; i++) {
        w[i] += times->factor * d[i];
        count[i] += 1;
    }
}

static const psd_updater_t good = {
    .abi = PSD_UPDATER_ABI,
    .sums = 1,
    .size = sizeof(psd_updater_t),
    .name = "times",
    .types = 1 << PSD_UPDATER_F32,
    .open = times_open,
    .close = times_close,
    .n_states = times_n_states,
    .begin = times_begin,
    .apply = times_apply,
};

static ps_plugin_t list[] = {
    {.name = "times", .functions = &good},
    {.name = "broken", .reason = "it has no psd_updater_plugin"},
};
static const ps_plugins_t plugins = {.dir = "/opt/updaters", .plugins = list, .n_plugins = 2};

static void check_refused(const psd_updater_t *functions, psd_status_t status, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(ps_plugin_check("times", functions, err), status);
    cr_assert_str_eq(psd_error_text(err), text);
}

Test(plugin, what_cannot_be_called_is_refused)
{
    psd_updater_t bad = good;

    cr_assert_eq(ps_plugin_check("times", &good, NULL), PSD_OK);
    check_refused(NULL, PSD_INVALID, "psd_updater_plugin returned nothing");
    bad.abi = PSD_UPDATER_ABI + 1;
    check_refused(&bad, PSD_VERSION, "it has ABI 3; this psd has 2");
    bad = good;
    bad.size--;
    cr_assert_eq(ps_plugin_check("times", &bad, NULL), PSD_VERSION);
    bad = good;
    bad.name = "other";
    check_refused(&bad, PSD_INVALID, "it calls itself \"other\", the file is times.so");
    bad.name = NULL;
    cr_assert_eq(ps_plugin_check("times", &bad, NULL), PSD_INVALID);
    bad = good;
    bad.apply = NULL;
    check_refused(&bad, PSD_INVALID, "open, close, n_states or apply is NULL");
}

static ps_table_spec_t table_with(const char *updater)
{
    ps_table_spec_t table;

    ps_table_spec_init(&table);
    cr_assert_eq(ps_updater_spec_parse(updater, &table.updater, NULL), PSD_OK);
    return table;
}

static void bind_refused(const ps_plugins_t *from, ps_table_spec_t *table, psd_status_t status,
                         const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(ps_plugins_bind(from, table, err), status);
    cr_assert_str_eq(psd_error_text(err), text);
    cr_assert_null(table->updater.functions);
}

Test(plugin, tables_are_bound_or_refused_by_name)
{
    static const ps_plugins_t none = {.dir = ""};
    static const ps_plugins_t empty = {.dir = "/opt/updaters"};
    ps_table_spec_t table = table_with("plugin:times:factor=3");
    ps_table_spec_t other = table_with("plugin:ghost");
    ps_table_spec_t broken = table_with("plugin:broken");
    ps_table_spec_t wrong = table_with("plugin:times:factor");
    ps_table_spec_t add = table_with("add");

    bind_refused(&none, &table, PSD_DENIED,
                 "plug-in times is not allowed: updaters.dir is not set in the "
                 "daemon's configuration");
    bind_refused(&plugins, &other, PSD_UNSUPPORTED,
                 "plug-in ghost is not loaded: there was no ghost.so in "
                 "updaters.dir /opt/updaters when psd started; loaded: times");
    bind_refused(&empty, &other, PSD_UNSUPPORTED,
                 "plug-in ghost is not loaded: there was no ghost.so in "
                 "updaters.dir /opt/updaters when psd started; loaded: none");
    bind_refused(&plugins, &broken, PSD_UNSUPPORTED,
                 "plug-in broken was refused when psd started: it has no "
                 "psd_updater_plugin");
    bind_refused(&plugins, &wrong, PSD_INVALID,
                 "plug-in times refuses \"factor\" for type f32: factor=F is "
                 "needed");
    table.type = PS_TYPE_F64;
    bind_refused(&plugins, &table, PSD_INVALID, "plug-in times does not take type f64");
    table.type = PS_TYPE_F32;
    table.row_format = PS_ROW_AUTO;
    bind_refused(&plugins, &table, PSD_INVALID,
                 "plug-in times takes row format dense only, not auto");
    table.row_format = PS_ROW_DENSE;
    cr_assert_eq(ps_plugins_bind(&plugins, &table, NULL), PSD_OK);
    cr_assert_eq(table.updater.functions, &good);
    cr_assert_eq(ps_plugins_bind(&none, &add, NULL), PSD_OK);
    cr_assert_eq(n_open, 0);
}

static uint32_t too_many_states(const void *self)
{
    (void)self;
    return PSD_UPDATER_STATES_MAX + 1;
}

Test(plugin, states_are_bounded)
{
    psd_updater_t many = good;
    ps_plugin_t one = {.name = "times", .functions = &many};
    ps_plugins_t set = {.dir = "/x", .plugins = &one, .n_plugins = 1};
    ps_table_spec_t table = table_with("plugin:times:factor=3");

    many.n_states = too_many_states;
    bind_refused(&set, &table, PSD_INVALID,
                 "plug-in times asks for 257 state arrays; 0..256 are allowed");
    cr_assert_eq(n_open, 0);
}

/* More values than are copied at once, at an odd address. */
Test(plugin, an_updater_runs_it)
{
    enum { N = 3000 };
    static float w[N];
    static float state[2 * N];
    static uint8_t deltas[N * sizeof(float) + 1];
    ps_table_spec_t table = table_with("plugin:times:factor=3");
    PSD_AUTO(ps_updater_destroy) ps_updater_t *updater = NULL;

    cr_assert_eq(ps_updater_new(&table.updater, PS_TYPE_F32, &updater, NULL), PSD_UNSUPPORTED);
    cr_assert_eq(ps_plugins_bind(&plugins, &table, NULL), PSD_OK);
    cr_assert_eq(ps_updater_new(&table.updater, PS_TYPE_F32, &updater, NULL), PSD_OK);
    cr_assert_eq(n_open, 1);
    cr_assert_eq(ps_updater_n_states(updater), 2);
    for (size_t i = 0; i < N; i++) {
        w[i] = 10;
        ps_store_f32(deltas + 1 + i * sizeof(float), (float)i);
    }
    ps_updater_begin(updater, (uint8_t *)w, (uint8_t *)state, N, N);
    ps_updater_apply(updater, 5, (uint8_t *)w, (uint8_t *)state, N, deltas + 1, N);
    ps_updater_apply(updater, 5, (uint8_t *)w, (uint8_t *)state, N, deltas, 0);
    for (size_t i = 0; i < N; i++) {
        cr_assert_eq(w[i], 10 + 3 * (float)i);
        cr_assert_eq(state[i], 1);
        cr_assert_eq(state[N + i], 10);
    }
    ps_updater_destroy(&updater);
    cr_assert_eq(n_open, 0);
}

Test(plugin, sums_are_for_those_that_take_them)
{
    psd_updater_t each = good;
    ps_plugin_t row = {.name = "times", .functions = &each};
    const ps_plugins_t rows = {.dir = "/opt/updaters", .plugins = &row, .n_plugins = 1};
    ps_table_spec_t table = table_with("plugin:times:factor=1");

    table.combine = PS_COMBINE_CLOCK_MEAN;
    each.sums = 0;
    bind_refused(&rows, &table, PSD_INVALID,
                 "plug-in times takes combine each only, not clock-mean");
    table.combine = PS_COMBINE_EACH;
    cr_assert_eq(ps_plugins_bind(&rows, &table, NULL), PSD_OK);
}
