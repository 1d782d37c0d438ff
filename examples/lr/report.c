/* SPDX-License-Identifier: Apache-2.0 */
/* What stands at the end. */
#include "report.h"

#include <stdio.h>

#include "loss.h"

void
lr_report_train(const lr_options_t *options,
                const ex_quality_t *sums,
                const ex_model_t *model,
                double seconds)
{
    ex_quality_t quality = *sums;

    if (options->loss != LR_LOGIT) {
        quality.loss_name = lr_loss_of(options->loss)->name;
    }
    ex_quality_print("train", &quality);
    (void)printf("  nonzeros %zu", model->n);
    if (options->objective != NULL) {
        (void)printf("  F %.4f", options->objective_c * sums->loss +
                                     ex_model_norm2(model) / 2);
    }
    (void)printf("  %.3f s\n", seconds);
}
