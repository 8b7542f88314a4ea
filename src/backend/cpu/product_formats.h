// The quantized formats as the product kernels see them: how a lane's registers get the canonical values of
// docs/numerics.md out of an interleaved record, written once for every vector type V.
//
// A format has
//
//   kType, kLength, kBytes   of its block
//   kPieces, kItem, ...      how a block of the file is covered (product_rows.h)
//   kBias, kMaxU, kMinima    a value is u - kBias, with u <= kMaxU
//   quad<kI>(at, c)          values 4*kI .. 4*kI+3 of chunk c: their u as the bytes of each lane
//
// and with 32 values a block
//
//   scale(at), minimum(at)   d and dm
//
// or with 256
//
//   kSub, kChunks            values per scale; the code is unrolled for 256 / kChunks values
//   scales(at, s)            d, dm, the scales as V::fold wants them, and the pair words that meet the
//                            activations' sums: minima, or scales times bias
//
// Bounds, in magnitude. An inner sum of 32 values: 32 * 255 * 127 < 2^20. A block's sum with scales:
// 256 * 127 * max u * max |sc|, at most 2^28.0 (Q6_K: 63 * 128; IQ4_XS: 241 * 32). Its bias term:
// 256 * 127 * bias * max |sc|, at most 2^27.0 (both). So nothing passes 2^29 on the way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/unroll.h"
#include "base/tensor_type.h"
#include "numerics/layout.h"

namespace spillway::cpu {
namespace {

// An interleaved record as the lanes of one vector see it: half-width vectors begin in the middle of each row
// of items. `shift` moves the 4-byte words behind the items: 0 in our own memory.
struct RecordAt {
  const uint8_t* words;   // + 16 * offset + 64 * w: word w of the field at `offset`
  const uint8_t* halves;  // + 16 * offset: 2-byte items
  const uint8_t* bytes;   // + 16 * offset: 1-byte items

  SW_INLINE RecordAt(const uint8_t* record, size_t shift, int first_lane)
      : words(record + shift + first_lane * 4), halves(record + first_lane * 2), bytes(record + first_lane) {}
};

alignas(16) inline constexpr uint8_t kIq4Unsigned[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                         129, 141, 153, 166, 181, 197, 217, 241};
alignas(16) inline constexpr uint8_t kMxfp4Unsigned[16] = {128, 129, 130, 131, 132, 134, 136, 140,
                                                           128, 127, 126, 125, 124, 122, 120, 116};

template <class V>
SW_INLINE typename V::Int word(const RecordAt& at, int offset, int w) {
  return V::load(at.words + 16 * offset + 64 * w);
}

template <class V>
SW_INLINE typename V::Int low_nibbles(typename V::Int x) {
  return V::bit_and(x, V::splat(0x0f0f0f0f));
}
template <class V>
SW_INLINE typename V::Int high_nibbles(typename V::Int x) {
  return V::bit_and(V::template shr<4>(x), V::splat(0x0f0f0f0f));
}

// Quad kI of 32 values whose low nibbles come first: the order of the `_0/_1` types.
template <class V, int kI>
SW_INLINE typename V::Int nibble_quad(const RecordAt& at, int offset) {
  return kI < 4 ? low_nibbles<V>(word<V>(at, offset, kI)) : high_nibbles<V>(word<V>(at, offset, kI - 4));
}

// Bits 4*kI .. 4*kI+3 of the word at `offset` to bit 4 of the four bytes: 0x02040810 moves bit k to 8k + 4.
template <class V, int kI>
SW_INLINE typename V::Int fifth_bits(const RecordAt& at, int offset) {
  const auto four = V::bit_and(V::template shr<4 * kI>(word<V>(at, offset, 0)), V::splat(0xf));
  return V::bit_and(V::mul(four, V::splat(0x02040810)), V::splat(0x10101010));
}

// ---- 32 values a block ----

template <class V, TensorType kT, int kBlockBytes, int kB, int kU, bool kM>
struct Simple {
  using Int = typename V::Int;
  using Float = typename V::Float;
  static constexpr TensorType kType = kT;
  static constexpr int kLength = 32, kBytes = kBlockBytes, kBias = kB, kMaxU = kU, kSub = 32, kChunks = 1;
  static constexpr bool kMinima = kM;
  static SW_INLINE Float scale(const RecordAt& at) { return V::load_f16(at.halves); }
  static SW_INLINE Float minimum(const RecordAt& at) { return V::load_f16(at.halves + 16 * 2); }
};

template <class V>
struct Q4_0 : Simple<V, TensorType::kQ4_0, 18, 8, 15, false> {
  static constexpr int kPieces[1] = {2};
  static constexpr int kItemAt = 0, kItem = 2, kHalvesAt = -1;
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int) {
    return nibble_quad<V, kI>(at, numerics::layout::q4_0::kQs);
  }
};

template <class V>
struct Q4_1 : Simple<V, TensorType::kQ4_1, 20, 0, 15, true> {
  static constexpr int kPieces[2] = {0, 4};
  static constexpr int kItemAt = 0, kItem = 0, kHalvesAt = 0;
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int) {
    return nibble_quad<V, kI>(at, numerics::layout::q4_1::kQs);
  }
};

template <class V>
struct Q5_0 : Simple<V, TensorType::kQ5_0, 22, 16, 31, false> {
  static constexpr int kPieces[2] = {2, 6};
  static constexpr int kItemAt = 0, kItem = 2, kHalvesAt = -1;
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int) {
    return V::bit_or(nibble_quad<V, kI>(at, numerics::layout::q5_0::kQs),
                     fifth_bits<V, kI>(at, numerics::layout::q5_0::kQh));
  }
};

template <class V>
struct Q5_1 : Simple<V, TensorType::kQ5_1, 24, 0, 31, true> {
  static constexpr int kPieces[2] = {0, 8};
  static constexpr int kItemAt = 0, kItem = 0, kHalvesAt = 0;
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int) {
    return V::bit_or(nibble_quad<V, kI>(at, numerics::layout::q5_1::kQs),
                     fifth_bits<V, kI>(at, numerics::layout::q5_1::kQh));
  }
};

template <class V>
struct Q8_0 : Simple<V, TensorType::kQ8_0, 34, 128, 255, false> {
  static constexpr int kPieces[2] = {2, 18};
  static constexpr int kItemAt = 0, kItem = 2, kHalvesAt = -1;
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int) {
    return V::bit_xor(word<V>(at, numerics::layout::q8_0::kQs, kI), V::splat(static_cast<int>(0x80808080u)));
  }
};

template <class V>
struct IQ4_NL : Simple<V, TensorType::kIQ4_NL, 18, 128, 255, false> {
  static constexpr int kPieces[1] = {2};
  static constexpr int kItemAt = 0, kItem = 2, kHalvesAt = -1;
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int) {
    return V::lookup(kIq4Unsigned, nibble_quad<V, kI>(at, numerics::layout::iq4_nl::kQs));
  }
};

template <class V>
struct MXFP4 : Simple<V, TensorType::kMXFP4, 17, 128, 255, false> {
  static constexpr int kPieces[1] = {1};
  static constexpr int kItemAt = 0, kItem = 1, kHalvesAt = -1;
  // 2^(e-128), flushed below 2^-40.
  static SW_INLINE typename V::Float scale(const RecordAt& at) {
    const auto e = V::load_u8(at.bytes);
    return V::as_float(V::select_zero_below(e, 88, V::template shl<23>(V::add(e, V::splat(-1)))));
  }
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int) {
    return V::lookup(kMxfp4Unsigned, nibble_quad<V, kI>(at, numerics::layout::mxfp4::kQs));
  }
};

// ---- 256 values a block ----

template <class V, int kSub>
struct Scales {
  typename V::Float d, dm;
  typename V::Int sc[256 / kSub];         // V::scale_*: as V::fold wants them
  typename V::Int pairs[256 / kSub / 2];  // word 0 for sub-block 2i, word 1 for 2i + 1
};

template <class V, TensorType kT, int kBlockBytes, int kSubLength, int kB, int kU, bool kM, int kC>
struct Super {
  using Int = typename V::Int;
  static constexpr TensorType kType = kT;
  static constexpr int kLength = 256, kBytes = kBlockBytes, kBias = kB, kMaxU = kU, kSub = kSubLength,
                       kChunks = kC;
  static constexpr bool kMinima = kM;

  static SW_INLINE typename V::Float negative_f16(const uint8_t* p) { return V::negate(V::load_f16(p)); }
};

// Scales kFirst .. kFirst+3 and their pair words, from the four unsigned bytes of `sc` and of `m`.
template <class V, int kFirst, class S>
SW_INLINE void four_unsigned(typename V::Int sc, typename V::Int m, S& s) {
  unroll<4>([&](auto k) SW_FLAT { s.sc[kFirst + k] = V::template scale_u8<k>(sc); });
  s.pairs[kFirst / 2] = V::template shuffle_dword<0x80018000u>(m);
  s.pairs[kFirst / 2 + 1] = V::template shuffle_dword<0x80038002u>(m);
}

// The same from signed bytes; a pair word is scale * 2^kLogBias: the byte goes to the high half of its word
// and back.
template <class V, int kFirst, int kLogBias, class S>
SW_INLINE void four_signed(typename V::Int sc, S& s) {
  unroll<4>([&](auto k) SW_FLAT { s.sc[kFirst + k] = V::template scale_s8<k>(sc); });
  s.pairs[kFirst / 2] = V::template sar16<8 - kLogBias>(V::template shuffle_dword<0x01800080u>(sc));
  s.pairs[kFirst / 2 + 1] = V::template sar16<8 - kLogBias>(V::template shuffle_dword<0x03800280u>(sc));
}

// The 6-bit scales and minima of Q4_K and Q5_K.
template <class V, class S>
SW_INLINE void scales_and_minima(const RecordAt& at, int offset, S& s) {
  const auto a = word<V>(at, offset, 0), b = word<V>(at, offset, 1), c = word<V>(at, offset, 2);
  const auto six = V::splat(0x3f3f3f3f), high = V::splat(0x30303030);
  four_unsigned<V, 0>(V::bit_and(a, six), V::bit_and(b, six), s);
  four_unsigned<V, 4>(V::and_or(V::template shr<2>(a), high, low_nibbles<V>(c)),
                      V::and_or(V::template shr<2>(b), high, high_nibbles<V>(c)), s);
}

template <class V>
struct Q4_K : Super<V, TensorType::kQ4_K, 144, 32, 0, 15, true, 4> {
  static constexpr int kPieces[9] = {0, 16, 32, 48, 64, 80, 96, 112, 128};
  static constexpr int kItemAt = 0, kItem = 0, kHalvesAt = 0;
  static SW_INLINE void scales(const RecordAt& at, Scales<V, 32>& s) {
    namespace o = numerics::layout::q4_k;
    s.d = V::load_f16(at.halves + 16 * o::kD);
    s.dm = V::negate(V::load_f16(at.halves + 16 * o::kDmin));
    scales_and_minima<V>(at, o::kScales, s);
  }
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int c) {
    const auto x = word<V>(at, numerics::layout::q4_k::kQs, 8 * c + kI % 8);
    return kI < 8 ? low_nibbles<V>(x) : high_nibbles<V>(x);
  }
};

template <class V>
struct Q5_K : Super<V, TensorType::kQ5_K, 176, 32, 0, 31, true, 4> {
  static constexpr int kPieces[11] = {0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160};
  static constexpr int kItemAt = 0, kItem = 0, kHalvesAt = 0;
  static SW_INLINE void scales(const RecordAt& at, Scales<V, 32>& s) {
    namespace o = numerics::layout::q5_k;
    s.d = V::load_f16(at.halves + 16 * o::kD);
    s.dm = V::negate(V::load_f16(at.halves + 16 * o::kDmin));
    scales_and_minima<V>(at, o::kScales, s);
  }
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int c) {
    namespace o = numerics::layout::q5_k;
    const auto x = word<V>(at, o::kQs, 8 * c + kI % 8);
    const auto h = V::shr(word<V>(at, o::kQh, kI % 8), 2 * c);  // bits 0 and 1: the fifth bits of both halves
    const auto fifth = V::splat(0x10101010);
    return kI < 8 ? V::and_or(V::template shl<4>(h), fifth, low_nibbles<V>(x))
                  : V::and_or(V::template shl<3>(h), fifth, high_nibbles<V>(x));
  }
};

template <class V>
struct Q2_K : Super<V, TensorType::kQ2_K, 84, 16, 0, 3, true, 2> {
  static constexpr int kPieces[6] = {0, 16, 32, 48, 64, 68};
  static constexpr int kItemAt = 0, kItem = 0, kHalvesAt = 80;
  static SW_INLINE void scales(const RecordAt& at, Scales<V, 16>& s) {
    namespace o = numerics::layout::q2_k;
    s.d = V::load_f16(at.halves + 16 * o::kD);
    s.dm = V::negate(V::load_f16(at.halves + 16 * o::kDmin));
    unroll<4>([&](auto g) SW_FLAT {
      const auto x = word<V>(at, o::kScales, g);
      four_unsigned<V, 4 * g>(low_nibbles<V>(x), high_nibbles<V>(x), s);
    });
  }
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int c) {
    const auto x = word<V>(at, numerics::layout::q2_k::kQs, 8 * c + kI % 8);
    return V::bit_and(V::template shr<kI / 8 * 2>(x), V::splat(0x03030303));
  }
};

template <class V>
struct Q3_K : Super<V, TensorType::kQ3_K, 110, 16, 4, 7, false, 2> {
  static constexpr int kPieces[7] = {0, 16, 32, 48, 64, 80, 92};
  static constexpr int kItemAt = 108, kItem = 2, kHalvesAt = -1;
  static SW_INLINE void scales(const RecordAt& at, Scales<V, 16>& s) {
    namespace o = numerics::layout::q3_k;
    s.d = V::load_f16(at.halves + 16 * o::kD);
    const typename V::Int low[2] = {word<V>(at, o::kScales, 0), word<V>(at, o::kScales, 1)};
    const auto high = word<V>(at, o::kScales, 2);
    const auto top = V::splat(0x30303030), middle = V::splat(0x20202020);
    unroll<4>([&](auto g) SW_FLAT {  // bits 2g, 2g+1 of `high` to bits 4, 5
      constexpr int kG = g;
      typename V::Int h;
      if constexpr (kG < 2)
        h = V::template shl<4 - 2 * kG>(high);
      else
        h = V::template shr<2 * kG - 4>(high);
      const auto l = kG < 2 ? low_nibbles<V>(low[kG % 2]) : high_nibbles<V>(low[kG % 2]);
      four_signed<V, 4 * kG, 2>(V::sub8(V::and_or(h, top, l), middle), s);
    });
  }
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int c) {
    namespace o = numerics::layout::q3_k;
    constexpr int kT = kI / 8;
    const auto x = word<V>(at, o::kQs, 8 * c + kI % 8);
    const auto h = V::shr(word<V>(at, o::kHmask, kI % 8), 4 * c);  // bit kT: the third bit
    typename V::Int third;
    if constexpr (kT < 3)
      third = V::template shl<2 - kT>(h);
    else
      third = V::template shr<1>(h);
    return V::and_or(third, V::splat(0x04040404),
                     V::bit_and(V::template shr<2 * kT>(x), V::splat(0x03030303)));
  }
};

template <class V>
struct Q6_K : Super<V, TensorType::kQ6_K, 210, 16, 32, 63, false, 2> {
  static constexpr int kPieces[13] = {0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192};
  static constexpr int kItemAt = 208, kItem = 2, kHalvesAt = -1;
  static SW_INLINE void scales(const RecordAt& at, Scales<V, 16>& s) {
    namespace o = numerics::layout::q6_k;
    s.d = V::load_f16(at.halves + 16 * o::kD);
    unroll<4>([&](auto g) SW_FLAT { four_signed<V, 4 * g, 5>(word<V>(at, o::kScales, g), s); });
  }
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int c) {
    namespace o = numerics::layout::q6_k;
    constexpr int kT = kI / 8;  // 32 values: bits 2t of qh; nibbles of the first or second 32 bytes of ql
    const auto x = word<V>(at, o::kQl, 16 * c + 8 * (kT % 2) + kI % 8);
    const auto h = word<V>(at, o::kQh, 8 * c + kI % 8);
    typename V::Int high;
    if constexpr (kT < 3)
      high = V::template shl<4 - 2 * kT>(h);
    else
      high = V::template shr<2>(h);
    return V::and_or(high, V::splat(0x30303030), kT < 2 ? low_nibbles<V>(x) : high_nibbles<V>(x));
  }
};

template <class V>
struct IQ4_XS : Super<V, TensorType::kIQ4_XS, 136, 32, 128, 255, false, 4> {
  static constexpr int kPieces[9] = {0, 16, 32, 48, 64, 80, 96, 112, 120};
  static constexpr int kItemAt = 0, kItem = 0, kHalvesAt = 0;
  static SW_INLINE void scales(const RecordAt& at, Scales<V, 32>& s) {
    namespace o = numerics::layout::iq4_xs;
    s.d = V::load_f16(at.halves + 16 * o::kD);
    const auto low = word<V>(at, o::kScalesL, 0);
    auto h = V::load_u16(at.halves + 16 * o::kScalesH);  // nibble i to byte i
    h = V::bit_and(V::bit_or(h, V::template shl<8>(h)), V::splat(0x00ff00ff));
    h = V::bit_and(V::bit_or(h, V::template shl<4>(h)), V::splat(0x0f0f0f0f));
    const auto top = V::splat(0x30303030), middle = V::splat(0x20202020);
    const auto even = V::sub8(V::and_or(V::template shl<4>(h), top, low_nibbles<V>(low)), middle);
    const auto odd = V::sub8(V::and_or(V::template shl<2>(h), top, high_nibbles<V>(low)), middle);
    unroll<4>([&](auto k) SW_FLAT {
      constexpr int kK = k;
      s.sc[2 * kK] = V::template scale_s8<kK>(even);
      s.sc[2 * kK + 1] = V::template scale_s8<kK>(odd);
      s.pairs[kK] = V::template sar16<1>(V::bit_or(V::template shuffle_dword<0x80800080u + (kK << 8)>(even),
                                                   V::template shuffle_dword<0x00808080u + (kK << 24)>(odd)));
    });
  }
  template <int kI>
  static SW_INLINE typename V::Int quad(const RecordAt& at, int c) {
    const auto x = word<V>(at, numerics::layout::iq4_xs::kQs, 8 * c + kI / 8 * 4 + kI % 4);
    return V::lookup(kIq4Unsigned, kI % 8 < 4 ? low_nibbles<V>(x) : high_nibbles<V>(x));
  }
};

}  // namespace
}  // namespace spillway::cpu
