/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PS_TRAIN_TRAIN_H
#define PS_TRAIN_TRAIN_H

#include "train/state/train_state.h"

/* Stops the threads when nothing is left to do, or at once if it failed, and
 * waits for their end. Frees what is left. */
void ps_train_stop(psd_train_t *self);
#endif
