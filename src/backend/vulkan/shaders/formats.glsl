// The block formats (numerics/formats.h) in the interleaved layout (numerics/layout.h): unpacked to the
// canonical block, four codes at a time. Compiled with one TYPE_ defined.
//
// `base` is the word at which a record (one block column of 16 rows) begins, `r` the row in its group. A field
// at `offset` of the file's block begins at word base + 4 * offset.
//
//   BLOCK_LENGTH, SUB_LENGTH, BIAS, SEGMENTS, BLOCK_BYTES, MINIMA   as numerics::format_traits
//   block_scale, block_minimum (base, r)          d and dm, flushed
//   codes4(base, r, w)                            values 4w .. 4w+3 plus BIAS, a signed byte each: u, or for
//                                                 the types of bias 128 u - 128, whose BIAS is 0 here
//   sub_scale, sub_minimum (base, r, j)           sc and m of sub-block j

#if defined(TYPE_F32) || defined(TYPE_F16) || defined(TYPE_BF16)
#define FLOAT_TYPE 1
#define SEGMENTS 8
// Value of column c of row r; `stride` rows lie side by side (16, or 1 for a matrix of a single row).
float weight_value(Words p, uint base, uint c, uint stride, uint r) {
  uint at = c * stride + r;
#if defined(TYPE_F32)
  return flush(uintBitsToFloat(p.w[base + at]));
#else
  uint item = (p.w[base + at / 2u] >> (16u * (at & 1u))) & 0xffffu;
#if defined(TYPE_F16)
  return flush(f16_to_f32(item));
#else
  return flush(uintBitsToFloat(item << 16));
#endif
#endif
}
#if defined(TYPE_F32)
#define BLOCK_BYTES 4
#else
#define BLOCK_BYTES 2
#endif

#else

uint word_of(Words p, uint base, uint offset, uint w, uint r) { return p.w[base + 4u * offset + 16u * w + r]; }
uint half_of(Words p, uint base, uint offset, uint r) {
  return (p.w[base + 4u * offset + r / 2u] >> (16u * (r & 1u))) & 0xffffu;
}
uint byte_in(uint word, uint i) { return (word >> (8u * i)) & 0xffu; }
// Byte i of a field of words.
uint byte_of(Words p, uint base, uint offset, uint i, uint r) {
  return byte_in(word_of(p, base, offset, i / 4u, r), i & 3u);
}
float scale_of(Words p, uint base, uint offset, uint r) { return flush(f16_to_f32(half_of(p, base, offset, r))); }
float negated_scale_of(Words p, uint base, uint offset, uint r) {
  return flush(f16_to_f32(half_of(p, base, offset, r) ^ 0x8000u));
}

// Nibbles of the 32-value types: low ones hold values 0..15.
uint nibbles4(Words p, uint base, uint offset, uint w, uint r) {
  return (word_of(p, base, offset, w & 3u, r) >> (4u * (w >> 2))) & 0x0f0f0f0fu;
}
// The fifth bits of values 4w .. 4w+3 out of a word with a bit a value.
uint fifth_bits4(uint bits, uint w) {
  uint four = bits >> (4u * w);
  return ((four & 1u) << 4) | ((four & 2u) << 11) | ((four & 4u) << 18) | ((four & 8u) << 25);
}
// Four nibbles mapped through a table of sixteen bytes.
uint map4(const uint table[4], uint nibbles) {
  uint result = 0u;
  [[unroll]] for (uint k = 0u; k < 4u; ++k) {
    uint n = byte_in(nibbles, k);
    uint low = (n & 4u) != 0u ? table[1] : table[0];
    uint high = (n & 4u) != 0u ? table[3] : table[2];
    result |= byte_in((n & 8u) != 0u ? high : low, n & 3u) << (8u * k);
  }
  return result;
}
// kIq4Values and kMxfp4Values.
const uint kIq4[4] = uint[4](0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
const uint kMxfp4[4] = uint[4](0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu);

#if defined(TYPE_Q4_0) || defined(TYPE_Q4_1) || defined(TYPE_Q5_0) || defined(TYPE_Q5_1) || \
    defined(TYPE_Q8_0) || defined(TYPE_IQ4_NL) || defined(TYPE_MXFP4)
#define BLOCK_LENGTH 32
#define SUB_LENGTH 32
#define SEGMENTS 8
int sub_scale(Words p, uint base, uint r, uint j) { return 1; }
int sub_minimum(Words p, uint base, uint r, uint j) { return 1; }
#else
#define BLOCK_LENGTH 256
#define SEGMENTS 4
#endif

#if defined(TYPE_Q4_0)
#define BIAS 8
#define BLOCK_BYTES 18
#define MINIMA 0
float block_scale(Words p, uint base, uint r) { return scale_of(p, base, 0u, r); }
uint codes4(Words p, uint base, uint r, uint w) { return nibbles4(p, base, 2u, w, r); }

#elif defined(TYPE_Q4_1)
#define BIAS 0
#define BLOCK_BYTES 20
#define MINIMA 1
float block_scale(Words p, uint base, uint r) { return scale_of(p, base, 0u, r); }
float block_minimum(Words p, uint base, uint r) { return scale_of(p, base, 2u, r); }
uint codes4(Words p, uint base, uint r, uint w) { return nibbles4(p, base, 4u, w, r); }

#elif defined(TYPE_Q5_0)
#define BIAS 16
#define BLOCK_BYTES 22
#define MINIMA 0
float block_scale(Words p, uint base, uint r) { return scale_of(p, base, 0u, r); }
uint codes4(Words p, uint base, uint r, uint w) {
  return nibbles4(p, base, 6u, w, r) | fifth_bits4(word_of(p, base, 2u, 0u, r), w);
}

#elif defined(TYPE_Q5_1)
#define BIAS 0
#define BLOCK_BYTES 24
#define MINIMA 1
float block_scale(Words p, uint base, uint r) { return scale_of(p, base, 0u, r); }
float block_minimum(Words p, uint base, uint r) { return scale_of(p, base, 2u, r); }
uint codes4(Words p, uint base, uint r, uint w) {
  return nibbles4(p, base, 8u, w, r) | fifth_bits4(word_of(p, base, 4u, 0u, r), w);
}

#elif defined(TYPE_Q8_0)
#define BIAS 0
#define BLOCK_BYTES 34
#define MINIMA 0
float block_scale(Words p, uint base, uint r) { return scale_of(p, base, 0u, r); }
uint codes4(Words p, uint base, uint r, uint w) { return word_of(p, base, 2u, w, r); }

#elif defined(TYPE_IQ4_NL)
#define BIAS 0
#define BLOCK_BYTES 18
#define MINIMA 0
float block_scale(Words p, uint base, uint r) { return scale_of(p, base, 0u, r); }
uint codes4(Words p, uint base, uint r, uint w) { return map4(kIq4, nibbles4(p, base, 2u, w, r)); }

#elif defined(TYPE_MXFP4)
#define BIAS 0
#define BLOCK_BYTES 17
#define MINIMA 0
float block_scale(Words p, uint base, uint r) {
  return flush(e8m0_half_to_f32(byte_in(p.w[base + r / 4u], r & 3u)));
}
uint codes4(Words p, uint base, uint r, uint w) { return map4(kMxfp4, nibbles4(p, base, 1u, w, r)); }

#elif defined(TYPE_Q2_K)
#define SUB_LENGTH 16
#define BIAS 0
#define BLOCK_BYTES 84
#define MINIMA 1
float block_scale(Words p, uint base, uint r) { return scale_of(p, base, 80u, r); }
float block_minimum(Words p, uint base, uint r) { return negated_scale_of(p, base, 82u, r); }
uint codes4(Words p, uint base, uint r, uint w) {
  return (word_of(p, base, 16u, 8u * (w / 32u) + (w & 7u), r) >> (2u * ((w / 8u) & 3u))) & 0x03030303u;
}
int sub_scale(Words p, uint base, uint r, uint j) { return int(byte_of(p, base, 0u, j, r) & 0xfu); }
int sub_minimum(Words p, uint base, uint r, uint j) { return int(byte_of(p, base, 0u, j, r) >> 4); }

#elif defined(TYPE_Q3_K)
#define SUB_LENGTH 16
#define BIAS 4
#define BLOCK_BYTES 110
#define MINIMA 0
float block_scale(Words p, uint base, uint r) { return scale_of(p, base, 108u, r); }
uint codes4(Words p, uint base, uint r, uint w) {
  uint low = (word_of(p, base, 32u, 8u * (w / 32u) + (w & 7u), r) >> (2u * ((w / 8u) & 3u))) & 0x03030303u;
  uint high = (word_of(p, base, 0u, w & 7u, r) >> (w / 8u)) & 0x01010101u;
  return low | (high << 2);
}
int sub_scale(Words p, uint base, uint r, uint j) {
  uint low = (byte_of(p, base, 96u, j & 7u, r) >> (4u * (j / 8u))) & 0xfu;
  uint high = (byte_of(p, base, 96u, 8u + (j & 3u), r) >> (2u * (j / 4u))) & 3u;
  return int(low | (high << 4)) - 32;
}

#elif defined(TYPE_Q4_K) || defined(TYPE_Q5_K)
#define SUB_LENGTH 32
#define BIAS 0
#define MINIMA 1
float block_scale(Words p, uint base, uint r) { return scale_of(p, base, 0u, r); }
float block_minimum(Words p, uint base, uint r) { return negated_scale_of(p, base, 2u, r); }
int sub_scale(Words p, uint base, uint r, uint j) {
  if (j < 4u) return int(byte_of(p, base, 4u, j, r) & 63u);
  return int((byte_of(p, base, 4u, j + 4u, r) & 0xfu) | ((byte_of(p, base, 4u, j - 4u, r) >> 6) << 4));
}
int sub_minimum(Words p, uint base, uint r, uint j) {
  if (j < 4u) return int(byte_of(p, base, 4u, j + 4u, r) & 63u);
  return int((byte_of(p, base, 4u, j + 4u, r) >> 4) | ((byte_of(p, base, 4u, j, r) >> 6) << 4));
}
#if defined(TYPE_Q4_K)
#define BLOCK_BYTES 144
uint codes4(Words p, uint base, uint r, uint w) {
  return (word_of(p, base, 16u, 8u * (w / 16u) + (w & 7u), r) >> (4u * ((w / 8u) & 1u))) & 0x0f0f0f0fu;
}
#else
#define BLOCK_BYTES 176
uint codes4(Words p, uint base, uint r, uint w) {
  uint low = (word_of(p, base, 48u, 8u * (w / 16u) + (w & 7u), r) >> (4u * ((w / 8u) & 1u))) & 0x0f0f0f0fu;
  uint high = (word_of(p, base, 16u, w & 7u, r) >> (w / 8u)) & 0x01010101u;
  return low | (high << 4);
}
#endif

#elif defined(TYPE_Q6_K)
#define SUB_LENGTH 16
#define BIAS 32
#define BLOCK_BYTES 210
#define MINIMA 0
float block_scale(Words p, uint base, uint r) { return scale_of(p, base, 208u, r); }
uint codes4(Words p, uint base, uint r, uint w) {
  uint h = w / 32u, t = (w / 8u) & 3u, l = w & 7u;
  uint low = (word_of(p, base, 0u, 16u * h + 8u * (t & 1u) + l, r) >> (4u * (t >> 1))) & 0x0f0f0f0fu;
  uint high = (word_of(p, base, 128u, 8u * h + l, r) >> (2u * t)) & 0x03030303u;
  return low | (high << 4);
}
int sub_scale(Words p, uint base, uint r, uint j) {
  return bitfieldExtract(int(byte_of(p, base, 192u, j, r)), 0, 8);
}

#elif defined(TYPE_IQ4_XS)
#define SUB_LENGTH 32
#define BIAS 0
#define BLOCK_BYTES 136
#define MINIMA 0
float block_scale(Words p, uint base, uint r) { return scale_of(p, base, 0u, r); }
uint codes4(Words p, uint base, uint r, uint w) {
  uint nibbles = (word_of(p, base, 8u, 4u * (w / 8u) + (w & 3u), r) >> (4u * ((w / 4u) & 1u))) & 0x0f0f0f0fu;
  return map4(kIq4, nibbles);
}
int sub_scale(Words p, uint base, uint r, uint j) {
  uint low = (byte_of(p, base, 4u, j / 2u, r) >> (4u * (j & 1u))) & 0xfu;
  uint high = (half_of(p, base, 2u, r) >> (2u * j)) & 3u;
  return int(low | (high << 4)) - 32;
}
#endif

#define SUB_BLOCKS (BLOCK_LENGTH / SUB_LENGTH)
#endif

#define RECORD_WORDS (4u * BLOCK_BYTES)
