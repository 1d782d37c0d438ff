/* SPDX-License-Identifier: Apache-2.0 */
/* families.def as data, and the values of its labels. */
#include "server/metrics/family.h"

#include "protocol/facts/job.h"
#include "protocol/registry/registry.h"
#include "protocol/registry/command_code.h"

#define ROW(SOURCE, type_of, TYPE, DIM, UNIT, member, name_, help_) \
    {.name = (name_),                                               \
     .help = (help_),                                               \
     .source = PS_SOURCE_##SOURCE,                                  \
     .type = PS_TYPE_##TYPE,                                        \
     .dim = PS_BY_##DIM,                                            \
     .unit = PS_UNIT_##UNIT,                                        \
     .n_cells = PS_DIM_##DIM,                                       \
     .offset = offsetof(type_of, member)},
#define NODE(...) ROW(NODE, ps_node_counts_t, __VA_ARGS__)
#define THREAD(...) ROW(THREAD, ps_thread_counts_t, __VA_ARGS__)
#define SHARD(...) ROW(SHARD, ps_shard_counts_t, __VA_ARGS__)
#define JOURNAL(...) ROW(JOURNAL, ps_journal_counts_t, __VA_ARGS__)
#define CONTROL(...) ROW(CONTROL, ps_control_counts_t, __VA_ARGS__)
#define MEMBER(...) ROW(MEMBER, ps_member_counts_t, __VA_ARGS__)
#define JOB(...) ROW(JOB, ps_job_counts_t, __VA_ARGS__)
#define TABLE(...) ROW(TABLE, ps_table_counts_t, __VA_ARGS__)
#define WORKER(...) ROW(WORKER, ps_worker_counts_t, __VA_ARGS__)

const ps_family_t ps_families[] = {
#include "protocol/facts/families.def"
};
const size_t ps_n_families = sizeof ps_families / sizeof ps_families[0];

const char *ps_dim_label(ps_dim_t dim)
{
#define LABEL(DIM, label) label,
    static const char *const LABELS[] = {PS_DIMS(LABEL)};
#undef LABEL

    return LABELS[dim];
}

#define VALUES(DIM, ...)                                                         \
    static const char *const DIM##_VALUES[] = {__VA_ARGS__};                     \
    _Static_assert(sizeof DIM##_VALUES / sizeof DIM##_VALUES[0] == PS_DIM_##DIM, \
                   "all cells have a value")

VALUES(VERSION, PSD_RELEASE);
VALUES(REQUEST, "push", "pull", "mark", "probe", "bundle");
VALUES(HELD, PS_HELD_NAMES);
VALUES(ROLE, "primary", "copy", "aside");
VALUES(HEALTH, "up", "down", "draining");
VALUES(OUTCOME, "done", "failed");
VALUES(ANSWER, "200", "400", "401", "404", "405", "500", "503");

const char *ps_dim_value(ps_dim_t dim, size_t i)
{
    static const char *const *const OF[PS_N_DIMS] = {
        [PS_BY_VERSION] = VERSION_VALUES, [PS_BY_REQUEST] = REQUEST_VALUES,
        [PS_BY_HELD] = HELD_VALUES,       [PS_BY_ROLE] = ROLE_VALUES,
        [PS_BY_HEALTH] = HEALTH_VALUES,   [PS_BY_OUTCOME] = OUTCOME_VALUES,
        [PS_BY_ANSWER] = ANSWER_VALUES,
    };

    switch ((int)dim) {
    case PS_BY_CODE:
        return psd_status_code((psd_status_t)i);
    case PS_BY_COMMAND:
        return ps_command_name((ps_command_kind_t)i);
    case PS_BY_WORKER_STATE:
        return ps_worker_state_name((ps_worker_state_t)(i + 1));
    default:
        return OF[dim] == NULL ? "" : OF[dim][i];
    }
}
