/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_max_min - the matching whose slowest link is fastest
 *
 * What     Of the matchings of left and right ends with the most pairs, one whose least
 *          weight is greatest.
 * Shape    weights: [n_left][n_right]; 0: no way.
 * Threads  A pure function.
 * Source   Bottleneck matching: binary search over the weights, augmenting paths by
 *          breadth first search; O(n_left^2 n_right log(n_left n_right)) at worst.
 */
#ifndef PS_PROTOCOL_OVERLAY_MAX_MIN_H
#define PS_PROTOCOL_OVERLAY_MAX_MIN_H

#include <stdint.h>

#include "psd/status.h"

/* ret_right: for each left end its right one, UINT32_MAX for none. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_max_min(const double *weights, uint32_t n_left, uint32_t n_right,
                                       uint32_t *ret_right, psd_error_t *err);
#endif
