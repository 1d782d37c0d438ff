/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_command's bytes and words
 *
 * What     The format of commands in a log. registry_fields.def lists the
 *          fields of each command; field.h defines their bytes.
 * Shape    magic u32 "psCm", version u16, kind u8, 0 u8, unix_ms u64, epoch u64,
 *          text; then the command's fields, in order
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_PROTOCOL_COMMAND_CODE_H
#define PS_PROTOCOL_COMMAND_CODE_H

#include "protocol/registry/registry.h"

/* The newest; a kind keeps the version with which it came, so that a psd that knows no newer
 * kinds reads the others. A table without `combine`, or that combines each, is of version 2, and
 * a principal with one key of version 5. */
#define PS_COMMAND_VERSION 8

/* "node", … in the history; "?" when it is not a kind. */
const char *ps_command_name(ps_command_kind_t kind);
/* "node_started", … in the log. */
const char *ps_command_event(ps_command_kind_t kind);

/* Appends the bytes. Leaves out fields that only matter at a node's start
 * (kept, lost), and the endpoints of copies, which follow from the nodes.
 * false: no memory. */
PSD_MUST_CHECK bool ps_command_encode(const ps_command_t *self, ps_buffer_t *buffer);
/* Reads all of the bytes. ps_registry_apply checks whether the command fits the
 * state. *ret_command is the caller's on PSD_OK (ps_command_done). Errors:
 * PSD_VERSION another version, or another one than the kind has; PSD_PROTO, naming the field;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_command_decode(ps_bytes_t bytes, ps_command_t *ret_command,
                                              psd_error_t *err);
#endif
