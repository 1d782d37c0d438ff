/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of the formats share. */
#ifndef PS_CLI_READER_PART_H
#define PS_CLI_READER_PART_H

#include "cli/reader.h"

#define PS_TOKEN_SIZE 64      /* longest number or pair, with '\0' */
#define PS_PIECE_VALUES 65536 /* of a row that are handed on at once */

/* Reads a word up to one of the separators, a line's end or the file's; gives
 * what ended it ('\n' at a line's end, EOF at the file's). "\r\n" ends a line
 * too. Errors: PSD_INVALID a word that is too long, a byte 0; PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_reader_token(ps_reader_t *self,
                                            const char *separators,
                                            char ret_token[PS_TOKEN_SIZE],
                                            int *ret_end,
                                            psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_reader_row(const ps_reader_t *self,
                                          const char *token,
                                          uint64_t *ret_row,
                                          psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_reader_col(const ps_reader_t *self,
                                          const char *token,
                                          uint32_t *ret_col,
                                          psd_error_t *err);
/* Appends a value to the piece. */
PSD_MUST_CHECK psd_status_t ps_reader_value(ps_reader_t *self,
                                            uint64_t row,
                                            uint32_t col,
                                            const char *token,
                                            psd_error_t *err);
/* Hands the piece on, with the columns in self->cols when has_cols. */
PSD_MUST_CHECK psd_status_t ps_reader_flush(ps_reader_t *self,
                                            uint64_t row,
                                            uint32_t first_col,
                                            bool has_cols,
                                            psd_error_t *err);

PSD_MUST_CHECK psd_status_t ps_reader_text(ps_reader_t *self, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_reader_csv(ps_reader_t *self, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_reader_npy(ps_reader_t *self, psd_error_t *err);
#endif
