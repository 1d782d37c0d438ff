/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the commands of pscli data: shared code. */
#ifndef PS_CLI_CMD_DATA_H
#define PS_CLI_CMD_DATA_H

#include "cli/run/cli.h"
#include "psd_data.h"

/* Opens the first n words after the command, read as the options say.
 * Errors: as psd_reader_open; PSD_USAGE. */
PSD_MUST_CHECK psd_status_t ps_data_open(const ps_cli_t *cli, size_t n, psd_reader_t **ret_reader,
                                         psd_error_t *err);
/* Names the bad lines that it left out, and says what is wrong with a cache.
 * Errors: PSD_PARTIAL there were bad lines. */
PSD_MUST_CHECK psd_status_t ps_data_tell_bad(const ps_cli_t *cli, const psd_reader_t *reader,
                                             psd_error_t *err);
/* "none", "binary", "class" or "real"; static. */
const char *ps_data_labels_name(psd_labels_t labels);
/* A number; null for NaN. */
json_t *ps_data_real(float value);
/* A number, or a text where it is too great for an integer of JSON. */
json_t *ps_data_whole(uint64_t value);

/* cmd_data_summary.c: what all samples of the files have. */
PSD_MUST_CHECK psd_status_t ps_data_show_summary(ps_cli_t *cli, psd_error_t *err);
#endif
