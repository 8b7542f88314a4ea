// A fixed-size array of plain values on a cache-line boundary, not initialised.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace spillway {

inline constexpr size_t kCacheLineBytes = 64;  // x86 and most ARM; also one AVX-512 register

template <class T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  AlignedArray() = default;
  explicit AlignedArray(size_t n)
      : data_(n == 0 ? nullptr
                     : static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{kCacheLineBytes}))),
        size_(n) {}

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_.get()[i]; }
  const T& operator[](size_t i) const { return data_.get()[i]; }
  std::span<T> span() { return {data(), size_}; }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t{kCacheLineBytes}); }
  };
  std::unique_ptr<T, Free> data_;
  size_t size_ = 0;
};

}  // namespace spillway
