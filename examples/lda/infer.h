/* SPDX-License-Identifier: Apache-2.0 */
/* infer - a saved model on other documents; no server is needed */
#ifndef LDA_INFER_H
#define LDA_INFER_H

#include "model.h"
#include "options.h"

/* What --infer asks for. Errors: those of the files; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_infer(const lda_options_t *options, psd_error_t *err);
/* Prints how well documents are predicted. */
void lda_print_score(double sum, uint64_t n);
#endif
