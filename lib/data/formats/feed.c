/* SPDX-License-Identifier: Apache-2.0 */
#include "data/formats/feed.h"

/* n x part / n_parts, rounded down. */
static uint64_t begin_of(uint64_t n, uint64_t part, uint64_t n_parts)
{
    return n / n_parts * part + n % n_parts * part / n_parts;
}

ps_rows_t ps_rows_of(const ps_parser_t *parser, ps_share_t share, uint64_t n)
{
    uint64_t end = parser->end == 0 || parser->end > n ? n : parser->end;
    uint64_t first = parser->first < end ? parser->first : end;

    return (ps_rows_t){.first = first + begin_of(end - first, share.part, share.n_parts),
                       .end =
                           first + begin_of(end - first, share.part + UINT64_C(1), share.n_parts)};
}
