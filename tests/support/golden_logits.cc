#include "support/golden_logits.h"

#include <fstream>
#include <sstream>

#include "support/model_flags.h"

namespace spillway::test_support {

Result<GoldenLogits> read_golden_logits(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(Error::Kind::kNotFound, "'{}' cannot be opened", path);
  GoldenLogits golden;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word == "#") continue;
    if (word == "model") {
      std::string flags;
      std::getline(words, flags);
      SW_ASSIGN(golden.spec, parse_model_flags(flags));
    } else if (word == "hash") {
      words >> std::hex >> golden.file_hash;
    } else if (word == "tokens") {
      for (int32_t token; words >> token;) golden.tokens.push_back(token);
    } else if (word == "row") {
      GoldenLogits::Row row;
      words >> row.position;
      for (float value; words >> value;) row.logits.push_back(value);
      golden.rows.push_back(std::move(row));
    } else {
      return invalid("'{}': a line begins with '{}'", path, word);
    }
  }
  return golden;
}

}  // namespace spillway::test_support
