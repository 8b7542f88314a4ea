#include "text/template/strftime.h"

#include <fmt/format.h>

namespace spillway {
namespace jinja {
namespace {

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

struct Parts {
  int year, month, day, hour, minute, second, weekday, yearday;  // weekday from Sunday = 0, yearday from 0
  int64_t unix_seconds;
};

Parts split(std::chrono::local_seconds time) {
  using namespace std::chrono;
  const local_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  Parts p{};
  p.year = static_cast<int>(date.year());
  p.month = static_cast<int>(static_cast<unsigned>(date.month()));
  p.day = static_cast<int>(static_cast<unsigned>(date.day()));
  p.hour = static_cast<int>(clock.hours().count());
  p.minute = static_cast<int>(clock.minutes().count());
  p.second = static_cast<int>(clock.seconds().count());
  p.weekday = static_cast<int>(weekday(day).c_encoding());
  p.yearday = static_cast<int>((day - local_days(date.year() / January / 1)).count());
  p.unix_seconds = time.time_since_epoch().count();
  return p;
}

// ISO 8601: weeks begin on Monday, and the week of a year's first Thursday is its week 1.
std::pair<int, int> iso_week(const Parts& p) {
  const int monday = (p.weekday + 6) % 7;
  int year = p.year, week = (p.yearday - monday + 10) / 7;
  const auto weeks_in = [](int y) {
    const auto dec31 = [](int v) { return (v + v / 4 - v / 100 + v / 400) % 7; };
    return dec31(y) == 4 || dec31(y - 1) == 3 ? 53 : 52;
  };
  if (week < 1) {
    --year;
    week = weeks_in(year);
  } else if (week > weeks_in(year)) {
    ++year;
    week = 1;
  }
  return {year, week};
}

void append_one(std::string& out, const Parts& p, char c, char flag) {
  const auto number = [&](int value, int width, char fill = '0') {
    if (flag == '-') {
      out += fmt::format("{}", value);
    } else if ((fill == '0' && flag != '_') || flag == '0') {
      out += fmt::format("{:0{}}", value, width);
    } else {
      out += fmt::format("{:{}}", value, width);
    }
  };
  const auto all = [&](std::string_view format) {
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] == '%') {
        append_one(out, p, format[++i], 0);
      } else {
        out.push_back(format[i]);
      }
    }
  };
  const int hour12 = p.hour % 12 == 0 ? 12 : p.hour % 12;
  switch (c) {
    case 'a':
      out += kDays[p.weekday].substr(0, 3);
      break;
    case 'A':
      out += kDays[p.weekday];
      break;
    case 'b':
    case 'h':
      out += kMonths[p.month - 1].substr(0, 3);
      break;
    case 'B':
      out += kMonths[p.month - 1];
      break;
    case 'c':
      all("%a %b %e %H:%M:%S %Y");
      break;
    case 'C':
      number(p.year / 100, 2);
      break;
    case 'd':
      number(p.day, 2);
      break;
    case 'D':
    case 'x':
      all("%m/%d/%y");
      break;
    case 'e':
      number(p.day, 2, ' ');
      break;
    case 'f':
      out += "000000";
      break;
    case 'F':
      all("%Y-%m-%d");
      break;
    case 'g':
      number(iso_week(p).first % 100, 2);
      break;
    case 'G':
      number(iso_week(p).first, 4);
      break;
    case 'H':
      number(p.hour, 2);
      break;
    case 'I':
      number(hour12, 2);
      break;
    case 'j':
      number(p.yearday + 1, 3);
      break;
    case 'k':
      number(p.hour, 2, ' ');
      break;
    case 'l':
      number(hour12, 2, ' ');
      break;
    case 'm':
      number(p.month, 2);
      break;
    case 'M':
      number(p.minute, 2);
      break;
    case 'n':
      out.push_back('\n');
      break;
    case 'p':
      out += p.hour < 12 ? "AM" : "PM";
      break;
    case 'P':
      out += p.hour < 12 ? "am" : "pm";
      break;
    case 'r':
      all("%I:%M:%S %p");
      break;
    case 'R':
      all("%H:%M");
      break;
    case 's':
      out += fmt::format("{}", p.unix_seconds);
      break;
    case 'S':
      number(p.second, 2);
      break;
    case 't':
      out.push_back('\t');
      break;
    case 'T':
    case 'X':
      all("%H:%M:%S");
      break;
    case 'u':
      number(p.weekday == 0 ? 7 : p.weekday, 1);
      break;
    case 'U':
      number((p.yearday + 7 - p.weekday) / 7, 2);
      break;
    case 'V':
      number(iso_week(p).second, 2);
      break;
    case 'w':
      number(p.weekday, 1);
      break;
    case 'W':
      number((p.yearday + 7 - (p.weekday + 6) % 7) / 7, 2);
      break;
    case 'y':
      number(p.year % 100, 2);
      break;
    case 'Y':
      number(p.year, 4);
      break;
    case 'z':
    case 'Z':
      break;
    case '%':
      out.push_back('%');
      break;
    default:
      out.push_back('%');
      if (flag) out.push_back(flag);
      out.push_back(c);
  }
}

}  // namespace

std::string format_time(std::chrono::local_seconds time, std::string_view format) {
  const Parts p = split(time);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 >= format.size()) {
      out.push_back(format[i]);
      continue;
    }
    char flag = 0;
    ++i;
    if ((format[i] == '-' || format[i] == '_' || format[i] == '0') && i + 1 < format.size())
      flag = format[i++];
    append_one(out, p, format[i], flag);
  }
  return out;
}

}  // namespace jinja
}  // namespace spillway
