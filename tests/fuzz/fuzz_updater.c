/* SPDX-License-Identifier: Apache-2.0 */
/* The words of updaters: no text hurts, what is taken is printed so that it
 * reads back, and what passes the check can be made and run. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "model/updaters/updater.h"

#define WORKERS 255 /* states at most */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const ps_table_spec_t *table)
{
    static double state[WORKERS];
    PSD_AUTO(ps_updater_destroy) ps_updater_t *updater = NULL;
    double value = 0;
    double delta = 1;

    memset(state, 0, sizeof state);
    if (ps_updater_new(&table->updater, table->type, &updater, NULL) == PSD_OK) {
        assert(ps_updater_n_states(updater) <= WORKERS);
        ps_updater_apply(updater, 0, (uint8_t *)&value, (uint8_t *)state, 1,
                         (const uint8_t *)&delta, 1);
    } else {
        assert(table->updater.kind == PS_UPDATER_PLUGIN);
    }
}

static void take(const char *text)
{
    ps_table_spec_t table;
    ps_updater_spec_t back = {0};
    char printed[PS_SPEC_TEXT_SIZE];
    char again[PS_SPEC_TEXT_SIZE];

    ps_table_spec_init(&table);
    memcpy(table.name, "w", 2);
    table.n_rows = 1;
    table.n_partitions = 1;
    table.n_col_slices = 1;
    if (ps_updater_spec_parse(text, &table.updater, NULL) != PSD_OK) {
        return;
    }
    ps_updater_spec_format(&table.updater, printed);
    assert(ps_updater_spec_parse(printed, &back, NULL) == PSD_OK);
    ps_updater_spec_format(&back, again);
    assert(strcmp(printed, again) == 0);
    if (ps_table_spec_check(&table, NULL) == PSD_OK) {
        run(&table);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = ps_alloc(size + 1, 1);

    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    take(text);
    ps_free(text);
    return 0;
}
