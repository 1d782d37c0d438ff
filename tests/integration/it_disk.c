/* SPDX-License-Identifier: Apache-2.0 */
/* Tables with a log across restarts: values are there; a table that the
 * registry does not know any more is forgotten, files and all; a damaged file
 * is named, and psd does not start. */
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/check.h"
#include "support/daemon.h"

static void path_in(const daemon_t *daemon, const char *name, char ret[PATH_MAX])
{
    (void)snprintf(ret, PATH_MAX, "%.3000s/data/%s", daemon->dir.path, name);
}

static bool copy_file(const daemon_t *daemon, const char *from, const char *to)
{
    char paths[2][PATH_MAX];
    char bytes[4096];
    FILE *in = NULL;
    FILE *out = NULL;
    size_t n = 0;

    path_in(daemon, from, paths[0]);
    path_in(daemon, to, paths[1]);
    in = fopen(paths[0], "re");
    out = fopen(paths[1], "we");
    CHECK(in != NULL && out != NULL);
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0) {
        CHECK(fwrite(bytes, 1, n, out) == n);
    }
    CHECK(fclose(in) == 0 && fclose(out) == 0);
    return true;
}

/* Opens or makes the table, adds `delta`, and expects `wanted` then. */
static bool add(const daemon_t *daemon, const char *name, int64_t delta, int64_t wanted,
                psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_spec_t *spec = psd_spec_new();
    const uint64_t row = 2;
    int64_t value = 0;

    CHECK_OK(psd_connect(daemon->control, NULL, &client, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "4", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "ack", "disk", err), err);
    CHECK_OK(psd_table_ensure(client, name, spec, &table, err), err);
    CHECK_OK(psd_push(table, &row, 1, &delta, 1, err), err);
    CHECK_OK(psd_pull(table, &row, 1, &value, 1, err), err);
    CHECK(value == wanted);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

static bool values_stay(daemon_t *daemon, psd_error_t *err)
{
    CHECK(add(daemon, "w", 5, 5, err));
    CHECK(daemon_end(daemon, SIGKILL));
    CHECK(daemon_restart(daemon));
    CHECK(add(daemon, "w", 2, 7, err));
    CHECK(daemon_end(daemon, SIGTERM));
    CHECK(daemon_restart(daemon));
    CHECK(add(daemon, "w", 1, 8, err));
    return true;
}

static bool has_logged(const daemon_t *daemon, const char *text)
{
    static char log[1 << 20];
    char path[PATH_MAX];
    FILE *file = NULL;
    size_t n = 0;

    (void)snprintf(path, sizeof path, "%.3000s/log", daemon->dir.path);
    file = fopen(path, "re");
    CHECK(file != NULL);
    n = fread(log, 1, sizeof log - 1, file);
    (void)fclose(file);
    log[n] = '\0';
    return strstr(log, text) != NULL;
}

/* The registry as it was before the table: it is refused, and forced it keeps the table
 * aside and gives out another number. */
static bool an_older_registry_is_refused(daemon_t *daemon, psd_error_t *err)
{
    char path[PATH_MAX];

    CHECK(daemon_end(daemon, SIGTERM));
    CHECK(copy_file(daemon, "before.db", "registry.db"));
    path_in(daemon, "registry.commits", path);
    (void)unlink(path); /* which would tell that commits are missing */
    path_in(daemon, "log-0/table-1.spec", path);
    CHECK(access(path, F_OK) == 0);
    CHECK(!daemon_restart(daemon));
    CHECK(has_logged(daemon, "is an older one"));
    CHECK(daemon_restart_with(daemon, "--force-new-registry"));
    CHECK(has_logged(daemon, "table_kept_aside id=1"));
    CHECK(access(path, F_OK) == 0);
    CHECK(add(daemon, "v", 3, 3, err));
    return true;
}

static bool damage_is_named(daemon_t *daemon)
{
    char path[PATH_MAX];

    CHECK(daemon_end(daemon, SIGTERM));
    path_in(daemon, "log-0/log-flushed", path);
    CHECK(truncate(path, 7) == 0);
    CHECK(!daemon_restart(daemon));
    CHECK(has_logged(daemon, "log-0/log-flushed"));
    CHECK(has_logged(daemon, "files from a backup"));
    return true;
}

int main(void)
{
    psd_error_t *err = psd_error_new();
    daemon_t daemon;
    bool ok = daemon_start(&daemon, "shards: 1\n") && daemon_end(&daemon, SIGTERM) &&
              copy_file(&daemon, "registry.db", "before.db") && daemon_restart(&daemon) &&
              values_stay(&daemon, err) && an_older_registry_is_refused(&daemon, err) &&
              damage_is_named(&daemon);

    daemon_drop(&daemon, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
