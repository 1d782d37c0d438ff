/* SPDX-License-Identifier: Apache-2.0 */
/* Moves as pscli shows them: what moves, the progress, and the time left. */
#include "server/state/control_inner.h"

#define ASSUMED_BYTES_PER_S (UINT64_C(100) << 20) /* assumed before the first copy */

void ps_control_learn_bytes(ps_control_t *self, const ps_answers_t *answers)
{
    for (uint32_t i = 0; i < answers->n; i++) {
        const ps_shard_answer_t *call = &answers->at[i];

        for (size_t k = 0; k < call->n_partitions; k++) {
            const ps_partition_info_t *info = &call->partitions[k];

            (void)ps_registry_set_bytes(self->is.registry, call->incarnation, info->table,
                                        info->partition,
                                        info->bytes.values + info->bytes.state + info->bytes.index);
        }
    }
}

/* Bytes of the copy that the move makes, as its shard reports. */
static uint64_t bytes_come(const ps_control_t *self, const ps_move_t *move,
                           const ps_answers_t *answers)
{
    const ps_node_t *to = move->under_way ? ps_registry_node(self->is.registry, move->to) : NULL;

    for (uint32_t i = 0; to != NULL && i < answers->n; i++) {
        const ps_shard_answer_t *call = &answers->at[i];

        for (size_t k = 0; call->incarnation == to->incarnation && k < call->n_partitions; k++) {
            const ps_partition_info_t *info = &call->partitions[k];

            if (info->table == move->table && info->partition == move->partition) {
                return info->come_bytes < move->bytes ? info->come_bytes : move->bytes;
            }
        }
    }
    return 0;
}

static bool add_move(const ps_control_t *self, const ps_move_t *move, uint64_t come,
                     ps_doc_t *array)
{
    const ps_table_t *table = ps_registry_table_by_id(self->is.registry, move->table);
    ps_doc_t *item = ps_doc_append_object(array);

    return item != NULL && ps_doc_set_text(item, "table", table == NULL ? "?" : table->spec.name) &&
           ps_doc_set_u64(item, "partition", move->partition) &&
           ps_doc_set_text(item, "from", move->from) && ps_doc_set_text(item, "to", move->to) &&
           ps_doc_set_text(item, "what",
                           move->role      ? "role"
                           : move->primary ? "primary"
                                           : "copy") &&
           ps_doc_set_u64(item, "bytes", move->role ? 0 : move->bytes) &&
           ps_doc_set_u64(item, "bytes_done", come) &&
           ps_doc_set_bool(item, "under_way", move->under_way);
}

/* The expected speed of a copy, and the source of that number. */
static uint64_t rate_of(const ps_control_t *self, const char **ret_from)
{
    uint64_t limit = ps_registry_setting(self->is.registry, PS_SETTING_COPY_RATE);
    uint64_t measured = ps_registry_copy_rate(self->is.registry);

    if (limit > 0 && (measured == 0 || measured > limit)) {
        *ret_from = "limit";
        return limit;
    }
    *ret_from = measured > 0 ? "measured" : "assumed";
    return measured > 0 ? measured : ASSUMED_BYTES_PER_S;
}

bool ps_control_add_moves(const ps_control_t *self, const ps_move_t *moves, size_t n,
                          const ps_answers_t *answers, ps_doc_t *reply)
{
    ps_doc_t *array = ps_doc_add_array(reply, "moves");
    const char *from = "";
    uint64_t rate = rate_of(self, &from);
    uint64_t bytes = 0;
    uint64_t come = 0;
    bool done = array != NULL;

    for (size_t i = 0; done && i < n; i++) {
        uint64_t here = bytes_come(self, &moves[i], answers);

        bytes += moves[i].role ? 0 : moves[i].bytes;
        come += here;
        done = add_move(self, &moves[i], here, array);
    }
    return done && ps_doc_set_u64(reply, "bytes", bytes) &&
           ps_doc_set_u64(reply, "bytes_done", come) &&
           ps_doc_set_u64(reply, "bytes_per_s", rate) && ps_doc_set_text(reply, "rate", from) &&
           ps_doc_set_f64(reply, "seconds", (double)(bytes - come) / (double)rate);
}
