/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view - what an operator is told while things fail: copies, and why
 *
 * What     A client that asks the registry's node, as pscli does.
 * Owner    The caller; view_close.
 * Threads  Confined to one.
 */
#ifndef PS_TESTS_VIEW_H
#define PS_TESTS_VIEW_H

#include <psd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct view {
    psd_client_t *client;
    psd_error_t *err;
} view_t;

/* false: why is on stderr. */
bool view_open(view_t *self, const char *endpoint);
void view_close(view_t *self);

/* Takes all copies away from a node, and gives it none; or lets it `stay`, with
 * its share again. Waits while the registry does not answer. false: a refusal.
 */
bool view_drain(view_t *self, const char *node, bool stay);
/* Waits until a node that drains has no copy any more. false: what it has. */
bool view_wait_drained(view_t *self, const char *node);
/* Waits until a node has so many copies. false: it has fewer. */
bool view_wait_copies(view_t *self, const char *node, unsigned least);
/* Waits until every partition of the table has so many copies that are whole,
 * and a primary among them. false: what there is instead is on stderr. */
bool view_wait_whole(view_t *self, const char *table, unsigned n_copies);
/* The lines of `why` for a job, each ended by a newline. Waits until there is
 * an answer; false: there is none within a time that people wait. */
bool view_why(view_t *self, const char *job, char *ret_text, size_t size);
/* The same once, and the problems of `cluster status`; false: no answer. */
bool view_try_why(view_t *self, const char *job, char *ret_text, size_t size);
bool view_try_status(view_t *self, const char *job, char *ret_text, size_t size);
#endif
