/* SPDX-License-Identifier: Apache-2.0 */
/* ps_control_ops - what the control port can do, as rows for ps_control_new. To
 * add an operation, declare it in control_inner.h and give it a row. */
#ifndef PS_SERVER_CONTROL_OPS_H
#define PS_SERVER_CONTROL_OPS_H

#include "server/state/control.h"

extern const ps_control_row_t ps_control_ops[];
extern const size_t ps_control_n_ops;
#endif
