// Every embedded shader keeps to the arithmetic that docs/numerics.md allows: float additions, subtractions
// and multiplications that may not be contracted, and integers. Equality on a software device alone would not
// show a fault, since it agrees with x86 in nearly everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backend/vulkan/shaders.h"

namespace spillway::vulkan {
namespace {

// Numbers of the SPIR-V specification 1.6.
enum Op : uint32_t {
  kExtInstImport = 11,
  kExtInst = 12,
  kCapability = 17,
  kTypeFloat = 22,
  kSpecConstantOp = 52,
  kDecorate = 71,
  kFAdd = 129,
  kFSub = 131,
  kFMul = 133,
};
constexpr uint32_t kNoContraction = 42;

const std::map<uint32_t, const char*> kForbidden = {
    {109, "a float to an unsigned integer"},
    {110, "a float to an integer"},
    {115, "a conversion between float widths"},
    {116, "a rounding to half"},
    {136, "a float division"},
    {140, "a float remainder"},
    {141, "a float modulus"},
    {142, "a vector times a scalar"},
    {143, "a matrix times a scalar"},
    {144, "a vector times a matrix"},
    {145, "a matrix times a vector"},
    {146, "a matrix times a matrix"},
    {147, "an outer product"},
    {148, "a dot product of floats"},
    {265, "a float sum over a group"},
    {266, "a float minimum over a group"},
    {269, "a float maximum over a group"},
    {350, "a float sum over a subgroup"},
    {352, "a float product over a subgroup"},
    {355, "a float minimum over a subgroup"},
    {358, "a float maximum over a subgroup"},
    {5614, "an atomic float minimum"},
    {5615, "an atomic float maximum"},
    {6035, "an atomic float sum"},
};
const std::map<uint32_t, const char*> kForbiddenCapabilities = {
    {8, "vectors of sixteen"}, {9, "half arithmetic"}, {10, "double arithmetic"}};
// Of GLSL.std.450, by number: UMin, SMin, UMax, SMax, UClamp, SClamp, FindILsb, FindSMsb, FindUMsb. All of
// its float functions are left to the device.
const std::set<uint32_t> kAllowedFunctions = {38, 39, 41, 42, 44, 45, 73, 74, 75};

std::vector<std::string> faults_of(std::span<const uint32_t> words) {
  std::vector<std::string> faults;
  std::set<uint32_t> uncontracted;
  std::vector<std::pair<uint32_t, uint32_t>> arithmetic;  // opcode, result
  if (words.size() < 5 || words[0] != 0x07230203) return {"no SPIR-V module"};
  for (size_t at = 5; at < words.size();) {
    const uint32_t length = words[at] >> 16, op = words[at] & 0xffff;
    if (length == 0 || at + length > words.size()) return {"a damaged module"};
    const auto word = [&](uint32_t i) { return words[at + i]; };
    if (const auto found = kForbidden.find(op); found != kForbidden.end()) faults.push_back(found->second);
    switch (op) {
      case kCapability:
        if (const auto found = kForbiddenCapabilities.find(word(1)); found != kForbiddenCapabilities.end())
          faults.push_back(found->second);
        break;
      case kTypeFloat:
        if (word(2) != 32) faults.push_back("floats of " + std::to_string(word(2)) + " bits");
        break;
      case kExtInstImport:
        if (std::string(reinterpret_cast<const char*>(&words[at + 2])) != "GLSL.std.450")
          faults.push_back("an unknown set of functions");
        break;
      case kExtInst:
        if (!kAllowedFunctions.contains(word(4))) faults.push_back("function " + std::to_string(word(4)));
        break;
      case kSpecConstantOp:
        if (word(3) >= kFAdd - 2 && word(3) <= 141 && kForbidden.contains(word(3)))
          faults.push_back("float arithmetic of constants");
        break;
      case kDecorate:
        if (word(2) == kNoContraction) uncontracted.insert(word(1));
        break;
      case kFAdd:
      case kFSub:
      case kFMul:
        arithmetic.emplace_back(op, word(2));
        break;
      default:
        break;
    }
    at += length;
  }
  for (const auto& [op, result] : arithmetic)
    if (!uncontracted.contains(result))
      faults.push_back("opcode " + std::to_string(op) + " without NoContraction");
  return faults;
}

TEST(Shaders, KeepToTheAllowedArithmetic) {
  EXPECT_GE(shader_modules().size(), 40u);
  for (const ShaderModule& module : shader_modules())
    for (const std::string& fault : faults_of(module.words)) ADD_FAILURE() << module.name << ": " << fault;
}

// What the device is asked for in addition changes nothing of that, and appears once.
TEST(Shaders, FloatControlsAreAdded) {
  const auto words = shader_words("norm");
  const auto with = with_float_controls(words, {.round_to_even = true, .keep_special = true});
  EXPECT_EQ(with.size(), words.size() + 2 * 2 + 2 * 4);
  EXPECT_TRUE(faults_of(with).empty());
  EXPECT_EQ(std::count(with.begin(), with.end(), 4462u), 1);  // RoundingModeRTE
  EXPECT_EQ(std::count(with.begin(), with.end(), 4461u), 1);  // SignedZeroInfNanPreserve
  const auto without = with_float_controls(words, {});
  EXPECT_TRUE(std::ranges::equal(without, words));
}

TEST(Shaders, AFaultIsCaught) {
#define SW_CANARY(n) static constexpr uint32_t kCanary##n[] = {
#define SW_CANARY_END \
  }                   \
  ;
#include <vulkan_canaries.inc>
  EXPECT_TRUE(faults_of(kCanary0).empty()) << faults_of(kCanary0)[0];
  const std::span<const uint32_t> broken[] = {kCanary1, kCanary2, kCanary3, kCanary4,  kCanary5,  kCanary6,
                                              kCanary7, kCanary8, kCanary9, kCanary10, kCanary11, kCanary12};
  for (size_t i = 0; i < std::size(broken); ++i)
    EXPECT_FALSE(faults_of(broken[i]).empty()) << "fault " << i + 1;
}

}  // namespace
}  // namespace spillway::vulkan
