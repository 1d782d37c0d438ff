/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_judge - how good vectors are
 *
 * What     Similarity: Spearman's rank correlation between the cosine of two
 *          words and people's ratings, over the pairs with both words known
 *          (Finkelstein et al., 2002). Analogies: of a : b as c : ?, the word
 *          nearest to b - a + c by cosine, but a, b and c (3CosAdd, Mikolov et
 *          al., NAACL 2013), among the 30,000 most frequent words; questions
 *          with others do not count. Words of the files are compared in lower
 *          case.
 */
#ifndef WV_JUDGE_H
#define WV_JUDGE_H

#include "vectors.h"

typedef struct wv_judgement {
    uint64_t n;     /* pairs or questions that count */
    uint64_t n_all; /* that there are */
    double value;   /* rho, or the share that is right */
} wv_judgement_t;

/* Makes every vector as long as 1; the others expect that. */
void wv_judge_prepare(wv_vectors_t *vectors);
/* Errors: PSD_IO; PSD_INVALID a line that is none; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_judge_pairs(const wv_vectors_t *vectors, const char *path,
                                           wv_judgement_t *ret, psd_error_t *err);
PSD_MUST_CHECK psd_status_t wv_judge_questions(const wv_vectors_t *vectors, const char *path,
                                               wv_judgement_t *ret, psd_error_t *err);
/* Prints the words that are nearest. Errors: PSD_INVALID it is not known. */
PSD_MUST_CHECK psd_status_t wv_judge_near(const wv_vectors_t *vectors, const char *word,
                                          psd_error_t *err);
/* Spearman's rho; equal values share their ranks. NaN when either is constant.
 * Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_spearman(const double *a, const double *b, size_t n, double *ret,
                                        psd_error_t *err);
#endif
