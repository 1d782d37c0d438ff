/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of the formats; text is ps_cells_text. */
#ifndef PS_CLI_READER_PART_H
#define PS_CLI_READER_PART_H

#include "cli/tables/reader.h"

PSD_MUST_CHECK psd_status_t ps_reader_csv(ps_cells_t *self, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_reader_npy(ps_reader_t *self, psd_error_t *err);
#endif
