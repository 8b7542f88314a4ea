#include "report/result.h"

#include <gtest/gtest.h>

namespace spillway::report {
namespace {

ResultFile a_bench_result() {
  ResultFile r;
  r.kind = "bench";
  r.created = "2026-11-30T12:00:00Z";
  r.build = {"0.1.0 (abc)", "g++ 12.2", "Release"};
  r.model = {"demo", "demo.gguf", "00ff", 123456789012};
  r.machine = {"a processor", 2, 24ull << 30, "none", "", 0, "Linux"};
  r.workload = {"chat", "11", 6, 2};
  r.goal = "ttft";
  r.settings = {{"default", {{"--threads", "2"}}}, {"no cache", {{"--moe-cache-mib", "0"}}}};
  Run run;
  run.setting = 1;
  run.seed = 7;
  run.warm = true;
  run.requests = {{0, "prose", 1, 30, 12, 3, 0.5, 0.4, 0.2, {90.5, 109.5}, "length"}};
  run.experts = Experts{.tokens = 33, .hits = 10, .misses = 4, .link_s = 0.25};
  run.hit_points = {{16, 4, 3}, {33, 6, 1}};
  r.runs = {run};
  r.rows = {{.setting = "default",
             .label = Label::kPredicted,
             .decode_tok_s = 12.5,
             .decode_low = 11,
             .resources = Resources{1, 2, 3, 4, 5}}};
  r.terms = {{"link", "GB/s", 24, Label::kMeasured, 23.0, 25.0, "", "rates"}};
  r.curves = {{"Reading memory",
               "threads",
               "GB/s",
               Label::kMeasured,
               {{"memory", {{4, 20, 19.0, 21.0}, {8, 24, {}, {}}}}}}};
  r.notes = {"a note"};
  return r;
}

TEST(Result, IsReadAsWritten) {
  const ResultFile written = a_bench_result();
  const auto read = parse_result(to_json(written));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, written);
}

TEST(Result, WrongInputNamesThePlace) {
  const auto message = [](std::string text, std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
    const auto read = parse_result(text);
    return read ? "read" : read.error().message;
  };
  const std::string good = to_json(a_bench_result());
  EXPECT_EQ(message(good, "\"turn\": 1", "\"turn\": -1"),
            "runs[0].requests[0].turn: a whole number from 0 is needed, found number");
  EXPECT_EQ(message(good, "109.5", "null"), "runs[0].requests[0].itl_ms[1]: a number is needed, found null");
  EXPECT_EQ(message(good, "\"setting\": 1", "\"setting\": 2"), "runs[0].setting is 2, there are 2 settings");
  EXPECT_NE(message(good, "\"schema\": 1", "\"schema\": 9").find("schema 9"), std::string::npos);
  EXPECT_NE(message(good, "predicted", "guessed").find("rows[0].label"), std::string::npos);
  EXPECT_EQ(message(good, "109.5", "-1"), "runs[0].requests[0]: a time is below 0");
  EXPECT_NE(message(good, "109.5", "1e308").find("itl_ms[1]: a number that can be"), std::string::npos);
  EXPECT_NE(message(good, "109.5", "NaN").find("line "), std::string::npos) << "where it is no JSON";
  EXPECT_NE(message(good, "109.5", "1e999").find("overflow"), std::string::npos);
  EXPECT_NE(message(good, "\"bench\"", "\"hardware\"").find("'kind' is \"hardware\""), std::string::npos);
  EXPECT_NE(message("[]", "[]", "[]").find("it is array"), std::string::npos);
  for (const char* text : {"", "[]", "{", "{\"schema\": \"1\"}", "\xff", "3"})
    EXPECT_FALSE(parse_result(text)) << text;
}

TEST(Result, BrokenUtf8IsWrittenAsReplacementCharacters) {
  ResultFile result = a_bench_result();
  result.model.name = "caf\xc3";
  const auto read = parse_result(to_json(result));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->model.name, "caf\xef\xbf\xbd");
}

TEST(ResultFile, NestingHasALimit) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const auto read = parse_result("{\"other\": " + deep + ", \"schema\": 1}");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("nested deeper"), std::string::npos);
}

}  // namespace
}  // namespace spillway::report
