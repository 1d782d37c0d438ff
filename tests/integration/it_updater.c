/* SPDX-License-Identifier: Apache-2.0 */
/* Updaters in a real daemon: plug-ins from a directory, what is refused and
 * why, a plug-in that is gone at the next start; and workers of dcasgd. */
#include <math.h>
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/check.h"
#include "support/daemon.h"

#define N_ROWS 200
#define N_COLS 3
#define N_VALUES ((size_t)N_ROWS * N_COLS)

typedef struct fixture {
    temp_dir_t plugins;
    daemon_t daemon;
    psd_client_t *client;
    psd_error_t *err;
} fixture_t;

/* Copies a built plug-in into the directory. */
static bool put(const fixture_t *f, const char *variable, const char *name, mode_t mode)
{
    const char *from = getenv(variable);
    char path[PATH_MAX + 64];
    char bytes[4096];
    size_t n = 0;
    FILE *in = from == NULL ? NULL : fopen(from, "rb");
    FILE *out = NULL;

    (void)snprintf(path, sizeof path, "%s/%s", f->plugins.path, name);
    out = fopen(path, "wb");
    CHECK(in != NULL && out != NULL);
    for (n = fread(bytes, 1, sizeof bytes, in); n > 0; n = fread(bytes, 1, sizeof bytes, in)) {
        CHECK(fwrite(bytes, 1, n, out) == n);
    }
    (void)fclose(in);
    CHECK(fclose(out) == 0 && chmod(path, mode) == 0);
    return true;
}

static psd_status_t create(fixture_t *f, const char *name, const char *type, const char *updater,
                           psd_table_t **ret_table)
{
    psd_spec_t *spec = psd_spec_new();
    psd_status_t rc = psd_spec_set(spec, "updater", updater, f->err);

    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "rows", "200", f->err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "cols", "3", f->err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "type", type, f->err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "init", "constant:2", f->err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_create(f->client, name, spec, ret_table, f->err);
    }
    psd_spec_destroy(&spec);
    return rc;
}

static bool refuses(fixture_t *f, const char *type, const char *updater, psd_status_t status,
                    const char *part)
{
    psd_table_t *table = NULL;

    CHECK_ERROR(create(f, "refused", type, updater, &table), status, part, f->err);
    CHECK_ERROR(psd_table_open(f->client, "refused", &table, f->err), PSD_NO_TABLE, "refused",
                f->err);
    return true;
}

static bool refuses_by_name(fixture_t *f)
{
    return refuses(f, "f32", "plugin:ghost", PSD_UNSUPPORTED,
                   "there was no ghost.so in updaters.dir") &&
           refuses(f, "f32", "plugin:other_abi", PSD_UNSUPPORTED, "it has ABI 3; this psd has 2") &&
           refuses(f, "f32", "plugin:open", PSD_UNSUPPORTED,
                   "can be written by its group or by everybody") &&
           refuses(f, "f32", "plugin:junk", PSD_UNSUPPORTED,
                   "plug-in junk was refused when psd started: ") &&
           refuses(f, "f32", "plugin:link", PSD_UNSUPPORTED, "it is a symbolic link") &&
           refuses(f, "f32", "plugin:renamed", PSD_UNSUPPORTED,
                   "it calls itself \"clipped\", the file is renamed.so") &&
           refuses(f, "f64", "plugin:clipped:alpha=1,limit=1", PSD_INVALID,
                   "plug-in clipped does not take type f64") &&
           refuses(f, "f32", "plugin:clipped:alpha=1", PSD_INVALID,
                   "allowed is alpha=F,limit=F with positive numbers") &&
           refuses(f, "f32", "plugin:../clipped", PSD_INVALID,
                   "plug-in name \"../clipped\" is not allowed");
}

/* Pushes of every size of gradient, beside the rule written out here. */
static bool runs_the_plugin(fixture_t *f)
{
    psd_table_t *table = NULL;
    uint64_t rows[N_ROWS];
    float *w = calloc(3 * N_VALUES, sizeof *w);
    float *g = w + N_VALUES;
    float *plain = g + N_VALUES;

    CHECK(w != NULL);
    CHECK_OK(create(f, "w", "f32", "plugin:clipped:alpha=0.5,limit=1", &table), f->err);
    for (size_t i = 0; i < N_VALUES; i++) {
        plain[i] = 2;
        rows[i / N_COLS] = i / N_COLS;
    }
    for (int step = 1; step < 20; step++) {
        for (size_t i = 0; i < N_VALUES; i++) {
            g[i] = (float)((int)(i * 7 % 23) - 11) / (float)step;
            plain[i] -= 0.5F * fminf(fmaxf(g[i], -1), 1);
        }
        CHECK_OK(psd_push(table, rows, N_ROWS, g, N_VALUES, f->err), f->err);
    }
    CHECK_OK(psd_pull(table, rows, N_ROWS, w, N_VALUES, f->err), f->err);
    CHECK(memcmp(w, plain, N_VALUES * sizeof *w) == 0);
    psd_table_close(&table);
    free(w);
    return true;
}

static bool connects(fixture_t *f)
{
    CHECK_OK(psd_connect(f->daemon.control, NULL, &f->client, f->err), f->err);
    return true;
}

/* Each worker has a backup, and one without is refused. */
static bool keeps_backups(fixture_t *f)
{
    psd_table_t *table = NULL;
    psd_table_t *outside = NULL;
    const uint64_t row = 7;
    const float g[N_COLS] = {1, 2, -1};
    const float none[N_COLS] = {0};
    float w[N_COLS];

    CHECK_OK(create(f, "dc", "f32", "dcasgd:alpha=0.5,lambda=1,workers=2", &outside), f->err);
    CHECK_OK(psd_push(outside, &row, 1, g, N_COLS, f->err), f->err);
    CHECK_OK(psd_join(f->client, "job", 1, 1, -1, f->err), f->err);
    CHECK_OK(psd_table_open(f->client, "dc", &table, f->err), f->err);
    CHECK_OK(psd_pushpull(table, &row, 1, g, w, N_COLS, f->err), f->err);
    /* the first push, plain, moved w from 2 to 2 - g / 2; the backup was 2 */
    for (size_t i = 0; i < N_COLS; i++) {
        float at = 2 - 0.5F * g[i];

        CHECK(w[i] == at - 0.5F * (g[i] + g[i] * g[i] * (at - 2)));
    }
    CHECK_OK(psd_leave(f->client, 60000, f->err), f->err);
    psd_table_close(&table);
    psd_table_close(&outside);
    psd_close(&f->client);
    CHECK(connects(f));
    CHECK_OK(psd_join(f->client, "job2", 2, 3, -1, f->err), f->err);
    CHECK_OK(psd_table_open(f->client, "dc", &table, f->err), f->err);
    CHECK_ERROR(psd_push(table, &row, 1, none, N_COLS, f->err), PSD_RANGE,
                "updater dcasgd keeps a backup for workers 0..1", f->err);
    psd_table_close(&table);
    CHECK_OK(psd_leave(f->client, 60000, f->err), f->err);
    psd_close(&f->client);
    return connects(f);
}

/* The next start without the plug-in: the other tables work. */
static bool outlives_the_plugin(fixture_t *f)
{
    psd_table_t *table = NULL;
    char path[PATH_MAX + 64];
    const uint64_t row = 3;
    const float d[N_COLS] = {1, 2, 3};
    float w[N_COLS];

    CHECK_OK(create(f, "plain", "f32", "add", &table), f->err);
    psd_table_close(&table);
    psd_close(&f->client);
    CHECK(daemon_end(&f->daemon, SIGTERM));
    (void)snprintf(path, sizeof path, "%s/clipped.so", f->plugins.path);
    CHECK(remove(path) == 0);
    CHECK(daemon_restart(&f->daemon) && connects(f));
    CHECK_ERROR(psd_table_open(f->client, "w", &table, f->err), PSD_UNSUPPORTED,
                "plug-in clipped is not loaded", f->err);
    CHECK_OK(psd_table_open(f->client, "plain", &table, f->err), f->err);
    CHECK_OK(psd_pushpull(table, &row, 1, d, w, N_COLS, f->err), f->err);
    CHECK(w[0] == 3 && w[1] == 4 && w[2] == 5);
    psd_table_close(&table);
    CHECK_OK(psd_table_drop(f->client, "w", f->err), f->err);
    return true;
}

/* Without the key no file is looked at. */
static bool allows_none(fixture_t *f)
{
    bool ok =
        daemon_start(&f->daemon, NULL) && connects(f) &&
        refuses(f, "f32", "plugin:clipped:alpha=1,limit=1", PSD_DENIED, "updaters.dir is not set");

    psd_close(&f->client);
    daemon_drop(&f->daemon, !ok);
    return ok;
}

static bool run(fixture_t *f)
{
    char config[PATH_MAX + 64];
    char path[PATH_MAX + 64];
    FILE *junk = NULL;

    CHECK(temp_dir_make(&f->plugins));
    CHECK(put(f, "PSD_CLIPPED_PLUGIN", "clipped.so", 0644));
    CHECK(put(f, "PSD_CLIPPED_PLUGIN", "renamed.so", 0644));
    CHECK(put(f, "PSD_CLIPPED_PLUGIN", "open.so", 0666));
    CHECK(put(f, "PSD_OTHER_ABI_PLUGIN", "other_abi.so", 0644));
    (void)snprintf(path, sizeof path, "%s/link.so", f->plugins.path);
    CHECK(symlink("clipped.so", path) == 0);
    (void)snprintf(path, sizeof path, "%s/junk.so", f->plugins.path);
    junk = fopen(path, "wb");
    CHECK(junk != NULL && fputs("no object", junk) >= 0 && fclose(junk) == 0);
    CHECK(chmod(path, 0644) == 0);
    (void)snprintf(config, sizeof config, "updaters:\n  dir: \"%s\"\n", f->plugins.path);
    CHECK(daemon_start(&f->daemon, config) && connects(f));
    return refuses_by_name(f) && runs_the_plugin(f) && keeps_backups(f) && outlives_the_plugin(f);
}

int main(void)
{
    fixture_t f = {.err = psd_error_new()};
    bool ok = run(&f);

    psd_close(&f.client);
    daemon_drop(&f.daemon, !ok);
    temp_dir_drop(&f.plugins);
    ok = ok && allows_none(&f);
    psd_error_destroy(&f.err);
    return ok ? 0 : 1;
}
