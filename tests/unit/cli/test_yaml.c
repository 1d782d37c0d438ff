/* SPDX-License-Identifier: Apache-2.0 */
/* cli/output/yaml: documents as YAML, and templates. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/yaml.h"

static char *text = NULL;
static size_t size = 0;

static void expect_yaml(const char *json, const char *want)
{
    json_t *doc = json_loads(json, 0, NULL);
    FILE *file = open_memstream(&text, &size);

    ps_yaml_write_doc(file, doc, false);
    (void)fclose(file);
    cr_expect_str_eq(text, want);
    free(text);
    json_decref(doc);
}

static void expect_template(const char *template, const char *want)
{
    json_t *item =
        json_loads("{\"name\":\"w\",\"n\":3,\"bytes\":{\"log\":7},\"up\":true}", 0, NULL);
    FILE *file = open_memstream(&text, &size);

    ps_template_write(file, template, item);
    (void)fclose(file);
    cr_expect_str_eq(text, want);
    free(text);
    json_decref(item);
}

Test(yaml, objects_and_lists_are_indented)
{
    expect_yaml(
        "{\"cluster\":{\"name\":\"psd\",\"healthy\":true},\"nodes\":[{\"name\":\"a\",\"shards\":2,"
        "\"of\":[1,2.5]},{\"name\":\"b\"}],\"none\":[],\"empty\":{},\"left\":null}",
        "schema_version: 1\n"
        "cluster:\n"
        "  name: psd\n"
        "  healthy: true\n"
        "nodes:\n"
        "  - name: a\n"
        "    shards: 2\n"
        "    of:\n"
        "      - 1\n"
        "      - 2.5\n"
        "  - name: b\n"
        "none: []\n"
        "empty: {}\n"
        "left: null\n");
}

Test(yaml, what_reads_as_another_type_has_quotes)
{
    expect_yaml(
        "{\"a\":\"yes\",\"b\":\"1\",\"c\":\"tcp://h:1\",\"d\":\"x y\",\"e\":\"\",\"f\":\"a\\nb\","
        "\"incarnation\":\"12345678901234567890\"}",
        "schema_version: 1\n"
        "a: \"yes\"\n"
        "b: \"1\"\n"
        "c: \"tcp://h:1\"\n"
        "d: \"x y\"\n"
        "e: \"\"\n"
        "f: \"a\\nb\"\n"
        "incarnation: 12345678901234567890\n");
}

Test(yaml, a_template_is_filled_for_each_item)
{
    expect_template("{name} has {n}", "w has 3\n");
    expect_template("{bytes.log}\\t{none}\\{{none|name}}\\n", "7\t{w}\n");
    expect_template("{up}", "true\n");
    expect_template("a\\\\n", "a\\n\n");
    expect_template("", "\n");
    cr_expect(ps_template_is_valid("{a}{b.c}\\{"));
    cr_expect(!ps_template_is_valid("{a"));
    cr_expect(!ps_template_is_valid("{}"));
    cr_expect(!ps_template_is_valid("{a{b}"));
}
