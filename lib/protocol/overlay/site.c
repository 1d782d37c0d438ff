/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the names of sites. */
#include "protocol/overlay/site.h"

#include <string.h>

#include "base/text.h"

#define NUMBER_MAX 4 /* digits */
#define MOST 4096    /* workers of a job */

/* A name, and for how many ranks; *ret_n 0: it does not say. */
static bool read_part(const char *text, size_t length, ps_site_t *ret, uint64_t *ret_n)
{
    const char *colon = memchr(text, ':', length);
    size_t name = colon == NULL ? length : (size_t)(colon - text);
    char number[NUMBER_MAX + 1] = "";

    *ret_n = 0;
    if (name > PS_NAME_MAX || length - name > NUMBER_MAX + 1) {
        return false;
    }
    memcpy(ret->name, text, name);
    ret->name[name] = '\0';
    if (colon != NULL) {
        memcpy(number, colon + 1, length - name - 1);
        if (!ps_text_u64(number, ret_n) || *ret_n < 1 || *ret_n > MOST) {
            return false;
        }
    }
    return ps_text_is_name(ret->name);
}

psd_status_t ps_site_find(const char *text, const char *origin, uint32_t rank, ps_site_t *ret,
                          psd_error_t *err)
{
    ps_site_t found = {.name = ""};
    uint64_t end = 0; /* of the ranks so far */
    bool is_last = text == NULL;

    for (const char *at = text; !is_last;) {
        size_t length = strcspn(at, ",");
        ps_site_t part = {.name = ""};
        uint64_t n = 0;

        is_last = at[length] == '\0';
        if (!read_part(at, length, &part, &n) || (n == 0 && !is_last)) {
            return psd_error_set(err, PSD_INVALID,
                                 "%s is \"%.80s\": \"%.*s\" names no site; allowed: NAME, or "
                                 "NAME:N,NAME:N,... by rank, with names of letters, digits and "
                                 "\"_.-\", and N from 1 to %d",
                                 origin, text, length > 40 ? 40 : (int)length, at, MOST);
        }
        if (rank >= end) {
            found = part;
        }
        end += n;
        at += length + 1;
    }
    *ret = found;
    return PSD_OK;
}
