/* SPDX-License-Identifier: Apache-2.0 */
/* Two looks at counters make rates. */
#include "cli/watch/top.h"

#include <string.h>

#include "cli/run/cli.h"

void ps_top_look_done(ps_top_look_t *self)
{
    json_decref(self->status);
    json_decref(self->tables);
    json_decref(self->clocks);
    *self = (ps_top_look_t){0};
}

/* The item of a list whose member `key` is that text. */
static const json_t *find(const json_t *list, const char *key, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);

        if (strcmp(ps_json_text(item, key), text) == 0) {
            return item;
        }
    }
    return NULL;
}

/* A counter that went back began again, with a table of the same name or a node. */
static double rate(const json_t *before, const json_t *now, const char *path, double seconds)
{
    double was = (double)ps_json_u64(before, path);
    double is = (double)ps_json_u64(now, path);

    return before == NULL || seconds <= 0 || is < was ? 0 : (is - was) / seconds;
}

static double bytes_of(const json_t *table)
{
    const json_t *bytes = ps_json_at(table, "bytes");
    const char *key = NULL;
    json_t *value = NULL;
    double sum = 0;

    json_object_foreach((json_t *)(uintptr_t)bytes, key, value)
    {
        sum += json_number_value(value);
    }
    return sum;
}

static json_t *table_of(const json_t *before, const json_t *now, double seconds)
{
    return json_pack("{s:s,s:f,s:f,s:f,s:f,s:f,s:f,s:b}", "name", ps_json_text(now, "name"),
                     "rows_present", (double)ps_json_u64(now, "rows_present"), "bytes",
                     bytes_of(now), "pushes_s", rate(before, now, "stats.pushes", seconds),
                     "pulls_s", rate(before, now, "stats.pulls", seconds), "rows_pushed_s",
                     rate(before, now, "stats.rows_pushed", seconds), "rows_pulled_s",
                     rate(before, now, "stats.rows_pulled", seconds), "rows_lost",
                     json_is_true(ps_json_at(now, "rows_lost")) ? 1 : 0);
}

static size_t count_of(const json_t *object, const char *path)
{
    const json_t *value = ps_json_at(object, path);

    return json_is_array(value) ? json_array_size(value) : (size_t)ps_json_u64(object, path);
}

static json_t *job_of(const json_t *before, const json_t *now, double seconds)
{
    return json_pack(
        "{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:f}", "job", ps_json_text(now, "job"), "state",
        ps_json_text(now, "state"), "max_delay",
        (json_int_t)json_integer_value(ps_json_at(now, "max_delay")), "workers",
        (json_int_t)count_of(now, "workers"), "waiting", (json_int_t)count_of(now, "waiting"),
        "min", (json_int_t)ps_json_u64(now, "min"), "max", (json_int_t)ps_json_u64(now, "max"),
        "clocks_s", rate(before, now, "min", seconds));
}

typedef json_t *(*item_of_t)(const json_t *before, const json_t *now, double seconds);

static json_t *list_of(const json_t *before, const json_t *now, const char *key, item_of_t item_of,
                       double seconds)
{
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && i < json_array_size(now); i++) {
        const json_t *item = json_array_get(now, i);
        json_t *made = item_of(find(before, key, ps_json_text(item, key)), item, seconds);

        if (made == NULL || json_array_append_new(list, made) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *ps_top_document(const ps_top_look_t *before, const ps_top_look_t *now)
{
    static const ps_top_look_t none = {0};
    const ps_top_look_t *was = before == NULL ? &none : before;
    double seconds = before == NULL ? 0 : now->at_s - before->at_s;
    json_t *tables = list_of(ps_json_at(was->tables, "tables"), ps_json_at(now->tables, "tables"),
                             "name", table_of, seconds);
    json_t *jobs = list_of(ps_json_at(was->clocks, "clocks"), ps_json_at(now->clocks, "clocks"),
                           "job", job_of, seconds);

    /* json_pack takes the lists, also when it fails. */
    return json_pack("{s:f,s:O?,s:O?,s:O?,s:O?,s:o,s:o}", "interval_s", seconds, "cluster",
                     ps_json_at(now->status, "cluster"), "problems",
                     ps_json_at(now->status, "problems"), "warnings",
                     ps_json_at(now->status, "warnings"), "nodes", ps_json_at(now->status, "nodes"),
                     "tables", tables, "jobs", jobs);
}
