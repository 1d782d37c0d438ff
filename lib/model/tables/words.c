/* SPDX-License-Identifier: Apache-2.0 */
/* Words, numbers and parts of text. */
#include "model/tables/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

int ps_word_find(const ps_word_t *list, size_t n, const char *text, size_t length)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(list[i].text) == length && memcmp(list[i].text, text, length) == 0) {
            return list[i].value;
        }
    }
    return 0;
}

const char *ps_word_of(const ps_word_t *list, size_t n, int value)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i].value == value) {
            return list[i].text;
        }
    }
    return "?";
}

psd_status_t ps_word_unknown(const char *what, const char *text, const char *allowed,
                             psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID, "%s \"%.80s\" is not known; allowed is %s", what, text,
                         allowed);
}

bool ps_word_take(const char **at, char stop, char ret_part[PS_NUMBER_SIZE])
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

psd_status_t ps_word_no_number(const char *what, const char *text, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "%s \"%.80s\" is not a number; allowed is a decimal "
                         "number such as 0.05 or 1e-3",
                         what, text);
}

/* A whole number that a double would round is refused rather than changed. */
psd_status_t ps_word_number(const char *what, const char *text, double *ret_value, psd_error_t *err)
{
    double value = 0;
    int64_t whole = 0;

    if (!ps_text_f64(text, &value) || !isfinite(value)) {
        return ps_word_no_number(what, text, err);
    }
    if (ps_text_i64(text, &whole) && (value >= 0x1p63 || (int64_t)value != whole)) {
        return psd_error_set(err, PSD_INVALID,
                             "%s \"%.80s\" cannot be held exactly; beyond 2^53 "
                             "only some whole numbers can",
                             what, text);
    }
    *ret_value = value;
    return PSD_OK;
}

/* A program that links libpsd may have set a locale with another decimal point:
 * anything that is not part of a number becomes a dot. */
static void force_dot(char *text)
{
    char *to = text;

    for (const char *at = text; *at != '\0'; at++) {
        bool is_plain = strchr("0123456789+-einfa", *at) != NULL;

        if (is_plain) {
            *to++ = *at;
        } else if (to == text || to[-1] != '.') {
            *to++ = '.';
        }
    }
    *to = '\0';
}

/* The shortest of the usual precisions that parses back to the same bits. */
void ps_word_format_number(double value, char ret[PS_NUMBER_SIZE])
{
    for (int digits = 15; digits <= 17; digits++) {
        double back = 0;

        (void)snprintf(ret, PS_NUMBER_SIZE, "%.*g", digits, value);
        force_dot(ret);
        if (ps_text_f64(ret, &back) && back == value) {
            return;
        }
    }
}
