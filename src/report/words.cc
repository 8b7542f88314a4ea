#include "report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spillway::report {
namespace {

constexpr const char* kDash = "\u2013";

// "1234567" -> "1,234,567"
std::string grouped(const std::string& digits) {
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: not valid UTF-8
};

// The first character of a text that is not empty.
Character first_of(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < n) return {};
  uint32_t code = lead & (0x7fu >> n);
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, n};
}

bool turns_direction(uint32_t code) {
  return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

// Characters that XML does not have.
bool is_no_character(uint32_t code) {
  return (code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef);
}

// Words of a name, and which of them all names have: at the same place where all have as many words, else at
// the front and the back.
using Words = std::vector<std::string>;
struct SharedWords {
  size_t front = 0, back = 0;   // so many
  std::vector<bool> at_places;  // instead, unless empty
  bool at(size_t place, size_t n) const {
    return at_places.empty() ? place < front || place + back >= n : at_places[place];
  }
};

Words words_of(const std::string& name) {
  Words words;
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find(' ', at), name.size());
    words.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

SharedWords shared_words(const std::vector<Words>& all) {
  SharedWords shared;
  const auto [fewest, most] = std::ranges::minmax(all, {}, &Words::size);
  const auto is_alike = [&](auto word_of) {
    return std::ranges::all_of(all, [&](const Words& words) { return word_of(words) == word_of(all[0]); });
  };
  const auto at = [&](size_t i) { return is_alike([i](const Words& words) { return words[i]; }); };
  const auto from_back = [&](size_t i) {
    return is_alike([i](const Words& words) { return words[words.size() - 1 - i]; });
  };
  if (fewest.size() == most.size()) {
    for (size_t i = 0; i < most.size(); ++i) shared.at_places.push_back(at(i));
    if (std::ranges::find(shared.at_places, false) == shared.at_places.end())
      shared.at_places.assign(most.size(), false);  // the same name: nothing tells them apart
    return shared;
  }
  // Something of each stays.
  while (shared.front + 1 < fewest.size() && at(shared.front)) ++shared.front;
  while (shared.front + shared.back + 1 < fewest.size() && from_back(shared.back)) ++shared.back;
  return shared;
}

enum class KeepFlags : uint8_t { kNo, kYes };  // those before a word that differs

// An ellipsis for each stretch of shared words.
std::vector<std::string> without(const std::vector<Words>& all, const SharedWords& shared, KeepFlags keep) {
  std::vector<std::string> names;
  for (const Words& words : all) {
    std::string& name = names.emplace_back();
    bool left_out = false;
    for (size_t i = 0; i < words.size(); ++i) {
      const bool names_next = keep == KeepFlags::kYes && words[i].starts_with('-') && i + 1 < words.size() &&
                              !shared.at(i + 1, words.size());
      const bool is_left_out = shared.at(i, words.size()) && !names_next;
      if (is_left_out && left_out) continue;
      left_out = is_left_out;
      name += (name.empty() ? "" : " ") + (is_left_out ? "\u2026" : words[i]);
    }
  }
  return names;
}

}  // namespace

std::string number_text(double value) {
  if (!std::isfinite(value)) return kDash;
  const double size = std::fabs(value);
  if (size == 0) return "0";
  if (size >= 1e9 || size < 1e-4) return fmt::format("{:.2e}", value);
  if (size >= 999.5) return grouped(fmt::format("{:.0f}", value));
  const int decimals = size >= 99.95       ? 0
                       : size >= 9.995     ? 1
                       : size >= 0.9995    ? 2
                       : size >= 0.09995   ? 3
                       : size >= 0.009995  ? 4
                       : size >= 0.0009995 ? 5
                                           : 6;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string number_text(std::optional<double> value) { return value ? number_text(*value) : kDash; }

std::string short_number(double value) {
  std::string text = number_text(value);
  if (text.find('.') == std::string::npos || text.find('e') != std::string::npos) return text;
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string bytes_text(double bytes) {
  if (!std::isfinite(bytes)) return kDash;
  if (bytes == 0) return "0";
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (std::fabs(bytes) >= 1024 && unit + 1 < std::size(kUnits)) bytes /= 1024, ++unit;
  return short_number(bytes) + " " + kUnits[unit];
}

std::string percent_text(double share) {
  return std::isfinite(share) ? number_text(std::round(share * 1000) / 10) + " %" : kDash;
}

std::string percent_text(std::optional<double> share) { return share ? percent_text(*share) : kDash; }

std::string interval_text(double value, std::optional<double> low, std::optional<double> high) {
  if (!low && !high) return number_text(value);
  return fmt::format("{} ({} to {})", number_text(value), number_text(low), number_text(high));
}

std::string count_text(uint64_t n) { return grouped(fmt::format("{}", n)); }

std::string count_text(uint64_t n, std::string_view what) {
  return fmt::format("{} {}{}", count_text(n), what, n == 1 ? "" : "s");
}

std::string clean_text(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const auto [code, bytes] = first_of(text);
    if (bytes == 0 || is_no_character(code)) {
      clean += "\ufffd";
    } else if (code == '\n' || code == '\r' || code == '\t') {
      clean += ' ';
    } else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
      clean += fmt::format("\\x{:02x}", code);
    } else if (turns_direction(code) || code == 0x2028 || code == 0x2029) {
      clean += fmt::format("\\u{:04x}", code);
    } else {
      clean += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return clean;
}

std::string shortened(std::string_view text, size_t most) {
  std::string_view rest = text;
  size_t kept = 0;  // bytes of the first most - 1 characters
  for (size_t n = 0; !rest.empty(); ++n) {
    if (n == most) return std::string(text.substr(0, kept)) + "\u2026";
    const size_t bytes = std::max<size_t>(first_of(rest).bytes, 1);
    if (n + 1 < most) kept += bytes;
    rest.remove_prefix(bytes);
  }
  return std::string(text);
}

std::string shortened_middle(std::string_view text, size_t most) {
  std::vector<size_t> begins;
  for (size_t at = 0; at < text.size(); at += std::max<size_t>(first_of(text.substr(at)).bytes, 1))
    begins.push_back(at);
  if (begins.size() <= most) return std::string(text);
  const size_t kept = most - 1, first = (kept + 1) / 2, last = kept - first;
  return fmt::format("{}\u2026{}", text.substr(0, begins[first]),
                     last > 0 ? text.substr(begins[begins.size() - last]) : "");
}

std::vector<std::string> told_apart(std::vector<std::string> names, size_t most) {
  const auto fits = [most](const std::string& name) { return shortened(name, most) == name; };
  const auto all_fit = [&](const auto& texts) { return std::ranges::all_of(texts, fits); };
  if (all_fit(names)) return names;
  std::vector<Words> all;
  all.reserve(names.size());
  for (const std::string& name : names) all.push_back(words_of(name));
  std::vector<std::string> shorter = without(all, shared_words(all), KeepFlags::kYes);
  if (!all_fit(shorter)) shorter = without(all, shared_words(all), KeepFlags::kNo);
  for (std::string& name : shorter) name = shortened_middle(name, most);
  return shorter;
}

}  // namespace spillway::report
