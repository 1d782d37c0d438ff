/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of numbers on the command line. */
#include "cli/bench/bench_list.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define SHOWN 40 /* bytes of a wrong list that an error shows */

psd_status_t ps_bench_list_read(const char *text, const char *what, uint64_t max,
                                ps_bench_list_t *ret_list, psd_error_t *err)
{
    ret_list->n = 0;
    if (strcmp(text, "none") == 0) {
        return PSD_OK;
    }
    for (bool more = true; more;) {
        size_t length = strcspn(text, ",");
        char part[32] = "";
        uint64_t number = 0;

        if (length < sizeof part) {
            memcpy(part, text, length);
        }
        if (ret_list->n == PS_BENCH_LIST_MAX || !ps_text_size(part, &number) || number == 0 ||
            number > max) {
            return psd_error_set(err, PSD_USAGE,
                                 "%s has \"%.*s\"; allowed: up to %d of 1 to "
                                 "%" PRIu64 ", like 4k,1M",
                                 what, (int)(length < SHOWN ? length : SHOWN), text,
                                 PS_BENCH_LIST_MAX, max);
        }
        ret_list->numbers[ret_list->n++] = number;
        more = text[length] == ',';
        text += length + 1;
    }
    return PSD_OK;
}
