/* SPDX-License-Identifier: Apache-2.0 */
/* Stores one command: the rows that it touched, its line of the history and its
 * place, in one transaction. Or the members of the quorum. */
#include <inttypes.h>
#include <string.h>

#include "protocol/registry/command_code.h"
#include "storage/registry/registry_db_impl.h"

static psd_status_t run(ps_registry_db_t *self, ps_statement_t statement, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, statement);

    return ps_query_run(&query, err);
}

ps_applied_t ps_registry_db_applied(const ps_registry_db_t *self)
{
    return self->applied;
}

ps_applied_t ps_registry_db_next(const ps_registry_db_t *self)
{
    return (ps_applied_t){.index = self->applied.index + 1, .term = self->applied.term};
}

/* Nothing is applied twice, or after what comes later. */
static psd_status_t check_place(const ps_registry_db_t *self, ps_applied_t at, psd_error_t *err)
{
    return at.index > self->applied.index && at.index <= INT64_MAX &&
                   at.term >= self->applied.term && at.term <= INT64_MAX
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID,
                               "index %" PRIu64 " of term %" PRIu64 " does not come after index "
                               "%" PRIu64 " of term %" PRIu64,
                               at.index, at.term, self->applied.index, self->applied.term);
}

/* There is a row of the cluster, and no other. */
static psd_status_t store_place(ps_registry_db_t *self, ps_applied_t at, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_COMMITS_ADD);
    psd_status_t rc = PSD_OK;

    ps_query_put_u64(&query, at.index);
    ps_query_put_u64(&query, at.term);
    rc = ps_query_run(&query, err);
    if (rc != PSD_OK || sqlite3_changes(self->db) == 1) {
        return rc;
    }
    return psd_error_set(err, PSD_DAMAGED, "%s: table cluster has %d rows",
                         sqlite3_db_filename(self->db, "main"), sqlite3_changes(self->db));
}

static psd_status_t store_event(ps_registry_db_t *self, const ps_command_t *command,
                                psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_EVENT_ADD);
    psd_status_t rc = PSD_OK;
    int64_t id = 0;

    ps_query_put_u64(&query, command->unix_ms);
    ps_query_put_u64(&query, command->epoch);
    ps_query_put_text(&query, ps_command_name(command->kind));
    ps_query_put_text(&query, command->text);
    rc = ps_query_run(&query, err);
    id = sqlite3_last_insert_rowid(self->db);
    if (rc != PSD_OK || id <= PS_EVENTS_KEPT) {
        return rc;
    }
    query = ps_registry_db_query(self, STATEMENT_EVENT_CUT);
    ps_query_put_i64(&query, id - PS_EVENTS_KEPT);
    return ps_query_run(&query, err);
}

/* Ends the transaction, but that of a group: everything is stored at that place, or
 * nothing. */
static psd_status_t finish(ps_registry_db_t *self, psd_status_t rc, ps_applied_t at,
                           psd_error_t *err)
{
    if (rc == PSD_OK) {
        rc = store_place(self, at, err);
    }
    if (rc == PSD_OK && !self->is_group) {
        rc = run(self, STATEMENT_COMMIT, err);
    }
    if (rc != PSD_OK) {
        ps_registry_db_group_drop(self);
    }
    if (rc == PSD_OK) {
        self->applied = at;
        self->n_commits++;
        self->unflushed = true;
    }
    return rc;
}

static psd_status_t check_flushes(const ps_registry_db_t *self, psd_error_t *err)
{
    return self->broken ? psd_error_set(err, PSD_IO, "%s: a flush has failed; psd must start again",
                                        sqlite3_db_filename(self->db, "main"))
                        : PSD_OK;
}

static psd_status_t begin(ps_registry_db_t *self, ps_applied_t at, psd_error_t *err)
{
    psd_status_t rc = check_place(self, at, err);

    rc = rc == PSD_OK ? check_flushes(self, err) : rc;
    return rc == PSD_OK && !self->is_group ? run(self, STATEMENT_BEGIN, err) : rc;
}

/* ---- several in one transaction ---- */

psd_status_t ps_registry_db_group(ps_registry_db_t *self, psd_error_t *err)
{
    psd_status_t rc = check_flushes(self, err);

    if (rc == PSD_OK && self->is_group) {
        rc = psd_error_set(err, PSD_INVALID, "a group has begun already");
    }
    if (rc == PSD_OK) {
        rc = run(self, STATEMENT_BEGIN, err);
    }
    if (rc == PSD_OK) {
        self->is_group = true;
        self->before = self->applied;
        self->commits_before = self->n_commits;
    }
    return rc;
}

bool ps_registry_db_is_group(const ps_registry_db_t *self)
{
    return self->is_group;
}

psd_status_t ps_registry_db_group_keep(ps_registry_db_t *self, psd_error_t *err)
{
    psd_status_t rc = run(self, STATEMENT_COMMIT, err);

    if (rc == PSD_OK) {
        self->is_group = false;
    } else {
        ps_registry_db_group_drop(self);
    }
    return rc;
}

psd_status_t ps_registry_db_store(ps_registry_db_t *self, const ps_registry_t *registry,
                                  const ps_command_t *command, ps_applied_t at, psd_error_t *err)
{
    psd_status_t rc = begin(self, at, err);

    if (rc == PSD_OK) {
        rc = ps_registry_rows_store(self, registry, err);
    }
    if (rc == PSD_OK && command->kind != PS_COMMAND_WORK) {
        rc = store_event(self, command, err);
    }
    return finish(self, rc, at, err);
}

/* ---- members ---- */

static const char *const roles[] = {
    [PS_ROLE_VOTER] = "voter", [PS_ROLE_STANDBY] = "standby", [PS_ROLE_SPARE] = "spare"};
#define N_ROLES (sizeof roles / sizeof *roles)

static psd_status_t check_members(const ps_registry_member_t *members, size_t n, psd_error_t *err)
{
    if (n > PS_REGISTRY_MEMBERS_MAX) {
        return psd_error_set(err, PSD_INVALID, "%zu members; allowed: 0..%d", n,
                             PS_REGISTRY_MEMBERS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        if (members[i].id == 0 || members[i].id > INT64_MAX || members[i].role < PS_ROLE_VOTER ||
            members[i].role >= (int)N_ROLES || members[i].index > INT64_MAX) {
            return psd_error_set(err, PSD_INVALID, "member %" PRIu64 " on node %s has role %d",
                                 members[i].id, members[i].node, (int)members[i].role);
        }
    }
    return PSD_OK;
}

static psd_status_t store_member(ps_registry_db_t *self, const ps_registry_member_t *member,
                                 psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_MEMBER_ADD);

    ps_query_put_u64(&query, member->id);
    ps_query_put_text(&query, member->node);
    ps_query_put_text(&query, roles[member->role]);
    ps_query_put_u64(&query, member->index);
    return ps_query_run(&query, err);
}

psd_status_t ps_registry_db_store_members(ps_registry_db_t *self,
                                          const ps_registry_member_t *members, size_t n,
                                          ps_applied_t at, psd_error_t *err)
{
    psd_status_t rc = check_members(members, n, err);

    if (rc == PSD_OK) {
        rc = begin(self, at, err);
    }
    if (rc == PSD_OK && members != NULL) {
        rc = run(self, STATEMENT_MEMBERS_CUT, err);
    }
    for (size_t i = 0; i < n && rc == PSD_OK; i++) {
        rc = store_member(self, &members[i], err);
    }
    return finish(self, rc, at, err);
}

static psd_status_t read_member(ps_query_t *query, ps_registry_member_t *member, psd_error_t *err)
{
    const char *word = NULL;
    char place[PS_PLACE_SIZE];
    psd_status_t rc = PSD_OK;

    *member = (ps_registry_member_t){.id = ps_query_u64(query)};
    ps_query_copy_text(query, member->node, sizeof member->node);
    word = ps_query_text(query, PS_FIELD_WORD_MAX);
    for (size_t i = PS_ROLE_VOTER; word != NULL && i < N_ROLES; i++) {
        member->role = strcmp(word, roles[i]) == 0 ? (ps_registry_role_t)i : member->role;
    }
    member->index = ps_query_u64(query);
    rc = ps_query_check(query, err);
    if (rc != PSD_OK || (member->role != 0 && member->id != 0)) {
        return rc;
    }
    ps_query_place(query, place);
    return psd_error_set(err, PSD_DAMAGED, "%s: it is no member", place);
}

psd_status_t ps_registry_db_members(ps_registry_db_t *self,
                                    ps_registry_member_t ret_members[PS_REGISTRY_MEMBERS_MAX],
                                    size_t *ret_n, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_MEMBERS);
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && ps_query_next(&query)) {
        rc = n == PS_REGISTRY_MEMBERS_MAX
                 ? psd_error_set(err, PSD_DAMAGED, "table members has more than %d rows",
                                 PS_REGISTRY_MEMBERS_MAX)
                 : read_member(&query, &ret_members[n++], err);
    }
    if (rc == PSD_OK) {
        rc = ps_query_end(&query, err);
    } else {
        ps_query_reset(&query); /* the row's error came first */
    }
    if (rc == PSD_OK) {
        *ret_n = n;
    }
    return rc;
}
