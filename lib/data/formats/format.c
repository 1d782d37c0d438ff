/* SPDX-License-Identifier: Apache-2.0 */
/* The formats by their names, and what they share. */
#include "data/formats/format.h"

#include <string.h>

#include "data/formats/feed.h"
#include "data/text/number.h"

#define WORD_SHOWN 24
#define NAMES_SIZE 160

static const ps_sample_format_t *const FORMATS[] = {
    &ps_sample_format_libsvm,      &ps_sample_format_ps,
    &ps_sample_format_vw,          &ps_sample_format_adfea,
    &ps_sample_format_terafea,     &ps_sample_format_criteo,
    &ps_sample_format_csv,         &ps_sample_format_lda_c,
    &ps_sample_format_text,        &ps_sample_format_idx,
    &ps_sample_format_binary,      &ps_sample_format_uci,
    &ps_sample_format_proto,       &ps_sample_format_proto_instance,
    &ps_sample_format_proto_input,
};
#define N_FORMATS (sizeof FORMATS / sizeof FORMATS[0])

psd_status_t ps_sample_format_find(const char *name, const ps_sample_format_t **ret_format,
                                   psd_error_t *err)
{
    char names[NAMES_SIZE] = "";
    size_t size = 0;

    for (size_t i = 0; i < N_FORMATS; i++) {
        size_t length = strlen(FORMATS[i]->name);

        if (strcmp(FORMATS[i]->name, name) == 0) {
            *ret_format = FORMATS[i];
            return PSD_OK;
        }
        if (size + length + 2 < sizeof names) {
            names[size] = ' ';
            memcpy(names + size + 1, FORMATS[i]->name, length + 1);
            size += length + 1;
        }
    }
    return psd_error_set(err, PSD_INVALID, "unknown format \"%.40s\"; allowed: auto%s", name,
                         names);
}

const ps_sample_format_t *ps_sample_format_at(size_t i)
{
    return i < N_FORMATS ? FORMATS[i] : NULL;
}

/* How many of the text's lines that say something fit, and of how many. */
static size_t count_fits(const ps_sample_format_t *format, ps_line_t text, size_t *ret_lines,
                         ps_line_t *ret_other)
{
    size_t n_lines = 0;
    size_t n_fit = 0;
    size_t at = 0;

    for (ps_line_t line = ps_text_line(text, &at); line.text != NULL;
         line = ps_text_line(text, &at)) {
        const char *start = ps_skip_blanks(line.text);

        if (*start == '\n' || *start == '#') {
            continue;
        }
        if (format->fits(line)) {
            n_fit++;
        } else if (line.first || (format->allows != NULL && format->allows(line))) {
            continue; /* titles, or it says nothing */
        } else if (ret_other->text == NULL) {
            *ret_other = line;
        }
        n_lines++;
    }
    *ret_lines = n_lines;
    return n_fit;
}

/* Do nine of ten fit? */
static bool is_likely(const ps_sample_format_t *format, ps_line_t text)
{
    ps_line_t other = {0};
    size_t n_lines = 0;
    size_t n_fit = count_fits(format, text, &n_lines, &other);

    return n_fit > 0 && n_fit * 10 >= n_lines * 9;
}

const ps_sample_format_t *ps_sample_format_nearest(ps_line_t text, size_t *ret_fit,
                                                   size_t *ret_lines, ps_line_t *ret_other)
{
    const ps_sample_format_t *best = NULL;

    *ret_fit = 0;
    for (size_t i = 0; i < N_FORMATS; i++) {
        ps_line_t other = {0};
        size_t n_lines = 0;
        size_t n_fit =
            FORMATS[i]->fits == NULL ? 0 : count_fits(FORMATS[i], text, &n_lines, &other);

        if (n_fit > *ret_fit) {
            best = FORMATS[i];
            *ret_fit = n_fit;
            *ret_lines = n_lines;
            *ret_other = other;
        }
    }
    return best;
}

const ps_sample_format_t *ps_sample_format_guess(ps_line_t text)
{
    const ps_sample_format_t *best = NULL;

    for (size_t i = 0; i < N_FORMATS; i++) {
        if (FORMATS[i]->fits != NULL && (best == NULL || FORMATS[i]->sureness > best->sureness) &&
            is_likely(FORMATS[i], text)) {
            best = FORMATS[i];
        }
    }
    return best;
}

const ps_sample_format_t *ps_sample_format_know(const char *path, const uint8_t *head, size_t size)
{
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (FORMATS[i]->feed != NULL && FORMATS[i]->feed->knows(path, head, size)) {
            return FORMATS[i];
        }
    }
    return NULL;
}

ps_line_t ps_text_line(ps_line_t text, size_t *at_p)
{
    ps_line_t line = {0};
    const char *end = NULL;

    if (*at_p >= text.size) {
        return line;
    }
    line.text = text.text + *at_p;
    end = memchr(line.text, '\n', text.size - *at_p);
    line.size = end == NULL ? text.size - *at_p : (size_t)(end - line.text);
    line.first = text.first && *at_p == 0;
    *at_p += line.size + 1;
    return line;
}

bool ps_sample_print_f32(ps_buffer_t *out, float value)
{
    float back = 0;
    size_t size = out->size;

    for (int digits = 6; digits < 9; digits++) {
        if (!ps_buffer_print(out, "%.*g", digits, (double)value)) {
            return false;
        }
        if (ps_number_f32((const char *)out->data + size, &back) != NULL && back == value) {
            return true;
        }
        out->size = size;
    }
    return ps_buffer_print(out, "%.9g", (double)value);
}

bool ps_line_is_number(ps_line_t line)
{
    float value = 0;
    const char *end = ps_number_f32(ps_skip_blanks(line.text), &value);

    return end != NULL && *ps_skip_blanks(end) == '\n';
}

/* What stands there up to ';', ',' or a byte below `least`, cut short. */
static const char *show(const char *at, char least)
{
    static _Thread_local char word[WORD_SHOWN + 4];
    size_t size = 0;

    while (size < WORD_SHOWN && at[size] >= least && at[size] < 0x7f && at[size] != ';' &&
           at[size] != ',') {
        word[size] = at[size];
        size++;
    }
    if (size == WORD_SHOWN) {
        memcpy(word + size, "...", 4);
        return word;
    }
    while (size > 0 && word[size - 1] == ' ') {
        size--;
    }
    word[size] = '\0';
    return word;
}

const char *ps_sample_word(const char *at)
{
    return show(at, ' ' + 1);
}

const char *ps_sample_cell(const char *at)
{
    return show(ps_skip_blanks(at), ' ');
}

psd_status_t ps_sample_refuse(const char *at, const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID, "\"%s\" is not %s", ps_sample_word(at), what);
}

psd_status_t ps_sample_refuse_cell(const char *at, const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID, "\"%s\" is not %s", ps_sample_cell(at), what);
}
