/* SPDX-License-Identifier: Apache-2.0 */
/* ps/internal/env.h - settings: those that the program gives, then the process's */
#ifndef PSD_COMPAT_PS_ENV_H
#define PSD_COMPAT_PS_ENV_H

#include <stdlib.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace ps {

class Environment {
  public:
    static Environment *Get() { return _GetSharedRef().get(); }
    static std::shared_ptr<Environment> _GetSharedRef()
    {
        static std::shared_ptr<Environment> one(new Environment());
        return one;
    }
    /* Replaces what the program gave before. Call it before Start. */
    static Environment *Init(const std::unordered_map<std::string, std::string> &values)
    {
        Get()->values_ = values;
        return Get();
    }
    /* NULL when neither has it. */
    const char *find(const char *key)
    {
        const auto at = values_.find(key);

        return at == values_.end() ? getenv(key) : at->second.c_str();
    }
    /* libpsd reads the process's environment alone. */
    void Export() const
    {
        for (const auto &pair : values_) {
            setenv(pair.first.c_str(), pair.second.c_str(), 1);
        }
    }

  private:
    Environment() {}
    std::unordered_map<std::string, std::string> values_;
};

}
#endif
