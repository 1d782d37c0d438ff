/* SPDX-License-Identifier: Apache-2.0 */
/* A table as text and back: dense, sparse and wide rows, plain and packed; the
 * same bits come back. A file that is bad in any line adds nothing, and the
 * error says where. */
#include <psd_train.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/temp_dir.h"

#define WIDE 600000 /* columns of f64: more than one request has */

static const char *endpoint;
static temp_dir_t directory;

static const char dense[] = "0 0:0.1 1:-3e-45 2:0\n"
                            "1 0:0 1:0 2:0\n"
                            "2 0:0.016777217 1:3.4028235e+38 2:-0.25\n";
static const char sparse[] = "3 7:9007199254740993\n"
                             "12 0:-1 99:5\n"
                             "18446744073709551615 50:-9223372036854775808\n";

static const char *path_of(const char *name)
{
    static char paths[4][PATH_MAX + 16];
    static int at;
    char *path = paths[at++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%s", directory.path, name);
    return path;
}

static bool write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "we");

    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK(fclose(file) == 0);
    return true;
}

static bool has_text(const char *name, const char *text)
{
    char got[1024] = "";
    FILE *file = fopen(path_of(name), "re");
    size_t n = 0;

    CHECK(file != NULL);
    n = fread(got, 1, sizeof got - 1, file);
    (void)fclose(file);
    got[n] = '\0';
    if (strcmp(got, text) != 0) {
        (void)fprintf(stderr, "%s has: %s", name, got);
    }
    CHECK(strcmp(got, text) == 0);
    return true;
}

static bool is_there(const char *name)
{
    FILE *file = fopen(path_of(name), "re");

    if (file != NULL) {
        (void)fclose(file);
    }
    return file != NULL;
}

static bool begin(const char *job, psd_train_t **ret_train, psd_error_t *err)
{
    psd_train_t *train = psd_train_new(NULL);

    CHECK_OK(psd_train_set(train, "endpoint", endpoint, err), err);
    CHECK_OK(psd_train_set(train, "job", job, err), err);
    CHECK_OK(psd_train_set(train, "worker", "0", err), err);
    CHECK_OK(psd_train_set(train, "workers", "1", err), err);
    CHECK_OK(psd_train_set(train, "max-delay", "-1", err), err);
    CHECK_OK(psd_train_config_begin(train, err), err);
    *ret_train = train;
    return true;
}

/* The first table is dense, the second one sparse, the third one wide. */
static bool make_tables(psd_train_t *train, const char *prefix, psd_error_t *err)
{
    static const char *const specs[3][8] = {
        {"rows", "3", "cols", "3", "type", "f32", "keys", "range"},
        {"keys", "hash", "cols", "100", "type", "i64", "row-format", "sparse"},
        {"rows", "2", "cols", "600000", "type", "f64", "keys", "range"}};

    for (uint32_t i = 0; i < 3; i++) {
        psd_spec_t *spec = psd_spec_new();
        char name[32];
        uint32_t table = 7;

        for (size_t k = 0; k < 8; k += 2) {
            CHECK_OK(psd_spec_set(spec, specs[i][k], specs[i][k + 1], err), err);
        }
        (void)snprintf(name, sizeof name, "%s%u", prefix, (unsigned)i);
        CHECK_OK(psd_train_table(train, name, spec, &table, err), err);
        CHECK(table == i);
        psd_spec_destroy(&spec);
    }
    return true;
}

/* Each is bad in its last line; nothing of it is added. */
static bool refuse_bad_files(psd_train_t *train, psd_error_t *err)
{
    static const struct {
        const char *text;
        const char *part;
        psd_status_t status;
    } files[] = {{"0 0:1\n3 0:1\n", ":2: row 3; the last one is 2", PSD_RANGE},
                 {"x 0:1\n", ":1: row is \"x\"", PSD_INVALID},
                 {"0 0:1\n# no\n1 3:1\n", ":3: column 3; the last one is 2", PSD_RANGE},
                 {"0 1:1 0:1\n", ":1: column 0 after column 1", PSD_INVALID},
                 {"0 1:1 1:1", ":1: column 1 after column 1", PSD_INVALID},
                 {"0 0:1\n1 0:one\n", ":2: row 1 column 0 is \"one\"", PSD_TYPE},
                 {"0 0:1e39\n", ":1: row 0 column 0 is \"1e39\"", PSD_TYPE},
                 {"0 0:nan\n", ":1: row 0 column 0 is \"nan\"", PSD_NOT_FINITE},
                 {"0 0\n", ":1: \"0\" is not COLUMN:VALUE", PSD_INVALID},
                 {"0 0:1\n\n0 1:"
                  "0000000000000000000000000000000000000000000000000000000000000001\n",
                  ":3: a word of more than 62", PSD_INVALID}};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        CHECK(write_file("bad", files[i].text));
        CHECK_ERROR(psd_train_load(train, 0, path_of("bad"), err), files[i].status, files[i].part,
                    err);
    }
    CHECK_ERROR(psd_train_load(train, 0, path_of("none"), err), PSD_IO, "none", err);
    CHECK_ERROR(psd_train_load(train, 0, "-", err), PSD_INVALID, "twice", err);
    CHECK_ERROR(psd_train_load(train, 0, "/dev/null", err), PSD_INVALID,
                "/dev/null is not a regular file", err);
    CHECK(mkfifo(path_of("pipe"), 0600) == 0);
    CHECK_ERROR(psd_train_load(train, 0, path_of("pipe"), err), PSD_INVALID,
                "pipe is not a regular file", err);
    CHECK_ERROR(psd_train_load(train, 3, path_of("bad"), err), PSD_INVALID, "table is 3", err);
    return true;
}

static bool write_wide(void)
{
    FILE *file = fopen(path_of("wide"), "we");

    CHECK(file != NULL);
    (void)fprintf(file, "# two values\n1 0:0.5\t599999:-7\r\n");
    CHECK(fclose(file) == 0);
    return true;
}

static bool dump_and_compare(psd_train_t *train, psd_error_t *err)
{
    const uint64_t row = 1;
    double *values = calloc(WIDE, sizeof *values);

    CHECK_OK(psd_train_dump(train, 0, path_of("dense.out"), err), err);
    CHECK(has_text("dense.out", dense));
    CHECK_OK(psd_train_dump(train, 1, path_of("sparse.out"), err), err);
    CHECK(has_text("sparse.out", sparse));
    CHECK_OK(psd_pull(psd_train_table_handle(train, 2), &row, 1, values, WIDE, err), err);
    CHECK(values[0] == 0.5 && values[WIDE - 1] == -7 && values[1] == 0);
    free(values);
    return true;
}

/* From files into tables, from there packed into other tables. */
static bool come_back(void)
{
    psd_error_t *err = psd_error_new();
    psd_train_t *train = NULL;
    psd_train_t *again = NULL;

    CHECK(write_file("dense", dense) && write_file("sparse", sparse));
    CHECK(write_wide());
    CHECK(begin("first", &train, err));
    CHECK(make_tables(train, "a", err));
    CHECK(refuse_bad_files(train, err));
    CHECK_OK(psd_train_load(train, 0, path_of("dense"), err), err);
    CHECK_OK(psd_train_load(train, 1, path_of("sparse"), err), err);
    CHECK_OK(psd_train_load(train, 2, path_of("wide"), err), err);
    CHECK_OK(psd_train_config_end(train, err), err);
    CHECK(dump_and_compare(train, err));
    CHECK_ERROR(psd_train_load(train, 0, path_of("dense"), err), PSD_INVALID, "config_begin", err);
    CHECK_OK(psd_train_dump(train, 0, path_of("a0.gz"), err), err);
    CHECK_OK(psd_train_dump(train, 1, path_of("a1.zst"), err), err);
    CHECK_OK(psd_train_dump(train, 2, path_of("a2.gz"), err), err);
    CHECK_ERROR(psd_train_dump(train, 0, path_of("no/where"), err), PSD_IO, "where", err);
    CHECK_ERROR(psd_train_dump(train, 9, path_of("nine"), err), PSD_INVALID, "table is 9", err);
    CHECK(!is_there("nine"));
    psd_train_destroy(&train);
    CHECK(begin("second", &again, err));
    CHECK(make_tables(again, "b", err));
    CHECK_OK(psd_train_load(again, 0, path_of("a0.gz"), err), err);
    CHECK_OK(psd_train_load(again, 1, path_of("a1.zst"), err), err);
    CHECK_OK(psd_train_load(again, 2, path_of("a2.gz"), err), err);
    CHECK_OK(psd_train_config_end(again, err), err);
    CHECK(dump_and_compare(again, err));
    psd_train_destroy(&again);
    psd_error_destroy(&err);
    return true;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    bool ok = temp_dir_make(&directory) && daemon_start(&daemon, NULL);

    endpoint = daemon.control;
    ok = ok && come_back();
    daemon_drop(&daemon, !ok);
    temp_dir_drop(&directory);
    return ok ? 0 : 1;
}
