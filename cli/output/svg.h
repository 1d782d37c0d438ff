/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_svg - a drawing of bars, lines and texts, as an SVG file
 *
 * What     Colours are classes of a style sheet that follows the reader's light
 *          or dark scheme; a viewer that knows no schemes shows the light one.
 * Units    pixels, from the top left corner
 * Owner    The file is borrowed; what fails shows when it is closed.
 */
#ifndef PS_CLI_SVG_H
#define PS_CLI_SVG_H

#include <stdio.h>

/* Classes: what a thing is, not how it looks. */
typedef enum ps_svg_class {
    PS_SVG_TITLE, /* text */
    PS_SVG_HEAD,
    PS_SVG_LABEL,
    PS_SVG_VALUE,
    PS_SVG_FAINT,
    PS_SVG_BAR_0, /* bars of the first, second … kind */
    PS_SVG_BAR_1,
    PS_SVG_BAR_2,
    PS_SVG_BAR_3,
    PS_SVG_LIMIT, /* lines */
    PS_SVG_RULE
} ps_svg_class_t;

typedef enum ps_svg_anchor { PS_SVG_START, PS_SVG_MIDDLE, PS_SVG_END } ps_svg_anchor_t;

/* Begins a drawing; title is what screen readers say. */
void ps_svg_begin(FILE *file, double width, double height, const char *title);
void ps_svg_end(FILE *file);
/* Text whose baseline is at y; escaped. */
void ps_svg_text(FILE *file, double x, double y, ps_svg_class_t class, ps_svg_anchor_t anchor,
                 const char *text);
void ps_svg_bar(FILE *file, double x, double y, double width, double height, ps_svg_class_t class);
void ps_svg_line(FILE *file, double x1, double y1, double x2, double y2, ps_svg_class_t class);
#endif
