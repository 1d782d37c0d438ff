/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dmlc/logging.h - checks and log lines
 *
 * A line is written whole to standard error, with the time and the place. A check
 * that fails writes its text and ends the process by SIGABRT; with
 * DMLC_LOG_FATAL_THROW=1 it throws dmlc::Error instead.
 */
#ifndef PSD_COMPAT_DMLC_LOGGING_H
#define PSD_COMPAT_DMLC_LOGGING_H

#include <assert.h>
#include <stdio.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "dmlc/base.h"

namespace dmlc {

struct Error : public std::runtime_error {
    explicit Error(const std::string &text) : std::runtime_error(text) {}
};

inline void InitLogging(const char *) {}

/* "HH:MM:SS" of now. */
class DateLogger {
  public:
    DateLogger() { buffer_[0] = '\0'; }
    const char *HumanDate()
    {
        const time_t now = time(nullptr);
        struct tm parts;

        if (localtime_r(&now, &parts) == nullptr ||
            strftime(buffer_, sizeof buffer_, "%H:%M:%S", &parts) == 0) {
            buffer_[0] = '\0';
        }
        return buffer_;
    }

  private:
    char buffer_[16];
};

/* One line of the log: collected, then written at once. */
class LogMessage {
  public:
    LogMessage(const char *file, int line)
    {
        DateLogger date;

        text_ << '[' << date.HumanDate() << "] " << file << ':' << line << ": ";
    }
    ~LogMessage() { Write(); }
    std::ostream &stream() { return text_; }

  protected:
    void Write()
    {
        text_ << '\n';
        const std::string line = text_.str();
        fwrite(line.data(), 1, line.size(), stderr);
        fflush(stderr);
    }
    std::ostringstream text_;

  private:
    LogMessage(const LogMessage &);
    void operator=(const LogMessage &);
};

/* The last line of a process. */
class LogMessageFatal {
  public:
    LogMessageFatal(const char *file, int line)
    {
        DateLogger date;

        text_ << '[' << date.HumanDate() << "] " << file << ':' << line << ": ";
    }
#if defined(__GNUC__) && !DMLC_LOG_FATAL_THROW
    __attribute__((noreturn))
#endif
    ~LogMessageFatal() noexcept(false)
    {
        const std::string line = text_.str() + "\n";

        fwrite(line.data(), 1, line.size(), stderr);
        fflush(stderr);
#if DMLC_LOG_FATAL_THROW
        throw Error(text_.str());
#else
        abort();
#endif
    }
    std::ostream &stream()
    {
        return text_;
    }

  private:
    std::ostringstream text_;
    LogMessageFatal(const LogMessageFatal &);
    void operator=(const LogMessageFatal &);
};

/* Makes a line of the log an expression without a value; binds weaker than <<. */
class LogMessageVoidify {
  public:
    LogMessageVoidify() {}
    void operator&(std::ostream &) {}
};

template <typename T> inline T &&CheckNotNull(const char *file, int line, const char *what, T &&x)
{
    if (x == nullptr) {
        LogMessageFatal(file, line).stream() << "Check failed: " << what << " is not NULL ";
    }
    return static_cast<T &&>(x);
}

}

#define CHECK(x)                                                                         \
    (x) ? (void)0                                                                        \
        : dmlc::LogMessageVoidify() & dmlc::LogMessageFatal(__FILE__, __LINE__).stream() \
                                          << "Check failed: " #x << ' '
#define CHECK_LT(x, y) CHECK((x) < (y))
#define CHECK_GT(x, y) CHECK((x) > (y))
#define CHECK_LE(x, y) CHECK((x) <= (y))
#define CHECK_GE(x, y) CHECK((x) >= (y))
#define CHECK_EQ(x, y) CHECK((x) == (y))
#define CHECK_NE(x, y) CHECK((x) != (y))
#define CHECK_NOTNULL(x) dmlc::CheckNotNull(__FILE__, __LINE__, #x, (x))

/* Checks of builds for debugging. */
#ifdef NDEBUG
#define DCHECK(x) \
    while (false) \
    CHECK(x)
#else
#define DCHECK(x) CHECK(x)
#endif
#define DCHECK_LT(x, y) DCHECK((x) < (y))
#define DCHECK_GT(x, y) DCHECK((x) > (y))
#define DCHECK_LE(x, y) DCHECK((x) <= (y))
#define DCHECK_GE(x, y) DCHECK((x) >= (y))
#define DCHECK_EQ(x, y) DCHECK((x) == (y))
#define DCHECK_NE(x, y) DCHECK((x) != (y))

#define LOG_INFO dmlc::LogMessage(__FILE__, __LINE__)
#define LOG_WARNING LOG_INFO
#define LOG_ERROR LOG_INFO
#define LOG_FATAL dmlc::LogMessageFatal(__FILE__, __LINE__)
#define LOG_QFATAL LOG_FATAL
#ifdef NDEBUG
#define LOG_DFATAL LOG_ERROR
#define PSD_COMPAT_DEBUGS false
#else
#define LOG_DFATAL LOG_FATAL
#define PSD_COMPAT_DEBUGS true
#endif
#define LOG(severity) LOG_##severity.stream()
#define LG LOG_INFO.stream()
#define VLOG(x) LOG_INFO.stream()
#define LOG_IF(severity, condition) \
    !(condition) ? (void)0 : dmlc::LogMessageVoidify() & LOG(severity)
#define DLOG_IF(severity, condition) LOG_IF(severity, PSD_COMPAT_DEBUGS && (condition))
#define DLOG(severity) LOG_IF(severity, PSD_COMPAT_DEBUGS)
#define LOG_EVERY_N(severity, n) LOG(severity)

#endif
