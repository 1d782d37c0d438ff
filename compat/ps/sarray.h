/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps/sarray.h - an array that shares its memory
 *
 * A copy, a conversion to another type and a segment name the same memory, which
 * goes with the last of them. Growing beyond the capacity takes new memory, which
 * is then this array's alone.
 */
#ifndef PSD_COMPAT_PS_SARRAY_H
#define PSD_COMPAT_PS_SARRAY_H

#include <string.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "ps/internal/utils.h"
#include "ps/range.h"

namespace ps {

template <typename V> class SArray {
  public:
    SArray() {}
    ~SArray() {}
    SArray(const SArray &) = default;
    SArray &operator=(const SArray &) = default;

    explicit SArray(size_t size, V value = 0) { resize(size, value); }
    /* The same memory, seen as values of another type. */
    template <typename W> explicit SArray(const SArray<W> &other) { *this = other; }
    template <typename W> void operator=(const SArray<W> &other)
    {
        const size_t bytes = other.size() * sizeof(W);

        CHECK_EQ(bytes % sizeof(V), 0U) << bytes << " bytes are no values of " << sizeof(V);
        size_ = bytes / sizeof(V);
        capacity_ = other.capacity() * sizeof(W) / sizeof(V);
        memory_ = std::shared_ptr<V>(other.ptr(), reinterpret_cast<V *>(other.data()));
    }
    /* Borrowed memory, or with `deletable` owned memory of new[]. */
    SArray(V *data, size_t size, bool deletable = false)
    {
        if (deletable) {
            reset(data, size, [](V *p) { delete[] p; });
        } else {
            reset(data, size, [](V *) {});
        }
    }
    /* Copies a vector; shares a shared one. */
    explicit SArray(const std::vector<V> &values) { CopyFrom(values.data(), values.size()); }
    explicit SArray(const std::shared_ptr<std::vector<V>> &values)
        : size_(values->size()), capacity_(values->size()), memory_(values, values->data())
    {
    }
    template <typename W> SArray(const std::initializer_list<W> &values)
    {
        CopyFrom(values.begin(), values.end());
    }
    template <typename W> void operator=(const std::initializer_list<W> &values)
    {
        CopyFrom(values.begin(), values.end());
    }

    void CopyFrom(const V *data, size_t size)
    {
        V *memory = new V[size + 1];

        std::copy(data, data + size, memory);
        reset(memory, size, [](V *p) { delete[] p; });
    }
    void CopyFrom(const SArray<V> &other)
    {
        if (this != &other) {
            CopyFrom(other.data(), other.size());
        }
    }
    template <typename Iterator> void CopyFrom(const Iterator &first, const Iterator &last)
    {
        const size_t size = static_cast<size_t>(std::distance(first, last));
        V *memory = new V[size + 1];
        V *to = memory;

        for (Iterator at = first; at != last; ++at) {
            *to++ = static_cast<V>(*at);
        }
        reset(memory, size, [](V *p) { delete[] p; });
    }

    template <typename Deleter> void reset(V *data, size_t size, Deleter deleter)
    {
        size_ = size;
        capacity_ = size;
        memory_.reset(data, deleter);
    }
    /* New places get `value`. */
    void resize(size_t size, V value = 0)
    {
        const size_t before = size_;

        if (size > capacity_) {
            grow(size);
        }
        size_ = size;
        if (size > before) {
            std::fill(data() + before, data() + size, value);
        }
    }
    void reserve(size_t capacity)
    {
        if (capacity > capacity_) {
            grow(capacity);
        }
    }
    void clear()
    {
        reset(nullptr, 0, [](V *) {});
    }

    bool empty() const { return size_ == 0; }
    size_t size() const { return size_; }
    size_t capacity() const { return capacity_; }

    V *begin() { return data(); }
    const V *begin() const { return data(); }
    V *end() { return data() + size_; }
    const V *end() const { return data() + size_; }
    V *data() const { return memory_.get(); }
    std::shared_ptr<V> &ptr() { return memory_; }
    const std::shared_ptr<V> &ptr() const { return memory_; }

    V front() const
    {
        CHECK(!empty());
        return data()[0];
    }
    V back() const
    {
        CHECK(!empty());
        return data()[size_ - 1];
    }
    V &operator[](int i) { return data()[i]; }
    const V &operator[](int i) const { return data()[i]; }

    void push_back(const V &value)
    {
        const V kept = value; /* it may be one of ours */

        if (size_ == capacity_) {
            reserve(size_ * 2 + 5);
        }
        data()[size_++] = kept;
    }
    void pop_back()
    {
        if (size_ > 0) {
            --size_;
        }
    }
    void append(const SArray<V> &other)
    {
        const SArray<V> kept = other; /* it may be this one */
        const size_t before = size_;

        if (!kept.empty()) {
            resize(before + kept.size());
            std::copy(kept.data(), kept.data() + kept.size(), data() + before);
        }
    }
    /* Places begin up to, not including, end; the same memory. */
    SArray<V> segment(size_t begin, size_t end) const
    {
        SArray<V> part;

        CHECK_GE(end, begin);
        CHECK_LE(end, size_);
        part.memory_ = std::shared_ptr<V>(memory_, data() + begin);
        part.size_ = end - begin;
        part.capacity_ = end - begin;
        return part;
    }

  private:
    void grow(size_t capacity)
    {
        const size_t size = size_;
        V *memory = new V[capacity];

        std::copy(data(), data() + size, memory);
        reset(memory, capacity, [](V *p) { delete[] p; });
        size_ = size;
    }

    size_t size_ = 0;
    size_t capacity_ = 0;
    std::shared_ptr<V> memory_;
};

/* The places of a sorted array whose values are lower or more, and below upper. */
template <typename V> Range FindRange(const SArray<V> &sorted, V lower, V upper)
{
    if (upper <= lower) {
        return Range(0, 0);
    }
    const V *first = std::lower_bound(sorted.begin(), sorted.end(), lower);
    const V *last = std::lower_bound(sorted.begin(), sorted.end(), upper);
    return Range(static_cast<uint64_t>(first - sorted.begin()),
                 static_cast<uint64_t>(last - sorted.begin()));
}

/* "[n]: " and the values; of many the first and last m. */
template <typename V> inline std::string DebugStr(const V *data, int n, int m = 5)
{
    std::ostringstream text;

    text << '[' << n << "]: ";
    for (int i = 0; i < n; i++) {
        if (n >= 2 * m && i == m) {
            text << "... ";
            i = n - m;
        }
        text << data[i] << ' ';
    }
    return text.str();
}

template <typename V> std::ostream &operator<<(std::ostream &out, const SArray<V> &array)
{
    return out << DebugStr(array.data(), static_cast<int>(array.size()));
}

}
#endif
