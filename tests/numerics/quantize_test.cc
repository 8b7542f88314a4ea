#include "numerics/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "all_types.h"
#include "numerics/formats.h"
#include "numerics/pack.h"

namespace spillway::numerics {
namespace {

std::vector<float> gaussian(size_t n) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

double relative_rms_error(TensorType type, const std::vector<float>& x) {
  std::vector<std::byte> bytes(row_bytes(type, x.size()));
  std::vector<float> y(x.size());
  quantize_weights(type, x.data(), x.size(), bytes.data());
  dequantize_row(type, bytes.data(), y.size(), y.data());
  double error = 0, power = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
    power += double{x[i]} * x[i];
  }
  return std::sqrt(error / power);
}

// Relative error on 65,536 Gaussian values of the peer (llama.cpp's ggml_quantize_chunk without importance
// data, ggml 0.25.1) for the same input, and ours may be 1 % above it.
TEST(Quantize, GaussianErrorNextToThePeers) {
  const std::vector<std::pair<TensorType, double>> peer = {
      {TensorType::kF16, 0.00021},    {TensorType::kBF16, 0.00165},   {TensorType::kQ4_0, 0.08682},
      {TensorType::kQ4_1, 0.07847},   {TensorType::kQ5_0, 0.04301},   {TensorType::kQ5_1, 0.03801},
      {TensorType::kQ8_0, 0.00539},   {TensorType::kQ2_K, 0.29718},   {TensorType::kQ3_K, 0.15161},
      {TensorType::kQ4_K, 0.07170},   {TensorType::kQ5_K, 0.03637},   {TensorType::kQ6_K, 0.01785},
      {TensorType::kIQ4_NL, 0.07634}, {TensorType::kIQ4_XS, 0.07692}, {TensorType::kMXFP4, 0.11475},
  };
  const std::vector<float> x = gaussian(65536);
  EXPECT_EQ(relative_rms_error(TensorType::kF32, x), 0.0);
  for (const auto& [type, error] : peer)
    EXPECT_LT(relative_rms_error(type, x), error * 1.01) << info(type).name;
}

TEST(Quantize, EdgeBlocks) {
  for (const TensorType type : kAllTypes) {
    for (const float fill : {0.0f, 1.0f, -1.0f, 1e-30f, 60000.0f}) {
      std::vector<float> x(256, fill), y(256);
      std::vector<std::byte> bytes(row_bytes(type, 256));
      quantize_weights(type, x.data(), 256, bytes.data());
      dequantize_row(type, bytes.data(), 256, y.data());
      for (const float v : y)
        ASSERT_NEAR(v, fill, 0.2 * std::abs(fill) + 1e-7) << info(type).name << " " << fill;
    }
  }
}

uint16_t half_at(const std::vector<std::byte>& raw, size_t at) {
  uint16_t bits;
  std::memcpy(&bits, &raw[at], 2);
  return bits;
}

// Random bytes, unpacked and packed again. The canonical form is turned back to stored codes and scales by
// hand here.
TEST(Pack, InvertsUnpack) {
  struct Place {
    TensorType type;
    int d, dm;  // byte offsets of the scale and of dmin or m, -1 for none
  };
  const Place places[] = {
      {TensorType::kQ4_0, 0, -1},   {TensorType::kQ4_1, 0, 2},    {TensorType::kQ5_0, 0, -1},
      {TensorType::kQ5_1, 0, 2},    {TensorType::kQ8_0, 0, -1},   {TensorType::kQ2_K, 80, 82},
      {TensorType::kQ3_K, 108, -1}, {TensorType::kQ4_K, 0, 2},    {TensorType::kQ5_K, 0, 2},
      {TensorType::kQ6_K, 208, -1}, {TensorType::kIQ4_NL, 0, -1}, {TensorType::kIQ4_XS, 0, -1}};
  std::mt19937 random(8);
  for (const Place& place : places) {
    for (int round = 0; round < 50; ++round) {
      std::vector<std::byte> raw(info(place.type).block_bytes), again(raw.size());
      for (std::byte& b : raw) b = static_cast<std::byte>(random());
      CanonicalBlock block;
      unpack_block(place.type, raw.data(), block);
      StoredBlock stored;
      stored.code = block.u;
      if (place.type == TensorType::kIQ4_NL || place.type == TensorType::kIQ4_XS)
        for (uint32_t i = 0; i < info(place.type).block_length; ++i)
          stored.code[i] = static_cast<uint8_t>(
              std::find(kIq4Values.begin(), kIq4Values.end(), block.u[i] - 128) - kIq4Values.begin());
      stored.sc = block.sc;
      stored.m = block.m;
      stored.d = half_at(raw, static_cast<size_t>(place.d));
      if (place.dm >= 0) stored.dm = half_at(raw, static_cast<size_t>(place.dm));
      pack_block(place.type, stored, again.data());
      ASSERT_EQ(again, raw) << info(place.type).name;
    }
  }
}

}  // namespace
}  // namespace spillway::numerics
