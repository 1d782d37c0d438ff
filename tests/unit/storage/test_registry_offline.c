/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry/registry_offline.h: a member's directory, without a psd. */
#include "storage/registry/registry_offline.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/command_code.h"
#include "storage/registry/registry_log.h"
#include "support/registry_db_test.h"

#define SELF 7
#define TERM 3

static ps_id_t cluster;
static ps_applied_t stored; /* of the database */

static ps_registry_log_args_t log_args(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/registry-log", dir);
    return (ps_registry_log_args_t){.disk = ps_disk_real(),
                                    .dir = path,
                                    .cluster = cluster,
                                    .member = SELF,
                                    .segment_bytes = 1 << 20};
}

/* A database whose members are n nodes; this is the first one. */
static void store_members(size_t n)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    ps_registry_member_t members[] = {{.id = SELF, .node = "n0", .role = PS_ROLE_VOTER},
                                      {.id = 8, .node = "n1", .role = PS_ROLE_VOTER},
                                      {.id = 9, .node = "n2", .role = PS_ROLE_STANDBY}};

    stored = ps_registry_db_applied(db);
    stored = (ps_applied_t){.index = stored.index + 1, .term = TERM};
    for (size_t i = 0; i < n; i++) {
        members[i].index = stored.index;
    }
    cr_assert_eq(ps_registry_db_store_members(db, members, n, stored, err), PSD_OK, "%s",
                 psd_error_text(err));
}

/* A log after the database: a barrier, and a note that nobody has applied. */
static void write_log(void)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    PSD_AUTO(ps_registry_log_close) ps_registry_log_t *log = NULL;
    PSD_AUTO(ps_command_done)
    ps_command_t note = ps_registry_plan_note(registry, 5, "only the log has it");
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    char path[PATH_MAX + 64];
    ps_registry_log_args_t args;
    ps_registry_entry_t entries[2];

    (void)ps_registry_cluster(registry, &cluster);
    args = log_args(path, sizeof path);
    cr_assert(ps_command_encode(&note, &bytes));
    entries[0] =
        (ps_registry_entry_t){.index = stored.index + 1, .term = TERM, .kind = PS_REGISTRY_BARRIER};
    entries[1] = (ps_registry_entry_t){.index = stored.index + 2,
                                       .term = TERM,
                                       .kind = PS_REGISTRY_COMMAND,
                                       .bytes = {.data = bytes.data, .size = bytes.size}};
    cr_assert_eq(
        ps_registry_log_create(&args, ps_registry_lineage(registry), stored.index + 1, err), PSD_OK,
        "%s", psd_error_text(err));
    cr_assert_eq(ps_registry_log_open(&args, &log, err), PSD_OK);
    cr_assert_eq(ps_registry_log_set_term(log, TERM, 8, err), PSD_OK);
    cr_assert_eq(ps_registry_log_append(log, entries, 2, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(ps_registry_log_flush(log, err), PSD_OK);
}

static void begin(void)
{
    make_temp();
    make_data();
}

TestSuite(registry_offline, .init = begin, .fini = drop_temp);

static ps_registry_offline_t look(void)
{
    ps_registry_offline_t found;

    psd_error_clear(err);
    cr_assert_eq(ps_registry_offline_look(dir, &found, err), PSD_OK, "%s", psd_error_text(err));
    return found;
}

static bool knows_event(const char *text)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    size_t n = 0;
    bool knows = false;

    cr_assert_eq(ps_registry_db_events(db, 0, 100, &rows, &n, err), PSD_OK);
    for (size_t i = 0; i < n; i++) {
        knows = knows || strcmp(rows[i].text, text) == 0;
    }
    return knows;
}

Test(registry_offline, a_registry_on_one_node_has_no_log)
{
    ps_registry_offline_t found = look();

    cr_assert(!found.has_log);
    cr_assert_eq(found.n_members, 0);
    cr_assert_gt(found.applied.index, 0);
    cr_assert_eq(ps_registry_offline_single(dir, false, 9, err), PSD_OK);
    cr_assert_eq(look().applied.index, found.applied.index);
}

Test(registry_offline, a_member_is_described)
{
    ps_registry_offline_t found;

    store_members(3);
    write_log();
    found = look();
    cr_assert(found.has_log);
    cr_assert_eq(found.member, SELF);
    cr_assert_eq(found.term, TERM);
    cr_assert_eq(found.vote, 8);
    cr_assert_eq(found.first, stored.index + 1);
    cr_assert_eq(found.last, stored.index + 2);
    cr_assert_eq(found.applied.index, stored.index);
    cr_assert_eq(found.applied.term, TERM);
    cr_assert_eq(found.n_members, 3);
    cr_assert_eq(memcmp(&found.cluster, &cluster, sizeof cluster), 0);
    cr_assert(!knows_event("only the log has it")); /* nothing was changed */
}

Test(registry_offline, the_last_voter_keeps_all_of_its_log)
{
    ps_registry_offline_t before;
    ps_registry_offline_t after;

    store_members(1);
    write_log();
    before = look();
    cr_assert_eq(ps_registry_offline_single(dir, false, 9, err), PSD_OK, "%s", psd_error_text(err));
    after = look();
    cr_assert(!after.has_log);
    cr_assert_eq(after.n_members, 0);
    cr_assert(ps_id_equal(&before.lineage, &after.lineage));
    cr_assert_gt(after.applied.index, stored.index + 2);
    cr_assert(knows_event("only the log has it"));
}

Test(registry_offline, other_voters_are_given_up_only_when_asked)
{
    ps_registry_offline_t before;
    ps_registry_offline_t after;

    store_members(3);
    write_log();
    before = look();
    cr_assert_eq(ps_registry_offline_single(dir, false, 9, err), PSD_DENIED);
    cr_assert_not_null(strstr(psd_error_text(err), "\"n1\""));
    cr_assert_null(strstr(psd_error_text(err), "\"n2\"")); /* it does not vote */
    cr_assert_eq(look().n_members, 3);
    psd_error_clear(err);
    cr_assert_eq(ps_registry_offline_single(dir, true, 9, err), PSD_OK, "%s", psd_error_text(err));
    after = look();
    cr_assert(!after.has_log);
    cr_assert(!ps_id_equal(&before.lineage, &after.lineage));
    cr_assert(knows_event("only the log has it"));
}

Test(registry_offline, a_running_psd_is_left_alone)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    ps_registry_offline_t found;

    cr_assert_eq(ps_registry_offline_look(dir, &found, err), PSD_HELD);
    psd_error_clear(err);
    cr_assert_eq(ps_registry_offline_single(dir, true, 9, err), PSD_HELD);
    psd_error_clear(err);
    cr_assert_eq(ps_registry_offline_look(temp.path, &found, err), PSD_INVALID);
}
