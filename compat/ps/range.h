/* SPDX-License-Identifier: Apache-2.0 */
/* ps/range.h - numbers from begin up to, not including, end */
#ifndef PSD_COMPAT_PS_RANGE_H
#define PSD_COMPAT_PS_RANGE_H

#include <stdint.h>

#include "ps/internal/utils.h"

namespace ps {

class Range {
  public:
    Range() : begin_(0), end_(0) {}
    Range(uint64_t begin, uint64_t end) : begin_(begin), end_(end) {}

    uint64_t begin() const { return begin_; }
    uint64_t end() const { return end_; }
    uint64_t size() const { return end_ - begin_; }

  private:
    uint64_t begin_;
    uint64_t end_;
};

}
#endif
