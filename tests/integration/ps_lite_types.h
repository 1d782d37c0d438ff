/* SPDX-License-Identifier: Apache-2.0 */
/* What of ps-lite's interface needs no job. */
#ifndef PS_LITE_TYPES_H
#define PS_LITE_TYPES_H

void CheckTypes();

#endif
