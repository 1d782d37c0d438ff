/* SPDX-License-Identifier: Apache-2.0 */
/* sample_file - files of a test in a directory of its own, plain and packed */
#ifndef PS_TESTS_SAMPLE_FILE_H
#define PS_TESTS_SAMPLE_FILE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "data/streams/file_out.h"
#include "support/temp_dir.h"

#define SAMPLE_PATH (PATH_MAX + 64)

/* Writes it, packed as its name says; ret_path: DIR/name. */
static inline void sample_file_write(const temp_dir_t *dir, const char *name, const void *bytes,
                                     size_t size, char ret_path[SAMPLE_PATH])
{
    ps_file_out_t *file = NULL;

    (void)snprintf(ret_path, SAMPLE_PATH, "%s/%s", dir->path, name);
    cr_assert_eq(ps_file_out_open(ret_path, 0666, &file, NULL), PSD_OK);
    cr_assert_eq(ps_file_out_write(file, bytes, size, NULL), PSD_OK);
    cr_assert_eq(ps_file_out_commit(file, NULL), PSD_OK);
    ps_file_out_close(&file);
}

/* Writes it as it is, under that path. */
static inline void sample_file_put(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "we");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, size, file), size);
    cr_assert_eq(fclose(file), 0);
}

/* Reads all of it. */
static inline size_t sample_file_get(const char *path, void *bytes, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t n = 0;

    cr_assert_not_null(file);
    n = fread(bytes, 1, size, file);
    cr_assert_eq(fclose(file), 0);
    return n;
}
#endif
