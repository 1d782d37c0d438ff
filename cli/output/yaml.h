/* SPDX-License-Identifier: Apache-2.0 */
/* ps_yaml - a document as YAML, and a text with members of an item in it */
#ifndef PS_CLI_YAML_H
#define PS_CLI_YAML_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* {"schema_version":1} and the members of doc, in block style. Numbers and texts are those of
 * ps_json_write_doc. */
void ps_yaml_write_doc(FILE *file, const json_t *doc, bool big_as_text);
/*
 * Writes text with each {path} as that member of the item ("a.b", "a|b"), "" where it
 * has none; \n, \t, \\ and \{ as they are in C; and a line end where it has none.
 */
void ps_template_write(FILE *file, const char *text, const json_t *item);
/* Whether each { of the text has its }. */
bool ps_template_is_valid(const char *text);
#endif
