/* SPDX-License-Identifier: Apache-2.0 */
/* Words and parts of text. */
#include "model/words.h"

#include <string.h>

int
ps_word_find(const ps_word_t *list, size_t n, const char *text, size_t length)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(list[i].text) == length &&
            memcmp(list[i].text, text, length) == 0) {
            return list[i].value;
        }
    }
    return 0;
}

const char *
ps_word_of(const ps_word_t *list, size_t n, int value)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i].value == value) {
            return list[i].text;
        }
    }
    return "?";
}

psd_status_t
ps_word_unknown(const char *what,
                const char *text,
                const char *allowed,
                psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "%s \"%.80s\" is not known; allowed is %s", what, text,
                         allowed);
}

bool
ps_word_take(const char **at, char stop, char ret_part[PS_NUMBER_SIZE])
{
    size_t length = strcspn(*at, (char[]){stop, '\0'});

    if (length >= PS_NUMBER_SIZE) {
        return false;
    }
    memcpy(ret_part, *at, length);
    ret_part[length] = '\0';
    *at += length;
    *at += **at == stop ? 1 : 0;
    return true;
}
