/* SPDX-License-Identifier: Apache-2.0 */
/* pscli explain: what an error code means and what to do. */
#include "cli/cluster/cluster.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"

static const ps_column_t CODES[] = {
    {"CODE", "code", PS_UNIT_NONE, false},      {"NAME", "name", PS_UNIT_NONE, false},
    {"EXIT", "exit", PS_UNIT_NONE, false},      {"MEANING", "text", PS_UNIT_NONE, false},
    {"WHAT TO DO", "hint", PS_UNIT_NONE, true}, {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t CODE[] = {
    {"CODE", "code", PS_UNIT_NONE, false},    {"NAME", "name", PS_UNIT_NONE, false},
    {"MEANING", "text", PS_UNIT_NONE, false}, {"WHAT TO DO", "hint", PS_UNIT_NONE, false},
    {"EXIT", "exit", PS_UNIT_NONE, false},    {NULL, NULL, PS_UNIT_NONE, false}};

#define ROW(name, number, code, exit, text, hint) PSD_##name,
static const psd_status_t STATUSES[] = {PSD_STATUS_MAP(ROW)};
#undef ROW
#define N_STATUSES (sizeof STATUSES / sizeof STATUSES[0])

static json_t *describe(psd_status_t status)
{
    return json_pack("{s:s,s:s,s:i,s:s,s:s}", "code", psd_status_code(status), "name",
                     psd_status_name(status), "exit", psd_status_exit(status), "text",
                     psd_status_text(status), "hint", psd_status_hint(status));
}

static psd_status_t list_codes(const ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = json_pack("{s:[]}", "codes");
    json_t *codes = json_object_get(doc, "codes");

    for (size_t i = 0; i < N_STATUSES; i++) {
        if (json_array_append_new(codes, describe(STATUSES[i])) != 0) {
            return psd_error_set(err, PSD_NOMEM, "no memory for the codes");
        }
    }
    ps_out_list(&cli->out, doc, "codes", CODES);
    return PSD_OK;
}

/* E2003, e2003, 2003 and NO_TABLE all name one. */
static bool is_named(psd_status_t status, const char *word)
{
    return strcasecmp(psd_status_code(status), word) == 0 ||
           strcmp(psd_status_code(status) + 1, word) == 0 ||
           strcasecmp(psd_status_name(status), word) == 0;
}

static psd_status_t refuse_code(const char *word, psd_error_t *err)
{
    const char *words[2 * N_STATUSES + 1] = {NULL};
    const char *near = NULL;
    char upper[64] = "";

    for (size_t i = 0; i < N_STATUSES; i++) {
        words[i] = psd_status_name(STATUSES[i]);
        words[N_STATUSES + i] = psd_status_code(STATUSES[i]);
    }
    for (size_t i = 0; i + 1 < sizeof upper && word[i] != '\0'; i++) {
        upper[i] = (char)toupper((unsigned char)word[i]);
    }
    near = ps_text_suggest(upper, words);
    return psd_error_set(err, PSD_USAGE,
                         "unknown code \"%s\"; %s%s%s\"pscli explain\" lists "
                         "them",
                         word, near == NULL ? "" : "did you mean \"", near == NULL ? "" : near,
                         near == NULL ? "" : "\"? ");
}

psd_status_t ps_cmd_explain(ps_cli_t *cli, psd_error_t *err)
{
    if (cli->args.n_words == 0) {
        return list_codes(cli, err);
    }
    for (size_t i = 0; i < N_STATUSES; i++) {
        if (is_named(STATUSES[i], ps_cli_word(cli, 0))) {
            PSD_AUTO(ps_json_unref) json_t *doc = describe(STATUSES[i]);

            ps_out_object(&cli->out, doc, CODE);
            return PSD_OK;
        }
    }
    return refuse_code(ps_cli_word(cli, 0), err);
}
