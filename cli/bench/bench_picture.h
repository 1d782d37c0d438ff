/* SPDX-License-Identifier: Apache-2.0 */
/* ps_bench_picture - the figures of a suite as bars, each beside its limit */
#ifndef PS_CLI_BENCH_PICTURE_H
#define PS_CLI_BENCH_PICTURE_H

#include <stdio.h>

#include <jansson.h>

#include "psd/status.h"

/* Draws doc, as pscli bench suite -o json shows it. Leaves out figures of
 * unknown sections. */
void ps_bench_picture_draw(FILE *file, const json_t *doc);
/* The same into a new file. Errors: PSD_IO; PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_bench_picture_write(const char *path, const json_t *doc,
                                                   psd_error_t *err);
#endif
