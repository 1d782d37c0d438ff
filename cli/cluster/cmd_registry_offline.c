/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster registry inspect, single: of a data directory in which no psd runs. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/cluster/cluster.h"
#include "storage/registry/registry_offline.h"

static const ps_column_t LOOK[] = {{"CLUSTER", "cluster", PS_UNIT_NONE, false},
                                   {"UUID", "uuid", PS_UNIT_NONE, false},
                                   {"LINEAGE", "lineage", PS_UNIT_NONE, false},
                                   {"REPLICATED", "replicated", PS_UNIT_NONE, false},
                                   {"MEMBER", "member", PS_UNIT_NONE, false},
                                   {"NODE", "node", PS_UNIT_NONE, false},
                                   {"TERM", "term", PS_UNIT_NONE, false},
                                   {"VOTE", "vote", PS_UNIT_NONE, false},
                                   {"FIRST", "first", PS_UNIT_NONE, false},
                                   {"LAST", "last", PS_UNIT_NONE, false},
                                   {"APPLIED", "applied", PS_UNIT_NONE, false},
                                   {"APPLIED_TERM", "applied_term", PS_UNIT_NONE, false},
                                   {"MEMBERS", "members", PS_UNIT_COUNT, false},
                                   {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t SINGLE[] = {{"DATA_DIR", "data_dir", PS_UNIT_NONE, false},
                                     {"SINGLE", "single", PS_UNIT_NONE, false},
                                     {NULL, NULL, PS_UNIT_NONE, false}};

static psd_status_t read_dir(const ps_cli_t *cli, const char *verb, const char **ret_dir,
                             psd_error_t *err)
{
    *ret_dir = ps_args_text(&cli->args, "data-dir");
    return *ret_dir != NULL ? PSD_OK
                            : psd_error_set(err, PSD_USAGE,
                                            "\"cluster registry %s\" needs "
                                            "--data-dir DIR",
                                            verb);
}

static json_t *known(bool is_known, uint64_t value)
{
    return is_known ? json_integer((json_int_t)value) : json_null();
}

static json_t *list_members(const ps_registry_offline_t *look)
{
    json_t *array = json_array();

    for (size_t i = 0; i < look->n_members; i++) {
        const ps_registry_member_t *member = &look->members[i];

        (void)json_array_append_new(array,
                                    json_pack("{s:s,s:s,s:I}", "node", member->node, "role",
                                              member->role == PS_ROLE_VOTER ? "voter" : "stand-by",
                                              "member", (json_int_t)member->id));
    }
    return array;
}

static json_t *make_doc(const ps_registry_offline_t *look)
{
    char uuid[PS_ID_TEXT_SIZE];
    char lineage[PS_ID_TEXT_SIZE];
    const char *node = NULL;

    ps_id_format(&look->cluster, uuid);
    ps_id_format(&look->lineage, lineage);
    for (size_t i = 0; i < look->n_members; i++) {
        if (look->has_log && look->members[i].id == look->member) {
            node = look->members[i].node;
        }
    }
    return json_pack("{s:s,s:s,s:s,s:b,s:o,s:s?,s:o,s:o,s:o,s:o,s:I,s:I,s:o}", "cluster",
                     look->cluster_name, "uuid", uuid, "lineage", lineage, "replicated",
                     look->has_log ? 1 : 0, "member", known(look->has_log, look->member), "node",
                     node, "term", known(look->has_log, look->term), "vote",
                     known(look->has_log && look->vote != 0, look->vote), "first",
                     known(look->has_log, look->first), "last", known(look->has_log, look->last),
                     "applied", (json_int_t)look->applied.index, "applied_term",
                     (json_int_t)look->applied.term, "members", list_members(look));
}

psd_status_t ps_cmd_registry_inspect(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    ps_registry_offline_t look;
    const char *dir = NULL;
    psd_status_t rc = read_dir(cli, "inspect", &dir, err);

    if (rc == PSD_OK) {
        rc = ps_registry_offline_look(dir, &look, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    doc = make_doc(&look);
    if (doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an answer");
    }
    ps_out_object(&cli->out, doc, LOOK);
    return PSD_OK;
}

psd_status_t ps_cmd_registry_single(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    const char *dir = NULL;
    psd_status_t rc = read_dir(cli, "single", &dir, err);

    if (rc == PSD_OK) {
        rc = ps_registry_offline_single(dir, ps_args_on(&cli->args, "yes"),
                                        (uint64_t)time(NULL) * 1000, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    doc = json_pack("{s:s,s:b}", "data_dir", dir, "single", 1);
    if (doc == NULL) {
        return psd_error_set(err, PSD_USAGE, "--data-dir is not UTF-8");
    }
    ps_out_answer(&cli->out, doc, SINGLE, "the registry in %s is on one node now", dir);
    return PSD_OK;
}
