/* SPDX-License-Identifier: Apache-2.0 */
/* dmlc/base.h - small helpers that programs written for ps-lite use */
#ifndef PSD_COMPAT_DMLC_BASE_H
#define PSD_COMPAT_DMLC_BASE_H

#include <inttypes.h>
#include <stdint.h>
#include <sys/types.h>

#include <string>
#include <vector>

#ifndef DMLC_USE_GLOG
#define DMLC_USE_GLOG 0
#endif
/* 1: a failed check throws dmlc::Error. 0: it ends the process. */
#ifndef DMLC_LOG_FATAL_THROW
#define DMLC_LOG_FATAL_THROW 0
#endif
#ifndef DMLC_USE_CXX11
#define DMLC_USE_CXX11 1
#endif
#ifndef DMLC_USE_PS
#define DMLC_USE_PS 1
#endif

#ifndef DISALLOW_COPY_AND_ASSIGN
#define DISALLOW_COPY_AND_ASSIGN(T)   \
    T(T const &) = delete;            \
    T(T &&) = delete;                 \
    T &operator=(T const &) = delete; \
    T &operator=(T &&) = delete
#endif

namespace dmlc {

/* The first element's address, or NULL when there is none. */
template <typename T> inline T *BeginPtr(std::vector<T> &all)
{
    return all.empty() ? nullptr : all.data();
}
template <typename T> inline const T *BeginPtr(const std::vector<T> &all)
{
    return all.empty() ? nullptr : all.data();
}
inline char *BeginPtr(std::string &text)
{
    return text.empty() ? nullptr : &text[0];
}
inline const char *BeginPtr(const std::string &text)
{
    return text.empty() ? nullptr : &text[0];
}

}
#endif
