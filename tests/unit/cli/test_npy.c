/* SPDX-License-Identifier: Apache-2.0 */
/* cli/tables/npy.h: heads of .npy files. */
#include "cli/tables/npy.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"

static psd_status_t read_bytes(const char *bytes, size_t n, ps_type_t *type, uint64_t *rows,
                               uint64_t *cols, psd_error_t *err)
{
    FILE *file = fmemopen((void *)bytes, n, "r");
    psd_status_t rc = PSD_OK;

    cr_assert_not_null(file);
    psd_error_clear(err);
    rc = ps_npy_read_head(file, "x.npy", type, rows, cols, err);
    (void)fclose(file);
    return rc;
}

Test(npy, a_head_reads_back_and_is_aligned)
{
    static const ps_type_t TYPES[] = {PS_TYPE_I32, PS_TYPE_I64, PS_TYPE_F32, PS_TYPE_F64};

    for (size_t i = 0; i < 4; i++) {
        char bytes[512] = "";
        FILE *file = fmemopen(bytes, sizeof bytes, "w+");
        ps_type_t type = PS_TYPE_I32;
        uint64_t rows = 0;
        uint64_t cols = 0;

        cr_assert_eq(ps_npy_write_head(file, TYPES[i], UINT64_C(1) << 40, 7, NULL), PSD_OK);
        cr_assert_eq(ftell(file) % 64, 0);
        rewind(file);
        cr_assert_eq(ps_npy_read_head(file, "x.npy", &type, &rows, &cols, NULL), PSD_OK);
        cr_assert_eq(type, TYPES[i]);
        cr_assert_eq(rows, UINT64_C(1) << 40);
        cr_assert_eq(cols, 7);
        cr_assert_eq(ftell(file) % 64, 0);
        (void)fclose(file);
    }
}

/* The bytes that numpy.save of 1.24 writes for zeros((3, 2), "<f4"). */
Test(npy, numpys_own_bytes)
{
    char bytes[128];
    static const char FRONT[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', "
                                "'fortran_order': False, 'shape': (3, 2), }";
    ps_type_t type = PS_TYPE_I32;
    uint64_t rows = 0;
    uint64_t cols = 0;
    FILE *file = NULL;
    char ours[256] = "";

    memset(bytes, ' ', sizeof bytes);
    memcpy(bytes, FRONT, sizeof FRONT - 1);
    bytes[127] = '\n';
    cr_assert_eq(read_bytes(bytes, sizeof bytes, &type, &rows, &cols, NULL), PSD_OK);
    cr_assert_eq(type, PS_TYPE_F32);
    cr_assert_eq(rows, 3);
    cr_assert_eq(cols, 2);
    file = fmemopen(ours, sizeof ours, "w");
    cr_assert_eq(ps_npy_write_head(file, PS_TYPE_F32, 3, 2, NULL), PSD_OK);
    (void)fclose(file);
    cr_assert_eq(memcmp(ours, bytes, sizeof bytes), 0);
}

Test(npy, what_is_not_understood_is_said)
{
    static const struct {
        const char *head;
        const char *why;
    } WRONG[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (3, 2), }",
         "its descr is not a type of a table"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (3, 2), }",
         "its descr is not a type of a table"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", "its order is Fortran"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
         "its shape is not (rows, cols)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 1), }",
         "its shape is not (rows, cols)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, x), }",
         "its shape is not (rows, cols)"},
        {"{'descr': '<f4', 'fortran_order': False, "
         "'shape': (99999999999999999999999, 2), }",
         "its shape is not (rows, cols)"},
        {"{'descr': '<f4', 'shape': (3, 2), }", "its header lacks descr, fortran_order or shape"},
        {"", "its header lacks descr, fortran_order or shape"},
    };
    psd_error_t *err = psd_error_new();
    ps_type_t type = PS_TYPE_I32;
    uint64_t rows = 0;
    uint64_t cols = 0;

    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        char bytes[256] = "\x93NUMPY\x01";
        size_t n = strlen(WRONG[i].head);

        bytes[8] = (char)n;
        memcpy(bytes + 10, WRONG[i].head, n);
        cr_assert_eq(read_bytes(bytes, 10 + n, &type, &rows, &cols, err), PSD_INVALID);
        cr_assert_not_null(strstr(psd_error_text(err), WRONG[i].why), "%s", psd_error_text(err));
    }
    cr_assert_eq(read_bytes("hello", 5, &type, &rows, &cols, err), PSD_INVALID);
    cr_assert_eq(read_bytes("\x93NUMPY\x02\x00\x02\x00{}", 12, &type, &rows, &cols, err),
                 PSD_INVALID);
    cr_assert_not_null(strstr(psd_error_text(err), "another version"));
    cr_assert_eq(read_bytes("\x93NUMPY\x01\x00\xFF\x00{}", 12, &type, &rows, &cols, err),
                 PSD_INVALID);
    cr_assert_not_null(strstr(psd_error_text(err), "truncated or too long"));
    psd_error_destroy(&err);
}
