// Speed of the quantized products: decode (one token; many expert-sized matrices that no cache holds) as a
// share of a plain streaming read of the same bytes, measured in turn with it; and prefill in multiplications
// a second.
//
//   product_bench [avx512|avx2] [seconds per figure] [type]
//
// One thread; start two for two cores (memory and clock are shared).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string_view>
#include <vector>

#include "backend/cpu/avx2_product.h"
#include "backend/cpu/avx512_product.h"
#include "base/tensor_type.h"

namespace spillway::cpu {
namespace {

using enum TensorType;
constexpr TensorType kTypes[] = {kQ4_K,   kQ6_K, kQ8_0, kQ4_0, kIQ4_NL, kMXFP4, kQ5_K,
                                 kIQ4_XS, kQ3_K, kQ2_K, kQ4_1, kQ5_0,   kQ5_1};

bool use_avx512 = true;
double seconds_each = 0.3;

void product(const Matrix& w, const Activations& x, TokenSet tokens, float* out, size_t stride,
             Scratch scratch, uint32_t begin = 0, uint32_t end = 32) {
  (use_avx512 ? product_avx512 : product_avx2)(w, begin, end, x, tokens, out, stride, scratch);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Reads every byte once, in 64-byte pieces. Requires: p is aligned to 64 bytes.
[[gnu::noinline]] uint64_t stream(const std::byte* p, size_t n) {
  typedef uint64_t Line __attribute__((vector_size(64), may_alias));
  Line a = {}, b = {}, c = {}, d = {};
  const auto* v = reinterpret_cast<const Line*>(p);
  for (size_t i = 0; i + 4 <= n / 64; i += 4) a |= v[i], b |= v[i + 1], c |= v[i + 2], d |= v[i + 3];
  a |= b | c | d;
  return a[0] | a[1] | a[2] | a[3] | a[4] | a[5] | a[6] | a[7];
}

// The quarter that was disturbed least, of many short pieces: other processes make the rest slower, never
// faster.
double lower_quartile(std::vector<double>& times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 4, times.end());
  return times[times.size() / 4];
}

// Time that this thread ran: what others take of the core does not count. For work in the caches only.
double ran() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Input {
  std::vector<int8_t> q;
  std::vector<float> d;
  std::vector<int16_t> sums;
  Activations x;

  Input(TensorType type, uint32_t tokens, uint32_t cols) {
    const bool super = info(type).block_length == 256;
    q.assign(size_t{tokens} * cols, 3), d.assign(size_t{tokens} * cols / 32, 1.0f),
        sums.assign(size_t{tokens} * cols / 16, 48);
    x = {.kind = super ? ActivationKind::kQ256 : ActivationKind::kQ32,
         .tokens = tokens,
         .cols = cols,
         .q = q.data(),
         .d = d.data(),
         .sums = sums.data()};
  }
};

// More than the caches of the largest servers hold per core.
constexpr size_t kMemory = size_t{512} << 20;

struct Bench {
  std::vector<std::byte> owned, scratch_owned;
  std::byte* memory;  // kMemory bytes, aligned to 64
  std::vector<float> out;
  Scratch scratch;

  Bench() : owned(kMemory + 64), scratch_owned(8 << 20), out(size_t{512} * 4096) {
    const auto aligned = [](std::vector<std::byte>& v) {
      return v.data() + (64 - reinterpret_cast<uintptr_t>(v.data()) % 64) % 64;
    };
    memory = aligned(owned);
    scratch = {aligned(scratch_owned), scratch_owned.size() - 64};
    std::minstd_rand random(1);
    for (size_t i = 0; i < kMemory / 4; ++i) {
      const auto v = static_cast<uint32_t>(random());
      std::memcpy(memory + 4 * i, &v, 4);
    }
  }

  // Expert after expert as a layer would, eight at a time, in turn with a streaming read of eight others.
  void decode(TensorType type, Layout layout) {
    const uint32_t rows = 512, cols = 1024;
    const size_t bytes = rows * row_bytes(type, cols), turns = kMemory / (8 * bytes);
    const Input input(type, 1, cols);
    std::vector<double> products, streams;
    uint64_t sink = 0;
    size_t turn = 0;
    for (const double until = now() + seconds_each; now() < until;) {
      double t = now();
      sink |= stream(memory + turn++ % turns * 8 * bytes, 8 * bytes);
      streams.push_back(now() - t);
      const std::byte* weights = memory + turn++ % turns * 8 * bytes;
      t = now();
      for (size_t i = 0; i < 8; ++i)
        product({type, layout, rows, cols, weights + i * bytes}, input.x, {nullptr, 1}, out.data(), rows,
                scratch);
      products.push_back(now() - t);
    }
    const double best = lower_quartile(products), best_stream = lower_quartile(streams);
    // in cache
    double cached = 1e9;
    for (int i = 0; i < 30; ++i) {
      const double t = ran();
      product({type, layout, rows, cols, memory}, input.x, {nullptr, 1}, out.data(), rows, scratch);
      cached = std::min(cached, ran() - t);
    }
    const double all = static_cast<double>(8 * bytes) / 1e9;
    fmt::print("  decode {:5.1f} GB/s of {:5.1f} ({:3.0f} %)  cached {:5.1f}{}", all / best,
               all / best_stream, 100 * best_stream / best, static_cast<double>(bytes) / 1e9 / cached,
               sink == 1 ? " " : "");
  }

  // In calls of `task` row groups, as threads that share a matrix would make.
  void prefill(TensorType type, Layout layout, uint32_t tokens, uint32_t task = 32) {
    const uint32_t rows = 512, cols = 1024;
    const Input input(type, tokens, cols);
    double best = 1e9;
    const size_t bytes = rows * row_bytes(type, cols), count = std::max<size_t>(1, 256 / tokens);
    for (const double until = now() + seconds_each / 4; now() < until || best == 1e9;) {
      const double t = ran();
      for (size_t i = 0; i < count; ++i)
        for (uint32_t g = 0; g < rows / kGroupRows; g += task)
          product({type, layout, rows, cols, memory + i * bytes}, input.x, {nullptr, tokens}, out.data(),
                  rows, scratch, g, g + task);
      best = std::min(best, (ran() - t) / static_cast<double>(count));
    }
    fmt::print("  {}:{:6.1f}", tokens, 1e-9 * rows * cols * tokens / best);
  }
};

}  // namespace
}  // namespace spillway::cpu

int main(int argc, char** argv) {
  using namespace spillway;
  using namespace spillway::cpu;
  if (argc > 1) use_avx512 = std::string_view(argv[1]) != "avx2";
  if (argc > 2) seconds_each = std::atof(argv[2]);
  Bench bench;
  for (const TensorType type : kTypes) {
    if (argc > 3 && info(type).name != argv[3]) continue;
    for (const Layout layout : {Layout::kInterleaved, Layout::kFile}) {
      fmt::print("{:6} {:11}", info(type).name, layout == Layout::kFile ? "file" : "interleaved");
      bench.decode(type, layout);
      fmt::print("   GMAC/s");
      for (const uint32_t tokens : {2u, 4u, 8u, 12u, 64u, 512u}) bench.prefill(type, layout, tokens);
      fmt::print("  by 4 groups");
      for (const uint32_t tokens : {12u, 64u, 128u}) bench.prefill(type, layout, tokens, 4);
      fmt::print("\n");
    }
  }
}
