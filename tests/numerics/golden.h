// Reads tests/data/golden_blocks/dequant.txt (its README.md has the format).
#pragma once

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "base/tensor_type.h"

namespace spillway::numerics {

struct GoldenCase {
  TensorType type;
  std::string note;
  std::vector<std::byte> raw;
  std::vector<float> values;
};

inline std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes(text.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

inline std::vector<GoldenCase> read_golden_cases() {
  std::ifstream file(SPILLWAY_SOURCE_DIR "/tests/data/golden_blocks/dequant.txt");
  std::vector<GoldenCase> cases;
  std::string word, rest, type_name, note;
  while (file >> word) {
    std::getline(file, rest);
    if (!rest.empty()) rest.erase(0, 1);
    if (word == "type") type_name = rest.substr(0, rest.find(' '));
    if (word == "case") note = rest;
    if (word == "raw") cases.push_back({find_tensor_type(type_name)->type, note, from_hex(rest), {}});
    if (word == "f32") {
      const std::vector<std::byte> bytes = from_hex(rest);
      cases.back().values.resize(bytes.size() / 4);
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(cases.back().values.data()));
    }
  }
  return cases;
}

}  // namespace spillway::numerics
