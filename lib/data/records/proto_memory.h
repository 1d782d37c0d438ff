/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_proto_memory - messages unpacked by protobuf-c, in bounded memory
 *
 * What     A message takes at most 40 times its size + 64 KiB, and 256 MiB.
 * Owner    the caller frees a message
 * Threads  any
 */
#ifndef PS_DATA_PROTO_MEMORY_H
#define PS_DATA_PROTO_MEMORY_H

#include <protobuf-c/protobuf-c.h>

#include "base/bytes.h"
#include "psd/status.h"

/* A message of that schema; NULL: *ret_status is PSD_INVALID (it is no such
 * message, or takes too much memory) or PSD_NOMEM. */
ProtobufCMessage *ps_proto_unpack(const ProtobufCMessageDescriptor *schema, ps_bytes_t message,
                                  psd_status_t *ret_status, psd_error_t *err);
void ps_proto_unpacked_free(ProtobufCMessage *self);
#endif
