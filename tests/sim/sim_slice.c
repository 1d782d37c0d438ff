/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation carries: its rows and deltas in one of four layouts. */
#include "base/alloc.h"
#include "base/cursor.h"
#include "sim.h"

static bool append_values(const sim_t *sim, const sim_client_t *client, const sim_step_t *step,
                          ps_buffer_t *values)
{
    uint32_t shared = sim->plan.n_clients;
    bool fits = true;

    for (uint32_t i = 0; i < step->n_rows; i++) {
        for (uint32_t col = 0; col <= shared; col++) {
            bool given = col == client->number || (col == shared && step->layout != 3);
            int64_t delta = given ? step->deltas[i] : 0;

            if (!given && step->layout != 2) {
                continue;
            }
            if (sim->plan.spec.type == PS_TYPE_I32) {
                fits = fits && ps_buffer_i32(values, (int32_t)delta);
            } else if (sim->plan.spec.type == PS_TYPE_I64) {
                fits = fits && ps_buffer_i64(values, delta);
            } else {
                fits = fits && ps_buffer_f32(values, (float)delta * 0.37f);
            }
        }
    }
    return fits;
}

static bool append_index(const sim_t *sim, const sim_client_t *client, const sim_step_t *step,
                         ps_buffer_t *index)
{
    bool fits = true;

    if (step->layout == 0) {
        return ps_buffer_u32(index, client->number) && ps_buffer_u32(index, sim->plan.n_clients);
    }
    if (step->layout != 1) {
        return true;
    }
    for (uint32_t i = 0; i < step->n_rows; i++) {
        fits = fits && ps_buffer_u32(index, 2);
    }
    for (uint32_t i = 0; i < step->n_rows; i++) {
        fits = fits && ps_buffer_u32(index, client->number) &&
               ps_buffer_u32(index, sim->plan.n_clients);
    }
    return fits;
}

static void describe_push(const sim_t *sim, const sim_step_t *step, ps_slice_t *slice)
{
    uint32_t n_cols = step->layout == 0   ? 2
                      : step->layout == 1 ? 0
                      : step->layout == 2 ? sim->plan.n_clients + 1
                                          : 1;

    slice->n_cols = n_cols;
    slice->n_values = (uint64_t)step->n_rows * (step->layout == 1 ? 2 : n_cols);
    slice->layout = step->layout == 1 ? PS_LAYOUT_SPARSE : PS_LAYOUT_DENSE;
    slice->cols = step->layout == 0   ? PS_COLS_LIST
                  : step->layout == 3 ? PS_COLS_RANGE
                                      : PS_COLS_ALL;
}

ps_payload_t *sim_slice_make(const sim_t *sim, const sim_client_t *client, const sim_step_t *step,
                             ps_slice_t *ret_slice)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t keys = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t index = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t values = {0};
    ps_payload_t *payload = NULL;
    bool fits = true;

    *ret_slice =
        (ps_slice_t){.rows = PS_ROWS_LIST, .type = sim->plan.spec.type, .n_rows = step->n_rows};
    for (uint32_t i = 0; i < step->n_rows; i++) {
        fits = fits && ps_buffer_u64(&keys, step->bad ? sim->plan.n_rows + 9
                                                      : sim->plan.keys[step->rows[i]]);
    }
    if (step->kind == SIM_SCALE || step->kind == SIM_SUM) {
        ret_slice->cols = PS_COLS_RANGE;
        ret_slice->first_col = client->number;
        ret_slice->n_cols = 1;
    } else if (step->kind == SIM_PULL) {
        ret_slice->layout = step->layout % 2 == 1 ? PS_LAYOUT_SPARSE : PS_LAYOUT_DENSE;
        ret_slice->n_cols = step->layout % 2 == 1 ? 0 : sim->plan.n_clients + 1;
    } else {
        describe_push(sim, step, ret_slice);
        if (step->layout == 3) {
            ret_slice->first_col = client->number;
        }
        fits = fits && append_index(sim, client, step, &index) &&
               append_values(sim, client, step, &values);
    }
    payload = fits ? ps_payload_copy((ps_bytes_t){keys.data, keys.size},
                                     (ps_bytes_t){index.data, index.size},
                                     (ps_bytes_t){values.data, values.size})
                   : NULL;
    sim_need(payload != NULL, "memory for a slice");
    return payload;
}
