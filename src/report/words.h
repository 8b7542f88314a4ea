// Numbers and texts as people read them. What is no number, or not known, is a dash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::report {

// Three significant digits without an exponent where that stays readable: "0.0123", "12.3", "1,234".
std::string number_text(double value);
std::string number_text(std::optional<double> value);
// The same without zeros at the end: for sizes and settings, which were not measured.
std::string short_number(double value);
// "1.5 GiB", "144 B", "0"
std::string bytes_text(double bytes);
// "61.3 %" of 0.613
std::string percent_text(double share);
std::string percent_text(std::optional<double> share);
// "1.2 (1.1 to 1.3)", or the value alone.
std::string interval_text(double value, std::optional<double> low, std::optional<double> high);

// "1,234"
std::string count_text(uint64_t n);
// "1 thread", "2 threads", "1,234 requests"; for words whose plural ends in s.
std::string count_text(uint64_t n, std::string_view what);

// The text as valid UTF-8 on one line: broken bytes become U+FFFD; control characters, and those that turn
// the direction of what follows, are written out ("\x1b", "\u202e"). Texts in results come from files and
// people.
std::string clean_text(std::string_view text);

// For reading: at most `most` characters of it, the last one an ellipsis where something was cut off.
// Requires: valid UTF-8, most > 0.
std::string shortened(std::string_view text, size_t most);
// The same with the ellipsis in the middle: for names that begin alike.
std::string shortened_middle(std::string_view text, size_t most);
// Names with room for `most` characters each. Where one of them is longer, all lose the words that all of
// them have, at first but for flags before what differs; what is still longer is cut in its middle.
std::vector<std::string> told_apart(std::vector<std::string> names, size_t most);

}  // namespace spillway::report
