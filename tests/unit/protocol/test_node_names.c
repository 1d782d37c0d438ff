/* SPDX-License-Identifier: Apache-2.0 */
/* What people call the nodes: lines, documents, and texts that name them. */
#include "protocol/facts/node_names.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static ps_node_names_t names;

static void drop_names(void)
{
    ps_node_names_done(&names);
}

TestSuite(node_names, .fini = drop_names);

static void set(uint64_t incarnation, const char *name)
{
    ps_node_name_t line = {.incarnation = incarnation};

    (void)snprintf(line.name, sizeof line.name, "%s", name);
    (void)snprintf(line.endpoint, sizeof line.endpoint, "tcp://%s:7171", name);
    cr_assert(ps_node_names_set(&names, &line));
}

static const char *name_of(const void *arg, uint64_t incarnation)
{
    const ps_node_name_t *found = ps_node_names_find(arg, incarnation);

    return found == NULL ? NULL : found->name;
}

static const char *put(const char *text)
{
    static char shown[80];

    ps_node_names_put(text, name_of, &names, shown, sizeof shown);
    return shown;
}

Test(node_names, belong_to_the_last_start)
{
    set(7, "vm-1");
    set(8, "vm-2");
    set(9, "vm-1");
    cr_assert_eq(names.n, 2);
    cr_assert_null(ps_node_names_find(&names, 7));
    cr_assert_str_eq(ps_node_names_find(&names, 9)->name, "vm-1");
    cr_assert_str_eq(ps_node_names_find(&names, 8)->endpoint, "tcp://vm-2:7171");
}

Test(node_names, stand_in_texts_for_incarnations)
{
    set(7, "vm-1");
    set(UINT64_MAX, "vm-2");
    cr_assert_str_eq(put("the copy on node 7 shard 1 lacks 3"),
                     "the copy on node \"vm-1\" shard 1 lacks 3");
    cr_assert_str_eq(put("node 18446744073709551615, then node 7"),
                     "node \"vm-2\", then node \"vm-1\"");
    cr_assert_str_eq(put("node 8 shard 1; node \"7\"; a node "),
                     "node 8 shard 1; node \"7\"; a node ");
    cr_assert_str_eq(put(""), "");
    cr_assert_eq(strlen(put("0123456789012345678901234567890123456789012345678"
                            "9012345678901234567 node 7 shard 1")),
                 79, "it is cut");
}

Test(node_names, travel_in_documents)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_doc_t *array = NULL;

    cr_assert_eq(ps_node_names_from_doc(&names, doc, err), PSD_OK);
    cr_assert_eq(names.n, 0, "an older psd says none");
    array = ps_doc_add_array(doc, "nodes");
    cr_assert(ps_node_name_to_doc(7, "vm-1", "tcp://a:1", array));
    cr_assert(ps_node_name_to_doc(UINT64_MAX, "vm-2", "ipc:///b", array));
    cr_assert_eq(ps_node_names_from_doc(&names, doc, err), PSD_OK);
    cr_assert_str_eq(ps_node_names_find(&names, 7)->endpoint, "tcp://a:1");
    cr_assert_str_eq(ps_node_names_find(&names, UINT64_MAX)->name, "vm-2");
    cr_assert(ps_node_name_to_doc(0, "vm-3", "tcp://a:1", array));
    cr_assert_eq(ps_node_names_from_doc(&names, doc, err), PSD_INVALID);
    cr_assert_not_null(strstr(psd_error_text(err), "incarnation"));
}
