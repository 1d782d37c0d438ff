/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_formats - one number for each thing that two builds of psd must agree on
 *
 * What     A build refuses another number by name, at the first contact.
 *          Programs and shards speak PS_VERSION (wire/messages/message.h).
 *          tests/golden/formats.txt has a sum of the bytes that each number
 *          stands for: who changes the bytes raises the number.
 */
#ifndef PS_WIRE_FORMATS_H
#define PS_WIRE_FORMATS_H

/* What nodes tell each other: control messages of nodes, records, states and
 * rows of copies. 1: builds before it had a meaning. */
#define PS_NODE_FORMAT 3
/* What lies in a data directory: logs, snapshots, files of tables, notes. 1:
 * also of builds that wrote no number. The registry has one of its own
 * (storage/registry/registry_db_open.c), as older ones are brought up to date. */
#define PS_DISK_FORMAT 2
/* The oldest that is read, too; a directory of it gets the number above, and is
 * no older psd's any more. */
#define PS_DISK_FORMAT_MIN 1

#endif
