/* SPDX-License-Identifier: Apache-2.0 */
/* The report at the end. */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "loss.h"

void lr_report_train(const lr_options_t *options, const ex_quality_t *sums, const ex_model_t *model,
                     double seconds)
{
    ex_quality_t quality = *sums;

    if (options->loss != LR_LOGIT) {
        quality.loss_name = lr_loss_of(options->loss)->name;
    }
    ex_quality_print("train", &quality);
    (void)printf("  nonzeros %zu", model->n);
    if (options->objective != NULL) {
        (void)printf("  F %.4f", options->objective_c * sums->loss + ex_model_norm2(model) / 2);
    }
    (void)printf("  %.3f s\n", seconds);
}

void lr_report_outcome(const lr_options_t *options, const lr_outcome_t *outcome)
{
    if (options->objective == NULL || outcome->n_epochs == 0) {
        return;
    }
    if (outcome->has_converged) {
        (void)printf("converged in %" PRIu32 " epochs\n", outcome->n_epochs);
        return;
    }
    (void)printf("not converged in %" PRIu32 " epochs", outcome->n_epochs);
    if (isfinite(outcome->change)) {
        (void)printf(": F changed by %.2g of itself in the last one, --tolerance is %g",
                     outcome->change, options->tolerance);
    }
    (void)printf("\n");
}
