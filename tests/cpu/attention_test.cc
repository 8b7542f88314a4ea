// Attention and the KV store of each instruction set, bit for bit against the scalar table.
#include <algorithm>

#include "same_bits.h"

namespace spillway::cpu {
namespace {

using Attention = VectorKernels;

// A cache of one layer, pages apart from one another.
struct Cache {
  KvView view;
  std::vector<std::vector<std::byte>> key_pages, value_pages;
  std::vector<void*> key_pointers, value_pointers;

  Cache(backend::KvTypes types, uint32_t kv_heads, uint32_t key_length, uint32_t value_length,
        uint32_t positions) {
    const size_t per_head = size_t{kPagePositions} * kv_heads;
    for (uint32_t p = 0; p * kPagePositions < positions; ++p) {
      // What a page holds past the last position may be anything; ones are a NaN.
      key_pages.emplace_back(per_head * backend::kv_value_bytes(types.key) * key_length, std::byte{0xff});
      value_pages.emplace_back(per_head * backend::kv_value_bytes(types.value) * value_length,
                               std::byte{0xff});
    }
    for (auto& page : key_pages) key_pointers.push_back(page.data());
    for (auto& page : value_pages) value_pointers.push_back(page.data());
    view = {types, kv_heads, key_length, value_length, key_pointers.data(), value_pointers.data()};
  }
};

constexpr backend::KvTypes kAllF16{KvType::kF16, KvType::kF16};
constexpr backend::KvTypes kAllTypes[] = {
    kAllF16, {KvType::kF32, KvType::kF32}, {KvType::kF16, KvType::kF32}, {KvType::kF32, KvType::kF16}};

float stored(KvType type, const std::vector<std::byte>& page, size_t i) {
  if (type == KvType::kF32) return reinterpret_cast<const float*>(page.data())[i];
  return numerics::f16_to_f32(reinterpret_cast<const uint16_t*>(page.data())[i]);
}

void compare_pages(const Cache& a, const Cache& b) {
  for (size_t p = 0; p < a.key_pages.size(); ++p) {
    const auto [key, value] = a.view.types;
    for (size_t i = 0; i < a.key_pages[p].size() / backend::kv_value_bytes(key); ++i)
      ASSERT_TRUE(same(stored(key, a.key_pages[p], i), stored(key, b.key_pages[p], i)))
          << "key " << i << " of page " << p;
    for (size_t i = 0; i < a.value_pages[p].size() / backend::kv_value_bytes(value); ++i)
      ASSERT_TRUE(same(stored(value, a.value_pages[p], i), stored(value, b.value_pages[p], i)))
          << "value " << i << " of page " << p;
  }
}

TEST_P(Attention, store_kv) {
  Values values(11);
  for (const backend::KvTypes& types : kAllTypes)
    for (const auto& [key, value] :
         std::vector<std::pair<uint32_t, uint32_t>>{{64, 64}, {80, 48}, {5, 19}, {192, 128}})
      for (const Kind kind : kAllKinds) {
        Cache expected(types, 3, key, value, 70), actual(types, 3, key, value, 70);
        for (const uint32_t position : {0u, 1u, 15u, 16u, 17u, 31u, 32u, 47u, 69u}) {
          const auto k = values.some(size_t{3} * key, kind), v = values.some(size_t{3} * value, kind);
          scalar.store_kv(expected.view, position, k.data(), v.data());
          fast.store_kv(actual.view, position, k.data(), v.data());
        }
        compare_pages(expected, actual);
      }
}

// Every half rounds as numerics/ says: all neighbours of all halves and the points between them.
TEST_P(Attention, store_kv_rounds_to_half) {
  Cache expected(kAllF16, 1, 16, 4096, 1), actual(kAllF16, 1, 16, 4096, 1);
  const std::vector<float> key(16);
  std::vector<float> value(4096);
  for (uint32_t half = 0; half < 0x10000; half += 1024) {
    for (uint32_t i = 0; i < 1024; ++i) {
      const float x = numerics::f16_to_f32(static_cast<uint16_t>(half + i));
      const uint32_t step = half % 0x8000u >= 0x400u ? 0x1000u : 0;  // half a unit, for normal halves
      value[4 * i] = x;
      value[4 * i + 1] = numerics::float_of(numerics::bits_of(x) + step);
      value[4 * i + 2] = numerics::float_of(numerics::bits_of(x) + step + 1);
      value[4 * i + 3] = x + (half % 0x8000u < 0x400u ? 0x1p-25f : 0.0f);
    }
    scalar.store_kv(expected.view, 0, key.data(), value.data());
    fast.store_kv(actual.view, 0, key.data(), value.data());
    compare_pages(expected, actual);
  }
}

void fill(const Kernels& k, Cache& cache, uint32_t positions, Kind kind, Values& values) {
  for (uint32_t p = 0; p < positions; ++p)
    k.store_kv(cache.view, p, values.some(size_t{cache.view.kv_heads} * cache.view.key_length, kind).data(),
               values.some(size_t{cache.view.kv_heads} * cache.view.value_length, kind).data());
}

struct Range {
  uint32_t first, end;
};

void compare_attention(const Kernels& scalar, const Kernels& fast, const Cache& cache,
                       const std::vector<Range>& ranges, Kind kind, const float* sink, Values& values) {
  const uint32_t key_length = cache.view.key_length, value_length = cache.view.value_length;
  const auto q = values.some(ranges.size() * key_length, kind);
  const size_t stride = value_length + 5;
  const auto run = [&](const Kernels& k) {
    std::vector<float> out(ranges.size() * stride, 777.0f);
    std::vector<AttentionQuery> queries;
    for (size_t i = 0; i < ranges.size(); ++i)
      queries.push_back({q.data() + i * key_length, out.data() + i * stride, ranges[i].first, ranges[i].end});
    const size_t bytes = (k.scratch_bytes(16, std::max(key_length, value_length)) + 63) / 64 * 64;
    auto* scratch = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
    k.attention(cache.view, 1, queries, {0.125f, sink}, {scratch, bytes});
    std::free(scratch);
    return out;
  };
  ASSERT_TRUE(same_bits(run(scalar), run(fast)));
}

TEST_P(Attention, equals_scalar) {
  Values values(12);
  const float sink = 0.75f;
  for (const backend::KvTypes& types : kAllTypes)
    for (const auto& [key, value] : std::vector<std::pair<uint32_t, uint32_t>>{
             {64, 64}, {80, 64}, {128, 128}, {192, 128}, {256, 256}, {128, 80}, {64, 256}, {7, 21}})
      for (const uint32_t keys : {1u, 15u, 16u, 17u, 127u, 128u, 129u, 300u}) {
        const Kind kind = kAllKinds[values.below(2)];
        SCOPED_TRACE(fmt::format("{} {} key {} value {} keys {} kind {}", backend::kv_type_name(types.key),
                                 backend::kv_type_name(types.value), key, value, keys, int(kind)));
        Cache cache(types, 2, key, value, keys);
        fill(scalar, cache, keys, kind, values);
        compare_attention(scalar, fast, cache, {{0, keys}}, kind, nullptr, values);
        compare_attention(scalar, fast, cache, {{0, keys}}, kind, &sink, values);
        compare_attention(scalar, fast, cache, {{keys / 2, keys}, {keys - 1, keys}}, kind, nullptr, values);
        std::vector<Range> mixed;
        for (uint32_t i = 0; i < 11; ++i) {
          const uint32_t end = values.below(keys + 1);
          mixed.push_back({values.below(end + 1), end});  // some of them empty
        }
        compare_attention(scalar, fast, cache, mixed, kind, values.below(2) ? &sink : nullptr, values);
      }
}

// A prompt: one query a token, each seeing what came before, with and without a window.
TEST_P(Attention, prompt) {
  Values values(13);
  for (const backend::KvTypes& types : kAllTypes) {
    Cache cache(types, 2, 32, 32, 270);
    fill(scalar, cache, 270, Kind::kOrdinary, values);
    for (const uint32_t window : {1000u, 40u, 128u}) {
      std::vector<Range> ranges;
      for (uint32_t t = 0; t < 270; ++t) ranges.push_back({t + 1 > window ? t + 1 - window : 0, t + 1});
      compare_attention(scalar, fast, cache, ranges, Kind::kOrdinary, nullptr, values);
    }
  }
}

// Infinities and NaNs in keys and values must reach exactly the queries that see them.
TEST_P(Attention, wild_values) {
  Values values(14);
  for (int round = 0; round < 60; ++round) {
    const uint32_t keys = 1 + values.below(300);
    Cache cache(kAllTypes[round % 4], 2, 16, 24, keys);
    fill(scalar, cache, keys, Kind::kOrdinary, values);
    for (int bad = 0; bad < 3; ++bad) {
      auto k = values.some(32, Kind::kOrdinary), v = values.some(48, Kind::kOrdinary);
      (values.below(2) ? k[values.below(32)] : v[values.below(48)]) = values.one(Kind::kWild);
      v[values.below(48)] = std::numeric_limits<float>::infinity();
      scalar.store_kv(cache.view, values.below(keys), k.data(), v.data());
    }
    std::vector<Range> ranges;
    for (uint32_t i = 0; i < 9; ++i) {
      const uint32_t end = 1 + values.below(keys);
      ranges.push_back({values.below(2) ? 0 : values.below(end), end});
    }
    const float sink = values.one(Kind::kWild);
    compare_attention(scalar, fast, cache, ranges, Kind::kOrdinary, values.below(2) ? &sink : nullptr,
                      values);
    compare_attention(scalar, fast, cache, ranges, Kind::kWide, nullptr, values);
  }
}

SW_FOR_VECTOR_SETS(Attention);

}  // namespace
}  // namespace spillway::cpu
