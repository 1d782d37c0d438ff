/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_page_sums - pages of an SQLite database that carry checksums
 *
 * What     A VFS of SQLite before the system's. A database whose pages have 8
 *          reserved bytes (SQLite's name for bytes at a page's end that it
 *          leaves alone; byte 20 of the file says how many) stores there the
 *          XXH3-64 of the page's other bytes, with the page's place as seed.
 *          The VFS adds it to each page that it writes, and checks it on each
 *          page that it reads: a page that differs fails the call with
 *          SQLITE_IOERR_DATA. A page of zeros was never written. The -wal has
 *          SQLite's own checksums.
 * Threads  any
 */
#ifndef PS_STORAGE_PAGE_SUMS_H
#define PS_STORAGE_PAGE_SUMS_H

#include <sqlite3.h>

#include "base/bytes.h"

#define PS_PAGE_SUM_SIZE 8 /* reserved bytes of a page */

/* For sqlite3_open_v2. NULL: SQLite has no VFS. */
const char *ps_page_sums_vfs(void);
/* Pages of a new database, or of an old one after its next VACUUM, get sums.
 * false: not on this VFS. */
PSD_MUST_CHECK bool ps_page_sums_want(sqlite3 *db);
/* Whether the pages in the file have them, by its head. */
bool ps_page_sums_are_there(sqlite3 *db);
/* Reads every page of the file, those too that hold nothing now; the -wal must
 * have been emptied. SQLITE_OK, or another code: SQLITE_IOERR_DATA,
 * SQLITE_IOERR_SHORT_READ the file is shorter than it says. */
PSD_MUST_CHECK int ps_page_sums_check(sqlite3 *db);
/* The offset of the first damaged page; -1: none. */
int64_t ps_page_sums_damaged_at(sqlite3 *db);
/* Puts them into the pages of a database that lies in memory, if it has room
 * for them. */
void ps_page_sums_put(uint8_t *bytes, size_t size);
#endif
