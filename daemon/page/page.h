/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room daemon/page: the page at /
 *
 * It is       One HTML and one JavaScript file, compiled in: psd.html with the style of
 *             uPlot, uPlot's script and psd.js. uPlot is by others: uplot/LICENSE.
 * It uses     Of psd only /api/v1, /healthz and /metrics, as its reader's browser.
 * It ignores  All C.
 * Start at    psd.html, psd.js; embed.py makes page_files.c of them.
 */
#ifndef PS_DAEMON_PAGE_H
#define PS_DAEMON_PAGE_H

#include <stddef.h>

extern const unsigned char ps_page_html[];
extern const size_t ps_page_html_size;
extern const unsigned char ps_page_js[];
extern const size_t ps_page_js_size;
#endif
