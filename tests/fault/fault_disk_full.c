/* SPDX-License-Identifier: Apache-2.0 */
/* No room for the log: nothing is acknowledged at level disk and everybody
 * hears why, what is in memory is served; with room again psd goes on by
 * itself, and after kill -9 everything is there once. The room is that of
 * RLIMIT_FSIZE, set from outside. */
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "support/check.h"
#include "support/daemon.h"

#define PUSHES 8
#define WAIT_MS 60000
#define LOOK_MS 300

static bool set_room(const daemon_t *daemon, rlim_t bytes)
{
    struct rlimit limit;

    CHECK(prlimit(daemon->pid, RLIMIT_FSIZE, NULL, &limit) == 0);
    limit.rlim_cur = bytes;
    CHECK(prlimit(daemon->pid, RLIMIT_FSIZE, &limit, NULL) == 0);
    return true;
}

static bool open_table(psd_client_t *client, psd_table_t **ret, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();

    CHECK_OK(psd_spec_set(spec, "rows", "4", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "ack", "disk", err), err);
    CHECK_OK(psd_table_ensure(client, "w", spec, ret, err), err);
    psd_spec_destroy(&spec);
    return true;
}

static bool start_push(psd_table_t *table, psd_ticket_t *ret, psd_error_t *err)
{
    psd_select_t *select = psd_select_new();
    const uint64_t row = 1;
    const int64_t one = 1;

    psd_select_rows(select, &row, 1);
    CHECK_OK(psd_push_start(table, select, &one, 1, NULL, ret, err), err);
    psd_select_destroy(&select);
    return true;
}

static bool expect_value(psd_table_t *table, int64_t wanted, psd_error_t *err)
{
    const uint64_t row = 1;
    int64_t value = 0;

    CHECK_OK(psd_pull(table, &row, 1, &value, 1, err), err);
    CHECK(value == wanted);
    return true;
}

/* The reason comes with the server's next word of the push. */
static bool is_told_why(psd_client_t *client, psd_ticket_t ticket, psd_error_t *err)
{
    bool is_told = false;

    while (!is_told) {
        CHECK(psd_wait(client, ticket, LOOK_MS, err) == PSD_DEADLINE);
        is_told = strstr(psd_error_text(err), "on the disk of every copy") != NULL;
        psd_error_clear(err);
    }
    return true;
}

static bool is_full_and_empty_again(daemon_t *daemon, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_ticket_t tickets[PUSHES];

    CHECK_OK(psd_connect(daemon->control, NULL, &client, err), err);
    CHECK(open_table(client, &table, err));
    CHECK(start_push(table, &tickets[0], err));
    CHECK_OK(psd_wait(client, tickets[0], WAIT_MS, err), err);
    CHECK(set_room(daemon, 0));
    for (int i = 1; i < PUSHES; i++) {
        CHECK(start_push(table, &tickets[i], err));
    }
    CHECK(is_told_why(client, tickets[1], err));
    CHECK(expect_value(table, PUSHES, err));
    CHECK(set_room(daemon, RLIM_INFINITY));
    for (int i = 1; i < PUSHES; i++) {
        CHECK_OK(psd_wait(client, tickets[i], WAIT_MS, err), err);
    }
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

static bool is_there_again(daemon_t *daemon, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;

    CHECK(daemon_end(daemon, SIGKILL));
    CHECK(daemon_restart(daemon));
    CHECK_OK(psd_connect(daemon->control, NULL, &client, err), err);
    CHECK(open_table(client, &table, err));
    CHECK(expect_value(table, PUSHES, err));
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

int main(void)
{
    psd_error_t *err = psd_error_new();
    daemon_t daemon;
    bool ok = daemon_start(&daemon, "shards: 1\n") && is_full_and_empty_again(&daemon, err) &&
              is_there_again(&daemon, err);

    daemon_drop(&daemon, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
