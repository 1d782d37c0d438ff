/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden_file - bytes that must not drift, as text in hex
 *
 * What     NAME.hex in the directory that PSD_GOLDEN_DIR names: '#' starts a
 *          comment; the rest is bytes in hex. A check writes the file first
 *          where PSD_GOLDEN_WRITE is set.
 */
#ifndef PS_TESTS_GOLDEN_FILE_H
#define PS_TESTS_GOLDEN_FILE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

#define GOLDEN_BYTES_MAX 2048
#define GOLDEN_PATH_SIZE 4096

static inline FILE *golden_file_open(const char *name, const char *mode)
{
    const char *dir = getenv("PSD_GOLDEN_DIR");
    char path[GOLDEN_PATH_SIZE];
    FILE *file = NULL;

    cr_assert_not_null(dir, "PSD_GOLDEN_DIR is not set");
    (void)snprintf(path, sizeof path, "%s/%s.hex", dir, name);
    file = fopen(path, mode);
    cr_assert_not_null(file, "cannot open %s", path);
    return file;
}

static inline void golden_file_write(const char *name, const char *comment, ps_bytes_t bytes)
{
    FILE *file = golden_file_open(name, "w");

    (void)fprintf(file, "# %s", comment);
    for (size_t at = 0; at < bytes.size; at++) {
        (void)fprintf(file, "%s%02x", at % 16 == 0 ? "\n" : " ", (unsigned)bytes.data[at]);
    }
    (void)fprintf(file, "\n");
    cr_assert_eq(fclose(file), 0);
}

static inline size_t golden_file_read(const char *name, uint8_t ret_bytes[GOLDEN_BYTES_MAX])
{
    FILE *file = golden_file_open(name, "r");
    char line[256];
    size_t size = 0;

    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = line;
        unsigned byte = 0;
        int length = 0;

        while (line[0] != '#' && sscanf(at, " %2x%n", &byte, &length) == 1) {
            cr_assert_lt(size, GOLDEN_BYTES_MAX, "%s is too long", name);
            ret_bytes[size++] = (uint8_t)byte;
            at += length;
        }
    }
    cr_assert_eq(fclose(file), 0);
    return size;
}

/* The file has these bytes, which are returned as read from it. */
static inline ps_bytes_t golden_file_check(const char *name, const char *comment, ps_bytes_t bytes,
                                           uint8_t ret_bytes[GOLDEN_BYTES_MAX])
{
    size_t size = 0;

    if (getenv("PSD_GOLDEN_WRITE") != NULL) {
        golden_file_write(name, comment, bytes);
    }
    size = golden_file_read(name, ret_bytes);
    cr_assert_eq(size, bytes.size, "%s has another size", name);
    cr_assert_arr_eq(ret_bytes, bytes.data, size, "%s has other bytes", name);
    return (ps_bytes_t){ret_bytes, size};
}

#endif
