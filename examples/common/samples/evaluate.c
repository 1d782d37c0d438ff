/* SPDX-License-Identifier: Apache-2.0 */
/* AUC, log-loss, accuracy. */
#include "evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct scored {
    double margin;
    float label;
} scored_t;

double ex_logistic_loss(double x)
{
    return x > 0 ? log1p(exp(-x)) : log1p(exp(x)) - x;
}

double ex_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

void ex_quality_add(ex_quality_t *self, double margin, float label, double loss)
{
    self->n++;
    self->n_correct += (margin > 0) == (label > 0) ? 1 : 0;
    self->loss += loss;
}

static int compare(const void *a, const void *b)
{
    double x = ((const scored_t *)a)->margin;
    double y = ((const scored_t *)b)->margin;

    return (x > y) - (x < y);
}

/* Twice the number of pairs that are in order, so that ties stay whole. */
static double count_pairs(const scored_t *list, size_t n, double *ret_positives)
{
    double pairs = 0;
    double positives = 0;
    double negatives = 0;

    for (size_t i = 0; i < n;) {
        double tied[2] = {0, 0};
        size_t j = i;

        for (; j < n && list[j].margin == list[i].margin; j++) {
            tied[list[j].label > 0]++;
        }
        pairs += tied[1] * (2 * negatives + tied[0]);
        negatives += tied[0];
        positives += tied[1];
        i = j;
    }
    *ret_positives = positives;
    return pairs;
}

psd_status_t ex_auc(const double *margins, const float *labels, size_t n, double *ret_auc,
                    psd_error_t *err)
{
    scored_t *list = NULL;
    double positives = 0;
    double pairs = 0;

    if (n == 0) {
        *ret_auc = NAN;
        return PSD_OK;
    }
    list = malloc(n * sizeof(*list));
    if (list == NULL) {
        return psd_error_set(err, PSD_NOMEM, "AUC of %zu examples", n);
    }
    for (size_t i = 0; i < n; i++) {
        if (isnan(margins[i])) { /* NaN has no place in the order */
            free(list);
            *ret_auc = NAN;
            return PSD_OK;
        }
        list[i].margin = margins[i];
        list[i].label = labels[i];
    }
    qsort(list, n, sizeof(*list), compare);
    pairs = count_pairs(list, n, &positives);
    free(list);
    if (positives == 0 || positives == (double)n) {
        *ret_auc = NAN;
    } else {
        *ret_auc = pairs / (2 * positives * ((double)n - positives));
    }
    return PSD_OK;
}

const char *ex_auc_text(double auc, char ret_text[32])
{
    if (isnan(auc)) {
        return "-";
    }
    (void)snprintf(ret_text, 32, "%.4f", auc);
    return ret_text;
}

bool ex_quality_is_better(const ex_quality_t *self, double best_loss)
{
    return self->n > 0 && self->loss < best_loss;
}

void ex_quality_print(const char *what, const ex_quality_t *quality)
{
    (void)printf("%s  %zu examples  %s %.5f  accuracy %.4f", what, quality->n,
                 quality->loss_name != NULL ? quality->loss_name : "logloss",
                 quality->loss / (double)quality->n,
                 (double)quality->n_correct / (double)quality->n);
}
