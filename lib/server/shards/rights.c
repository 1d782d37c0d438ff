/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the list, replaced as a whole. */
#include "server/shards/rights.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"

struct ps_rights {
    pthread_mutex_t lock;
    ps_principal_t *principals; /* owned */
    size_t n;
    atomic_uint_fast64_t epoch;      /* changes under the lock, as does … */
    atomic_uint_fast64_t generation; /* … the number of sets */
};

psd_status_t ps_rights_new(ps_rights_t **ret_rights, psd_error_t *err)
{
    ps_rights_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for principals");
    }
    (void)pthread_mutex_init(&self->lock, NULL);
    *ret_rights = self;
    return PSD_OK;
}

void ps_rights_destroy(ps_rights_t **self_p)
{
    ps_rights_t *self = *self_p;

    if (self != NULL) {
        (void)pthread_mutex_destroy(&self->lock);
        ps_free(self->principals);
        ps_free(self);
        *self_p = NULL;
    }
}

bool ps_rights_set(ps_rights_t *self, const ps_principal_t *principals, size_t n, uint64_t epoch)
{
    ps_principal_t *copy = n == 0 ? NULL : ps_alloc(n, sizeof *copy);
    ps_principal_t *old = NULL;

    if (n > 0 && copy == NULL) {
        return false;
    }
    if (n > 0) {
        memcpy(copy, principals, n * sizeof *copy);
    }
    (void)pthread_mutex_lock(&self->lock);
    old = self->principals;
    self->principals = copy;
    self->n = n;
    atomic_store(&self->epoch, epoch);
    atomic_fetch_add(&self->generation, 1);
    (void)pthread_mutex_unlock(&self->lock);
    ps_free(old);
    return true;
}

uint64_t ps_rights_epoch(const ps_rights_t *self)
{
    return atomic_load_explicit(&self->epoch, memory_order_acquire);
}

uint64_t ps_rights_generation(const ps_rights_t *self)
{
    return atomic_load_explicit(&self->generation, memory_order_acquire);
}

static bool is_one(const ps_principal_t *principal, const ps_asker_t *asker)
{
    return asker->key[0] != '\0'
               ? ps_principal_has_key(principal, asker->key)
               : asker->has_uid && asker->uid != PS_NO_UID && principal->uid == asker->uid;
}

bool ps_rights_find(ps_rights_t *self, const ps_asker_t *asker, ps_principal_t *ret_principal)
{
    bool found = false;

    (void)pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < self->n && !found; i++) {
        found = is_one(&self->principals[i], asker);
        if (found) {
            *ret_principal = self->principals[i];
        }
    }
    (void)pthread_mutex_unlock(&self->lock);
    return found;
}

bool ps_rights_may(ps_rights_t *self, const ps_asker_t *asker, ps_verb_t verb, ps_object_t object,
                   const char *name)
{
    ps_principal_t principal;

    return ps_rights_find(self, asker, &principal) && ps_trust_may(&principal, verb, object, name);
}
