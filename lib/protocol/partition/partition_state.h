/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that writing and reading a partition's state share
 * (partition_copy.h). */
#ifndef PS_PROTOCOL_PARTITION_STATE_H
#define PS_PROTOCOL_PARTITION_STATE_H

#define PS_STATE_FORMAT UINT32_C(5)
#define PS_STATE_FORMAT_MIN UINT32_C(4) /* of snapshots that are still read */
#define PS_STATE_NO_TEXT UINT16_MAX     /* there was no memory for it */
#endif
