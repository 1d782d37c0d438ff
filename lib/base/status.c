/* SPDX-License-Identifier: Apache-2.0 */
/* Each status's name, meaning and remedy: views of the one list. */
#include "psd/status.h"

#include <stddef.h>

typedef struct status_row {
    psd_status_t status;
    const char *name;
    const char *code;
    int exit_code;
    const char *text;
    const char *hint;
} status_row_t;

#define STATUS_ROW(name, number, code, exit_code, text, hint) \
    {PSD_##name, #name, code, exit_code, text, hint},
static const status_row_t ROWS[] = {PSD_STATUS_MAP(STATUS_ROW)};
#undef STATUS_ROW

/* The row for a number that only a newer peer knows. */
static const status_row_t UNKNOWN = {
    .status = PSD_FAILED,
    .name = "?",
    .code = "E0001",
    .exit_code = 1,
    .text = "unknown status",
    .hint = "the other side may be newer; install the same version on both sides",
};

static const status_row_t *find_row(psd_status_t status)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        if (ROWS[i].status == status) {
            return &ROWS[i];
        }
    }
    return &UNKNOWN;
}

const char *psd_status_name(psd_status_t status)
{
    return find_row(status)->name;
}

const char *psd_status_text(psd_status_t status)
{
    return find_row(status)->text;
}

const char *psd_status_code(psd_status_t status)
{
    return find_row(status)->code;
}

const char *psd_status_hint(psd_status_t status)
{
    return find_row(status)->hint;
}

int psd_status_exit(psd_status_t status)
{
    return find_row(status)->exit_code;
}
