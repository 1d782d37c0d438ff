/* SPDX-License-Identifier: Apache-2.0 */
/* What each kind needs, and the words of roles, verbs and objects. */
#include <assert.h>
#include <string.h>

#include "protocol/trust/trust.h"

#define NEED(KIND, VERB, OBJECT, SCOPE, is_noted)                             \
    {                                                                         \
#KIND, PS_VERB_##VERB, PS_OBJECT_##OBJECT, PS_SCOPE_##SCOPE, is_noted \
    }

#define NOTED true
#define QUIET false
#define OP_ROW(kind, VERB, OBJECT, SCOPE, NOTE) \
    [PS_TRUST_OP_##kind] = NEED(kind, VERB, OBJECT, SCOPE, NOTE),
static const ps_need_t ops[] = {PS_TRUST_OPS(OP_ROW)};
#undef OP_ROW
#undef NOTED
#undef QUIET

#define MESSAGE_ROW(KIND, VERB, OBJECT, SCOPE) \
    [PS_KIND_##KIND] = NEED(KIND, VERB, OBJECT, SCOPE, false),
static const ps_need_t messages[] = {PS_TRUST_MESSAGES(MESSAGE_ROW)};
#undef MESSAGE_ROW

/* Each kind of message has its row: without one this does not build. */
#define HAS_ROW(KIND, VERB, OBJECT, SCOPE) HAS_##KIND = 1,
enum { PS_TRUST_MESSAGES(HAS_ROW) };
#undef HAS_ROW
#define WANTS_ROW(KIND, name, number) static_assert(HAS_##KIND == 1, "a row of trust_kinds.def");
PS_MESSAGE_MAP(WANTS_ROW)
#undef WANTS_ROW

#define NUMBERED_WORD(NAME, number, word) [number] = (word),
static const char *const role_words[PS_ROLE_END] = {PS_ROLE_MAP(NUMBERED_WORD)};
#undef NUMBERED_WORD
#define WORD(NAME, word) word,
static const char *const verb_words[] = {PS_VERB_MAP(WORD)};
static const char *const object_words[] = {PS_OBJECT_MAP(WORD)};
#undef WORD

const ps_need_t *ps_need_of_op(ps_trust_op_t op)
{
    return &ops[op];
}

const ps_need_t *ps_need_of_request(const char *name)
{
    for (size_t i = 0; i < PS_TRUST_OPS_COUNT; i++) {
        if (strcmp(ops[i].kind, name) == 0) {
            return &ops[i];
        }
    }
    return NULL;
}

const ps_need_t *ps_need_of_message(ps_kind_t kind)
{
    return (size_t)kind < sizeof messages / sizeof *messages && messages[kind].kind != NULL
               ? &messages[kind]
               : NULL;
}

static const char *word_of(const char *const *words, size_t n, size_t at)
{
    return at < n && words[at] != NULL ? words[at] : "?";
}

static bool find_word(const char *const *words, size_t n, const char *word, size_t *ret_at)
{
    for (size_t i = 0; i < n; i++) {
        if (words[i] != NULL && strcmp(words[i], word) == 0) {
            *ret_at = i;
            return true;
        }
    }
    return false;
}

const char *ps_role_word(ps_role_t role)
{
    return word_of(role_words, PS_ROLE_END, (size_t)role);
}

const char *ps_verb_word(ps_verb_t verb)
{
    return word_of(verb_words, PS_VERB_END, (size_t)verb);
}

const char *ps_verb_phrase(ps_verb_t verb)
{
    return verb == PS_VERB_LOOK ? "look at" : ps_verb_word(verb);
}

const char *ps_object_word(ps_object_t object)
{
    return word_of(object_words, PS_OBJECT_END, (size_t)object);
}

bool ps_role_of_word(const char *word, ps_role_t *ret_role)
{
    size_t at = 0;
    bool found = find_word(role_words, PS_ROLE_END, word, &at);

    *ret_role = (ps_role_t)at;
    return found;
}

bool ps_verb_of_word(const char *word, ps_verb_t *ret_verb)
{
    size_t at = 0;
    bool found = find_word(verb_words, PS_VERB_END, word, &at);

    *ret_verb = (ps_verb_t)at;
    return found;
}

bool ps_object_of_word(const char *word, ps_object_t *ret_object)
{
    size_t at = 0;
    bool found = find_word(object_words, PS_OBJECT_END, word, &at);

    *ret_object = (ps_object_t)at;
    return found;
}
