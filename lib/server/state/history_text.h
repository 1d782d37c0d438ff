/* SPDX-License-Identifier: Apache-2.0 */
/*
 * History text - what a row of the history says, and who is named in it
 *
 * What     The text of a command is for people: "worker 2 of job lr failed: "out of memory",
 *          by alice (uid 1000)". What others wrote stands in quotes, so that it cannot pass
 *          for the end, which psd writes. All is cut between characters.
 * Shape    plain functions
 */
#ifndef PS_SERVER_HISTORY_TEXT_H
#define PS_SERVER_HISTORY_TEXT_H

#include <stddef.h>

/* Ends the text with ", by WHO". Where both do not fit into size bytes, the text is cut, and
 * ends with "...". An empty text stays so. size: more than who takes, and 16 bytes. */
void ps_history_sign(char *text, size_t size, const char *who);
/* Writes foreign as "…" without further quotes and control characters, cut to fit size bytes
 * with the closing quote and '\0'. size: 8 or more. Returns ret. */
const char *ps_history_quote(const char *foreign, char *ret, size_t size);
/* Bytes that are no character become "?": what an older psd has stored may be cut in the midst
 * of one. */
void ps_history_mend(char *text);
#endif
