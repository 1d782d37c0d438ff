/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_formats - version numbers of the formats that two builds of psd share
 *
 * What     A build refuses a different number at the first contact, and names
 *          it. Programs and shards speak PS_VERSION (wire/messages/message.h).
 *          tests/golden/formats.txt has a checksum of the bytes of each format:
 *          if you change the bytes, raise the number.
 */
#ifndef PS_WIRE_FORMATS_H
#define PS_WIRE_FORMATS_H

/* The format between nodes: control messages, records, states and rows of
 * copies. 1: builds before the number existed. */
#define PS_NODE_FORMAT 9
/* What to do where two formats between nodes meet. */
#define PS_NODE_FORMAT_HINT \
    "stop all nodes, upgrade all to one build of psd, start them; no row of level disk is lost"
/* The format of the overlay: MEET, which carries this number as its version, BUNDLE, RELAYED,
 * WANT and ROWS_ON. A relay of another one is not met, and its worker's deltas go directly. */
#define PS_OVERLAY_FORMAT 2
/* The format of a data directory: logs, snapshots, table files, notes. 1: also
 * builds that wrote no number. The registry's database has its own number
 * (storage/registry/registry_db_open.c), because psd upgrades older ones. */
#define PS_DISK_FORMAT 4
/* The oldest format that this build reads. It upgrades such a directory to the
 * number above; an older psd then refuses it. */
#define PS_DISK_FORMAT_MIN 1

#endif
