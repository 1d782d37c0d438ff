/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of .npy files. */
#include "cli/tables/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define FRONT_SIZE 10 /* magic, version, length */
#define ALIGNMENT 64  /* of the first value */
#define HEAD_MAX 4096 /* bytes of the dictionary that are taken */

static const struct {
    ps_type_t type;
    const char *descr;
} TYPES[] = {
    {PS_TYPE_I32, "<i4"}, {PS_TYPE_I64, "<i8"}, {PS_TYPE_F32, "<f4"}, {PS_TYPE_F64, "<f8"}};

psd_status_t ps_npy_write_head(FILE *file, ps_type_t type, uint64_t rows, uint64_t cols,
                               psd_error_t *err)
{
    char head[256];
    const char *descr = "";
    size_t n = 0;
    int length = 0;

    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        descr = TYPES[i].type == type ? TYPES[i].descr : descr;
    }
    length = snprintf(head + FRONT_SIZE, sizeof head - FRONT_SIZE,
                      "{'descr': '%s', 'fortran_order': False, 'shape': "
                      "(%" PRIu64 ", %" PRIu64 "), }",
                      descr, rows, cols);
    n = FRONT_SIZE + (size_t)length;
    while ((n + 1) % ALIGNMENT != 0) {
        head[n++] = ' ';
    }
    head[n++] = '\n';
    memcpy(head, MAGIC "\x01\x00", MAGIC_SIZE + 2);
    head[8] = (char)((n - FRONT_SIZE) & 0xFF);
    head[9] = (char)((n - FRONT_SIZE) >> 8);
    if (fwrite(head, 1, n, file) != n) {
        return psd_error_set(err, PSD_IO, "cannot be written: %s", strerror(errno));
    }
    return PSD_OK;
}

static psd_status_t refuse(const char *path, const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "%s: %s; allowed: .npy version 1.0 in C order with "
                         "two dimensions of <i4, <i8, <f4 or <f8",
                         path, what);
}

/* What follows 'key': in the dictionary, after blanks; NULL when missing. */
static const char *find_key(const char *head, const char *key)
{
    char quoted[32];
    const char *at = NULL;

    (void)snprintf(quoted, sizeof quoted, "'%s':", key);
    at = strstr(head, quoted);
    if (at == NULL) {
        return NULL;
    }
    at += strlen(quoted);
    return at + strspn(at, " ");
}

/* "(2, 3)": exactly two numbers. */
static bool read_shape(const char *at, uint64_t *ret_rows, uint64_t *ret_cols)
{
    uint64_t numbers[2] = {0};

    if (*at++ != '(') {
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        char digits[24] = "";
        size_t n = 0;

        at += strspn(at, " ");
        n = strspn(at, "0123456789");
        if (n == 0 || n >= sizeof digits) {
            return false;
        }
        memcpy(digits, at, n);
        if (!ps_text_u64(digits, &numbers[i])) {
            return false;
        }
        at += n;
        at += strspn(at, " ");
        if (i == 0 && *at++ != ',') {
            return false;
        }
    }
    at += *at == ',' ? 1 : 0;
    at += strspn(at, " ");
    *ret_rows = numbers[0];
    *ret_cols = numbers[1];
    return *at == ')';
}

static psd_status_t read_text(FILE *file, const char *path, char ret_head[HEAD_MAX + 1],
                              psd_error_t *err)
{
    unsigned char front[FRONT_SIZE];
    size_t length = 0;

    if (fread(front, 1, sizeof front, file) != sizeof front ||
        memcmp(front, MAGIC, MAGIC_SIZE) != 0) {
        return refuse(path, "not a .npy file", err);
    }
    if (front[6] != 1 || front[7] != 0) {
        return refuse(path, "another version of .npy", err);
    }
    length = (size_t)front[8] | (size_t)front[9] << 8;
    if (length > HEAD_MAX || fread(ret_head, 1, length, file) != length ||
        memchr(ret_head, '\0', length) != NULL) {
        return refuse(path, "its header is truncated or too long", err);
    }
    ret_head[length] = '\0';
    return PSD_OK;
}

psd_status_t ps_npy_read_head(FILE *file, const char *path, ps_type_t *ret_type, uint64_t *ret_rows,
                              uint64_t *ret_cols, psd_error_t *err)
{
    char head[HEAD_MAX + 1] = "";
    const char *descr = NULL;
    const char *order = NULL;
    const char *shape = NULL;
    psd_status_t rc = read_text(file, path, head, err);

    if (rc != PSD_OK) {
        return rc;
    }
    descr = find_key(head, "descr");
    order = find_key(head, "fortran_order");
    shape = find_key(head, "shape");
    if (descr == NULL || order == NULL || shape == NULL) {
        return refuse(path, "its header lacks descr, fortran_order or shape", err);
    }
    if (strncmp(order, "False", 5) != 0) {
        return refuse(path, "its order is Fortran", err);
    }
    if (!read_shape(shape, ret_rows, ret_cols)) {
        return refuse(path, "its shape is not (rows, cols)", err);
    }
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (descr[0] == '\'' && strncmp(descr + 1, TYPES[i].descr, 3) == 0 && descr[4] == '\'') {
            *ret_type = TYPES[i].type;
            return PSD_OK;
        }
    }
    return refuse(path, "its descr is not a type of a table", err);
}
