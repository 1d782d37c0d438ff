/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_top - what the screen of pscli top shows
 *
 * What     Two looks at the cluster make a document with rates; a document makes the
 *          lines of a screen. No input or output.
 * Units    Rates are per second.
 * Owner    A look owns its answers (ps_top_look_done).
 */
#ifndef PS_CLI_TOP_H
#define PS_CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#define PS_TOP_WIDTH_MAX 320
#define PS_TOP_HEIGHT_MAX 256

/* What the cluster answered at one time. */
typedef struct ps_top_look {
    double at_s;    /* of the boot clock */
    json_t *status; /* owned; of cluster_status */
    json_t *tables; /* owned; of table_list */
    json_t *clocks; /* owned; of clock_list */
} ps_top_look_t;
/* Frees and zeroes; fits PSD_AUTO. */
void ps_top_look_done(ps_top_look_t *self);

/* The document of -o json. before: NULL, or an earlier look; without one, and for what
 * was not there then, rates are 0. NULL: no memory. The caller gives it back with
 * json_decref. */
json_t *ps_top_document(const ps_top_look_t *before, const ps_top_look_t *now);

typedef enum ps_top_style { PS_TOP_PLAIN = 0, PS_TOP_TITLE, PS_TOP_BAD } ps_top_style_t;

typedef struct ps_top_line {
    ps_top_style_t style;
    char text[PS_TOP_WIDTH_MAX + 1]; /* ASCII, not longer than the screen is wide */
} ps_top_line_t;

typedef struct ps_top_frame {
    size_t n;
    ps_top_line_t lines[PS_TOP_HEIGHT_MAX];
} ps_top_frame_t;

/* Which rows are shown where not all have room. */
typedef enum ps_top_part { PS_TOP_ALL = 0, PS_TOP_NODES, PS_TOP_TABLES, PS_TOP_JOBS } ps_top_part_t;

/* Fills a screen of that size, at least 40 by 10. part: that list alone, from row `first`
 * on; PS_TOP_ALL: as much of each as there is room for, nodes before tables before jobs;
 * what is left out is counted in a line of its own. */
void ps_top_draw(const json_t *document, size_t width, size_t height, ps_top_part_t part,
                 size_t first, ps_top_frame_t *ret_frame);
#endif
