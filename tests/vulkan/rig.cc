#include "vulkan/rig.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "numerics/float_bits.h"

namespace spillway::vulkan {

const std::vector<AllowedMessage> kAllowedMessages = {};

void Rig::SetUp() {
  if (vulkan_devices().empty())
    GTEST_SKIP() << "there is no Vulkan device here (Debian package mesa-vulkan-drivers has a software one)";
}

std::unique_ptr<Device> Rig::open(VulkanOptions::Link link) {
  VulkanOptions options;
  options.link = link;
  options.integer_dot = integer_dot_;
  options.pipeline_cache = false;
  options.on_validation = [this](std::string_view message) { messages.emplace_back(message); };
  const char* number = std::getenv("SPILLWAY_TEST_VULKAN");
  const auto index = number == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(number, nullptr, 10));
  auto opened = open_vulkan(index, options);
  if (!opened && opened.error().message.find("validation layer") != std::string::npos) {
    options.on_validation = nullptr;
    opened = open_vulkan(index, options);
  }
  EXPECT_TRUE(opened) << opened.error().message;
  return opened ? std::move(*opened) : nullptr;
}

Device& Rig::ready(const DeviceSpec& spec, VulkanOptions::Link link) {
  device_ = open(link);
  const auto prepared = device_->prepare(spec);
  EXPECT_TRUE(prepared) << prepared.error().message;
  return *device_;
}

void Rig::TearDown() {
  device_.reset();
  for (const std::string& message : messages)
    if (std::none_of(kAllowedMessages.begin(), kAllowedMessages.end(), [&](const AllowedMessage& allowed) {
          return message.find(allowed.text) != std::string::npos;
        }))
      ADD_FAILURE() << "validation: " << message;
}

float Random::value(Kind kind) {
  const uint32_t b = bits();
  if (kind == Kind::kOrdinary) return below(16) == 0 ? 0.0f : normal_(random_);
  if (kind == Kind::kWide) {
    if (below(16) == 0) return numerics::float_of(b & (below(2) != 0 ? 0x807fffffu : 0x80000000u));
    return numerics::float_of((b & 0x807fffffu) | ((127u - 60 + below(121)) << 23));
  }
  static constexpr uint32_t kSpecial[] = {0x7f800000, 0xff800000, 0x7fc00000, 0,
                                          0x80000000, 0x2b800000, 0x2b7fffff, 0x71800000};
  if (below(16) == 0) return numerics::float_of(kSpecial[below(8)]);
  return below(2) != 0 ? numerics::float_of(b) : normal_(random_);
}

std::vector<float> Random::values(size_t n, Kind kind) {
  std::vector<float> values(n);
  for (float& v : values) v = value(kind);
  return values;
}

namespace {

using enum TensorType;

// Offsets of the half-precision scales in a block.
std::vector<size_t> scale_offsets(TensorType type) {
  namespace at = numerics::layout;
  switch (type) {
    case kF32:
    case kF16:
    case kBF16:
    case kMXFP4:
      return {};
    case kQ4_1:
    case kQ5_1:
      return {at::q4_1::kD, at::q4_1::kM};
    case kQ2_K:
      return {at::q2_k::kD, at::q2_k::kDmin};
    case kQ3_K:
      return {at::q3_k::kD};
    case kQ4_K:
    case kQ5_K:
      return {at::q4_k::kD, at::q4_k::kDmin};
    case kQ6_K:
      return {at::q6_k::kD};
    default:
      return {0};
  }
}

uint16_t random_scale(Random& random, Scales scales, uint32_t row) {
  static constexpr uint16_t kSpecial[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff,
                                          0x0400, 0x7c00, 0xfc00, 0x7e01, 0xfd55};
  if (row % 5 == 3 && random.below(4) == 0) return kSpecial[random.below(scales == Scales::kAny ? 11 : 7)];
  return static_cast<uint16_t>((random.below(2) << 15) | ((6 + random.below(12)) << 10) | random.below(1024));
}

}  // namespace

TestMatrix random_matrix(Random& random, TensorType type, uint32_t rows, uint32_t cols, Scales scales) {
  static constexpr uint8_t kFill[] = {0x00, 0xff, 0x80, 0x7f};
  TestMatrix m{type, rows, cols, {}, {}};
  m.file.resize(rows * row_bytes(type, cols));
  const size_t block_bytes = info(type).block_bytes, blocks = cols / info(type).block_length;
  for (uint32_t r = 0; r < rows; ++r)
    for (size_t b = 0; b < blocks; ++b) {
      std::byte* block = m.file.data() + (r * blocks + b) * block_bytes;
      const bool extreme = r % 8 == 5;
      for (size_t i = 0; i < block_bytes; ++i)
        block[i] = static_cast<std::byte>(extreme ? kFill[r / 8 % 4] : random.below(256));
      if (type == kF32 && (scales == Scales::kFinite || random.below(8) != 0)) {
        const float v = random.value(r % 3 == 2 ? Random::Kind::kWide : Random::Kind::kOrdinary);
        std::memcpy(block, &v, 4);
      }
      if ((type == kF16 || type == kBF16) && (scales == Scales::kFinite || random.below(8) != 0)) {
        const uint32_t exponent = type == kF16 ? random.below(20) << 10 : (100 + random.below(30)) << 7;
        const auto v = static_cast<uint16_t>((random.below(2) << 15) | exponent |
                                             random.below(type == kF16 ? 1024 : 128));
        std::memcpy(block, &v, 2);
      }
      if (extreme && type == kQ6_K && r == 5) std::memset(block + numerics::layout::q6_k::kScales, 0x80, 16);
      if (type == kMXFP4 && r % 3 != 0) block[0] = static_cast<std::byte>(110 + random.below(30));
      for (const size_t at : scale_offsets(type)) {
        const uint16_t scale = random_scale(random, scales, r);
        std::memcpy(block + at, &scale, 2);
      }
    }
  m.interleaved.resize(numerics::interleaved_bytes(type, rows, cols));
  numerics::interleave(type, rows, cols, m.file.data(), m.interleaved.data());
  return m;
}

TestMatrix vector_of(const std::vector<float>& values) {
  TestMatrix m{kF32, 1, static_cast<uint32_t>(values.size()), {}, {}};
  m.file.resize(values.size() * 4);
  std::memcpy(m.file.data(), values.data(), m.file.size());
  return m;
}

std::vector<float> reference_product(const TestMatrix& w, const std::vector<float>& x, uint32_t tokens,
                                     size_t x_stride, const float* bias) {
  const cpu::Kernels& scalar = cpu::kernels(cpu::InstructionSet::kScalar);
  const size_t n = size_t{tokens} * w.cols;
  std::vector<float> f32(n), d(n / 32 + 1);
  std::vector<int8_t> q(n);
  std::vector<int16_t> sums(n / 16 + 1);
  const cpu::Activations activations = {
      cpu::activation_kind(w.type), tokens, w.cols, f32.data(), q.data(), d.data(), sums.data()};
  for (uint32_t t = 0; t < tokens; ++t) scalar.quantize(x.data() + t * x_stride, activations, t);
  std::vector<std::byte> scratch(scalar.scratch_bytes(w.cols, 0));
  std::vector<float> out(size_t{tokens} * w.rows);
  scalar.product(w.in_file(), 0, (w.rows + 15) / 16, activations, {nullptr, tokens}, out.data(), w.rows,
                 {scratch.data(), scratch.size()});
  if (bias != nullptr)
    for (uint32_t t = 0; t < tokens; ++t) scalar.add(out.data() + size_t{t} * w.rows, bias, w.rows);
  return out;
}

testing::AssertionResult same_bits(std::span<const float> expected, std::span<const float> actual) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const float e = expected[i], a = actual[i];
    if (numerics::bits_of(e) == numerics::bits_of(a) || (numerics::is_nan(e) && numerics::is_nan(a)))
      continue;
    return testing::AssertionFailure()
           << fmt::format("value {} of {}: {:a} ({:08x}), need {:a} ({:08x})", i, expected.size(), a,
                          numerics::bits_of(a), e, numerics::bits_of(e));
  }
  return testing::AssertionSuccess();
}

TestStep::TestStep(uint32_t rows, uint32_t first_position) {
  tokens.assign(rows, 0);
  for (uint32_t r = 0; r < rows; ++r) positions.push_back(first_position + r);
  for (uint32_t p = 0; p <= (first_position + rows - 1) / kPagePositions; ++p) pages.push_back(p);
  pieces.push_back({0, rows, first_position, pages});
}

DeviceSpec small_spec(std::vector<uint32_t> buffer_widths, uint32_t max_rows) {
  DeviceSpec spec;
  spec.sizes.max_rows = max_rows;
  spec.sizes.buffer_widths = std::move(buffer_widths);
  spec.sizes.max_width = 1;
  for (const uint32_t width : spec.sizes.buffer_widths)
    spec.sizes.max_width = std::max(spec.sizes.max_width, width);
  spec.sizes.hidden = spec.sizes.max_width;
  spec.sizes.max_head_length = 1;
  return spec;
}

}  // namespace spillway::vulkan
