// What the tests of the Vulkan backend share: a device under the validation layer, random weights and
// activations that hurt, and the comparison.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/vulkan/vulkan_device.h"
#include "numerics/formats.h"
#include "numerics/layout.h"

namespace spillway::vulkan {

using namespace backend;

// Messages of the validation layer that are no fault of ours, each with its reason. A message that contains
// `text` is let through.
struct AllowedMessage {
  const char* text;
  const char* reason;
};
extern const std::vector<AllowedMessage> kAllowedMessages;

// Opens the first device, or that of the number in SPILLWAY_TEST_VULKAN; its messages become failures of the
// test. Null (with the reason told to gtest) where there is no device.
class Rig : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A device that is ready for the spec; ends the test where it isn't.
  Device& ready(const DeviceSpec& spec, VulkanOptions::Link link = VulkanOptions::Link::kAuto);
  std::unique_ptr<Device> open(VulkanOptions::Link link = VulkanOptions::Link::kAuto);

  VulkanOptions::IntegerDot integer_dot_ = VulkanOptions::IntegerDot::kAuto;
  std::unique_ptr<Device> device_;
  std::vector<std::string> messages;
};

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  uint32_t bits() { return static_cast<uint32_t>(random_()); }

  enum class Kind {
    kOrdinary,  // normally distributed, some zeros
    kWide,      // exponents from 2^-60 to 2^60, zeros, denormals
    kWild,      // any bits, infinities and NaNs
  };
  float value(Kind kind);
  std::vector<float> values(size_t n, Kind kind = Kind::kOrdinary);

 private:
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
};

// A matrix in both layouts.
struct TestMatrix {
  TensorType type;
  uint32_t rows, cols;
  std::vector<std::byte> file, interleaved;
  Matrix in_file() const { return {type, Layout::kFile, rows, cols, file.data()}; }
  Matrix in_groups() const { return {type, Layout::kInterleaved, rows, cols, interleaved.data()}; }
  WeightShape shape() const { return {type, rows, cols, true}; }
};
enum class Scales {
  kFinite,
  kAny,  // infinite and NaN scales too
};
TestMatrix random_matrix(Random& random, TensorType type, uint32_t rows, uint32_t cols,
                         Scales scales = Scales::kFinite);
TestMatrix vector_of(const std::vector<float>& values);

// Products of the scalar kernels: (tokens, w.rows), each token of x (tokens, x_stride).
std::vector<float> reference_product(const TestMatrix& w, const std::vector<float>& x, uint32_t tokens,
                                     size_t x_stride, const float* bias = nullptr);

testing::AssertionResult same_bits(std::span<const float> expected, std::span<const float> actual);

// A step of one piece at these positions; the pages are 0, 1, ...
struct TestStep {
  TestStep(uint32_t rows, uint32_t first_position = 0);
  std::vector<int32_t> tokens;
  std::vector<uint32_t> positions, pages;
  std::vector<Piece> pieces;
  Step step() const { return {tokens, positions, pieces}; }
};

DeviceSpec small_spec(std::vector<uint32_t> buffer_widths, uint32_t max_rows);

}  // namespace spillway::vulkan
