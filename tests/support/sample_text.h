/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_text - lines of a text parsed as samples of one format
 *
 * What     Does with a text in memory what a reader does with the lines of a
 *          file: sets the parser up, parses line by line, resumes after a bad
 *          one.
 * Threads  one at a time
 */
#ifndef PS_TESTS_SAMPLE_TEXT_H
#define PS_TESTS_SAMPLE_TEXT_H

#include "data/formats/format.h"

/* The parser of that format as a reader begins with it. */
ps_parser_t sample_text_parser(const char *format);
/* Parses all lines; text[size - 1] is '\n'. Counts bad lines; err (may be
 * NULL) gets the error of the first. */
size_t sample_text_parse(ps_parser_t *parser, const char *text, size_t size, psd_samples_t *samples,
                         psd_error_t *err);
#endif
