/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sample_text.h"

#include <assert.h>

ps_parser_t sample_text_parser(const char *format)
{
    ps_parser_t parser = {.bits = 18, .constant = true};
    psd_status_t rc = ps_sample_format_find(format, &parser.format, NULL);

    assert(rc == PSD_OK);
    (void)rc;
    return parser;
}

size_t sample_text_parse(ps_parser_t *parser, const char *text, size_t size, psd_samples_t *samples,
                         psd_error_t *err)
{
    ps_line_t all = {.text = text, .size = size, .first = true};
    size_t n_bad = 0;
    size_t at = 0;

    if (!parser->entries_set) {
        parser->entries = parser->format->entries;
    }
    if (parser->format->look != NULL) {
        parser->format->look(parser, all);
    }
    ps_samples_clear(samples);
    samples->entries = parser->entries;
    for (ps_line_t line = ps_text_line(all, &at); line.text != NULL;
         line = ps_text_line(all, &at)) {
        ps_samples_mark_t mark = ps_samples_mark(samples);

        if (parser->format->parse(parser, line, samples, n_bad == 0 ? err : NULL) != PSD_OK) {
            ps_samples_go_back(samples, mark);
            n_bad++;
        }
    }
    return n_bad;
}
