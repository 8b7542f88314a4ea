#include "report/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "report/compare_runs.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/page_data.h"

namespace spillway::report {
namespace {

Run a_run(uint32_t setting, bool warm, double tok_s) {
  Run run{.setting = setting, .warm = warm, .seconds = 10};
  Request request{.generated_tokens = 41, .ttft_s = 0.5, .decode_s = 40 / tok_s, .finish = "length"};
  for (int i = 0; i < 40; ++i) request.itl_ms.push_back(1000 / tok_s * (i == 7 ? 20 : 1 + 0.01 * i));
  run.requests = {request, request};
  for (uint64_t i = 1; i <= 5; ++i)
    run.hit_points.push_back({.tokens = 16 * i, .hits = warm ? 90 : 18 * i, .misses = 10});
  return run;
}

// A tune result with measured and predicted rows, and runs.
ResultFile a_result() {
  ResultFile r;
  r.kind = "tune";
  r.build = {"0.1.0 (abc)", "g++ 12.2", "Release"};
  r.model = {"demo", "demo.gguf", "00ff", 1000};
  r.machine = {"a processor", 8, 64ull << 30, "a device", "1.2", 12ull << 30, "Linux"};
  r.workload = {"chat", "11", 2, 1};
  r.settings = {{"default", {{"-t", "2"}, {"--moe-cache-mib", "4096"}}},
                {"no cache", {{"-t", "2"}, {"--moe-cache-mib", "0"}}}};
  constexpr double kGiB = 1 << 30;
  r.rows = {{.setting = "default",
             .cache_bytes = 4 * kGiB,
             .share = "auto",
             .decode_tok_s = 50,
             .decode_low = 49,
             .decode_high = 51,
             .predicted_tok_s = 52,
             .resources = Resources{100, 200, 300, 0, 400}},
            {.setting = "no cache", .share = "auto", .decode_tok_s = 20, .verdict = "slower"}};
  for (int i = 0; i < 30; ++i)
    r.rows.push_back({.setting = fmt::format("grid {}", i),
                      .label = Label::kPredicted,
                      .cache_bytes = i * kGiB,
                      .share = i % 2 == 0 ? "auto" : "0.5",
                      .decode_tok_s = 20.0 + i});
  for (int i = 0; i < 6; ++i) {
    r.runs.push_back(a_run(0, i > 0, i == 0 ? 40 : 50 + 0.1 * i));
    r.runs.push_back(a_run(1, i > 0, 20 + 0.1 * i));
  }
  r.terms = {{"link", "GB/s", 24, Label::kMeasured, 23.0, 25.0, ""}};
  r.notes = {"A note."};
  r.conclusion = "The default is kept.";
  return r;
}

const Section* find(const Page& page, std::string_view title) {
  const auto found = std::ranges::find(page.sections, title, &Section::title);
  return found == page.sections.end() ? nullptr : &*found;
}

const Plot& plot_of(const Section& section, std::string_view title) {
  for (const Block& block : section.blocks)
    if (const auto* figure = std::get_if<Figure>(&block))
      if (const auto* plot = std::get_if<Plot>(&figure->chart); plot != nullptr && plot->title == title)
        return *plot;
  throw std::runtime_error("no such plot");
}

TEST(Page, HasASectionForEverythingThatIsKnown) {
  const NamedResult named{"a.json", a_result()};
  const Page page = make_page(std::span(&named, 1));
  for (const char* title : {"What was found", "Speed", "What got slower", "Time per resource", "Latency",
                            "Expert cache, cold to warm", "Terms and values",
                            "The runs, and the load of the machine", "Machine, model and settings"})
    EXPECT_NE(find(page, title), nullptr) << title;
  const NamedResult nothing{"b.json", {}};
  EXPECT_TRUE(make_page(std::span(&nothing, 1)).sections.empty());
}

TEST(Page, MeasuredPointsAndPredictedCurvesAreDrawnApart) {
  const NamedResult named{"a.json", a_result()};
  const Page page = make_page(std::span(&named, 1));
  const Plot& plot = plot_of(*find(page, "Speed"), "Decode speed over cache size");
  ASSERT_EQ(plot.series.size(), 3u);  // auto measured, auto predicted, 0.5 predicted
  for (const Series& series : plot.series) {
    const bool measured = series.name.ends_with(", measured");
    EXPECT_EQ(measured, !series.joined) << series.name;
    EXPECT_EQ(measured, series.marker == Marker::kFilled) << series.name;
    EXPECT_TRUE(measured || series.name.ends_with(", predicted")) << series.name;
    EXPECT_TRUE(std::ranges::is_sorted(series.points, {}, &Point::x));
  }
  // Of the predicted ones, one stands for the measured default: 52 at 4 GiB.
  EXPECT_TRUE(
      std::ranges::any_of(plot.series[1].points, [](const Point& p) { return p.x == 4 && p.y == 52; }));
}

TEST(Page, RowsOfAPlanAreNotJoined) {
  ResultFile result = a_result();
  result.kind = "plan";
  const NamedResult named{"a.json", result};
  const Page page = make_page(std::span(&named, 1));
  for (const Block& block : find(page, "Speed")->blocks) {
    if (const auto* figure = std::get_if<Figure>(&block)) {
      EXPECT_FALSE(std::holds_alternative<Plot>(figure->chart));
    }
  }
}

TEST(Page, AutoIsNoNumberAmongShares) {
  const NamedResult named{"a.json", a_result()};
  const Page page = make_page(std::span(&named, 1));
  for (const Series& series :
       plot_of(*find(page, "Speed"), "Decode speed over the CPU's share of the misses").series)
    for (const Point& point : series.points)
      EXPECT_TRUE(!series.joined || series.points.size() == 1 || point.x <= 1) << series.name;
}

TEST(Page, SaysWhatGotSlower) {
  using How = SlowerRow::How;
  ResultFile result = a_result();
  std::vector<SlowerRow> slower = slower_rows(result);
  ASSERT_EQ(slower.size(), 1u);  // predicted rows are not compared with the measured first one
  EXPECT_EQ(slower[0].row, 1u);
  EXPECT_DOUBLE_EQ(slower[0].ratio, 0.4);
  EXPECT_EQ(slower[0].how, How::kCompared);
  EXPECT_FALSE(slower[0].compared);
  result.rows[1].verdict = "";  // the runs tell
  slower = slower_rows(result);
  ASSERT_EQ(slower.size(), 1u);
  EXPECT_EQ(slower[0].how, How::kCompared);
  ASSERT_TRUE(slower[0].compared);
  EXPECT_EQ(slower[0].compared->pairs, 5u);
  result.settings[1].flags["-n"] = "4";  // other work
  EXPECT_TRUE(slower_rows(result).empty());
  result.settings[1].flags.erase("-n");
  for (const auto& [verdict, how] : {std::pair("not resolved", How::kNotResolved), {"", How::kNumbers}}) {
    result.rows[1].verdict = verdict;
    if (how == How::kNumbers) result.runs.clear();
    slower = slower_rows(result);
    ASSERT_EQ(slower.size(), 1u);
    EXPECT_EQ(slower[0].how, how);
  }
  result.rows[1].verdict = "no difference seen";  // the pairs of runs say so, whatever the totals
  EXPECT_TRUE(slower_rows(result).empty());
  result.rows[1].verdict = "";
  result.rows[1].machine = "another";  // the first of its own machine
  EXPECT_TRUE(slower_rows(result).empty());
}

// Equal in decoding, and slower in all else.
TEST(Page, SlowerPrefillAndFirstTokensAreFoundInTheRuns) {
  using How = SlowerRow::How;
  ResultFile result = a_result();
  result.rows.resize(2);
  result.runs.clear();
  for (int i = 0; i < 6; ++i)
    for (uint32_t s = 0; s < 2; ++s) {
      report::Run run = a_run(i % 2 == 0 ? s : 1 - s, true, 50 + 0.1 * i);
      Request& request = run.requests[0];
      request.prompt_tokens = 100;
      request.prefill_s = (run.setting == 0 ? 1 : 2) * (1 + 0.001 * i);
      request.ttft_s = request.prefill_s + 0.1;
      run.requests.resize(1);
      result.runs.push_back(run);
    }
  for (uint32_t s = 0; s < 2; ++s) {
    const Summary sum = summarize(runs_of(result, s, true));
    result.rows[s] = {.setting = result.settings[s].name,
                      .decode_tok_s = sum.decode_tok_s,
                      .prefill_tok_s = sum.prefill_tok_s,
                      .ttft_s = sum.ttft_s};
  }
  result.rows[1].verdict = "no difference seen";
  std::vector<SlowerRow> slower = slower_rows(result);
  ASSERT_EQ(slower.size(), 2u);
  EXPECT_EQ(slower[0].measure, Measure::kPrefill);
  EXPECT_EQ(slower[1].measure, Measure::kTtft);
  for (const SlowerRow& row : slower) {
    EXPECT_EQ(row.how, How::kCompared);
    EXPECT_EQ(row.compared->pairs, 6u);
    EXPECT_EQ(row.compared->verdict, Verdict::kSlower);
  }
  EXPECT_NEAR(slower[0].compared->ratio, 0.5, 1e-6);
  const NamedResult named{"a.json", result};
  const std::string markdown = to_markdown(make_page(std::span(&named, 1)));
  for (const char* words :
       {"| no cache | measured | Prefill, tok/s | 49.9 | 99.8, measured | 50.0 % | compared "
        "beyond the noise (0.500 times as fast; 95 %: 0.500 to 0.500; 6 pairs of runs) |",
        "| Decode against the first |"})
    EXPECT_NE(markdown.find(words), std::string::npos) << words << markdown;
  result.runs.resize(4);  // two pairs
  slower = slower_rows(result);
  ASSERT_EQ(slower.size(), 2u);
  EXPECT_EQ(slower[0].how, How::kNotResolved);
  result.runs.clear();
  slower = slower_rows(result);
  ASSERT_EQ(slower.size(), 2u);
  EXPECT_EQ(slower[0].how, How::kOtherGoal);  // the verdict is about decoding
}

TEST(Page, WithoutDecodingVerdictsAreAboutPrefill) {
  ResultFile result;
  result.rows = {{.setting = "a", .prefill_tok_s = 100},
                 {.setting = "b", .prefill_tok_s = 50, .verdict = "slower"}};
  const std::vector<SlowerRow> slower = slower_rows(result);
  ASSERT_EQ(slower.size(), 1u);
  EXPECT_EQ(slower[0].measure, Measure::kPrefill);
  EXPECT_EQ(slower[0].how, SlowerRow::How::kCompared);
  EXPECT_EQ(judged_measure(result), Measure::kPrefill);
}

TEST(Page, RunsThatStoodNextToEachOtherArePairs) {
  // Turns of three settings, the order reversed each time, with a speed of each turn of its own.
  ResultFile result;
  result.settings = {{"a", {}}, {"b", {}}, {"c", {}}};
  for (uint32_t turn = 0; turn < 6; ++turn)
    for (uint32_t i = 0; i < 3; ++i) {
      const uint32_t setting = turn % 2 == 0 ? i : 2 - i;
      result.runs.push_back(a_run(setting, true, (10 + 7 * (turn * turn % 5)) * (setting == 2 ? 2 : 1)));
    }
  const Comparison c = compare_runs(result, 0, 2, {decode_tok_s, Better::kHigher});
  EXPECT_EQ(c.pairs, 6u);
  EXPECT_NEAR(c.interval.low, 2, 1e-9);
  EXPECT_NEAR(c.interval.high, 2, 1e-9);
  result.runs.back().cut_short = "interrupted";  // of a
  EXPECT_EQ(compare_runs(result, 0, 2, {decode_tok_s, Better::kHigher}).pairs, 5u);
}

TEST(Page, WhatOthersUsedIsNotKnownOfShortRuns) {
  ResultFile result = a_result();
  result.runs.resize(2);
  result.runs[0].seconds = 0.05;
  const NamedResult named{"a.json", result};
  const std::string markdown = to_markdown(make_page(std::span(&named, 1)));
  EXPECT_NE(markdown.find("| 0.0500 | not known |"), std::string::npos) << markdown;
  EXPECT_NE(markdown.find("| 10.0 | 0 |"), std::string::npos);
}

TEST(Page, AConclusionOfSeveralLinesIsAList) {
  ResultFile result = a_result();
  result.conclusion = "One.\nTwo:\n  set in\n";
  const NamedResult named{"a.json", result};
  const Page page = make_page(std::span(&named, 1));
  EXPECT_NE(
      to_html(page).find("<ul class=\"conclusion\">\n<li>One.</li>\n<li>Two:</li>\n<li>set in</li>\n</ul>"),
      std::string::npos);
  EXPECT_NE(to_markdown(page).find("> - One.\n> - Two:\n> - set in\n\n"), std::string::npos);
}

TEST(Page, CountsAreWholeAndSharesPercentages) {
  ResultFile result;
  result.terms = {{"answer", "tokens", 64, Label::kMeasured, {}, {}, "", ""},
                  {"fitted", "tokens", 5.5, Label::kMeasured, {}, {}, "", ""},
                  {"all", "share", 1, Label::kMeasured, {}, {}, "", ""},
                  {"nearly", "share", 0.99999, Label::kMeasured, 0.9, {}, "", ""}};
  const NamedResult named{"a.json", result};
  const std::string markdown = to_markdown(make_page(std::span(&named, 1)));
  for (const char* words : {"| answer | 64 | tokens |", "| fitted | 5.50 | tokens |", "| all | 100 % |  |",
                            "| nearly | 99.99 % |  | 90.00 % to \u2013 |"})
    EXPECT_NE(markdown.find(words), std::string::npos) << words << markdown;
}

TEST(Page, StallsAreThoseOfTheTerminal) {
  const NamedResult named{"a.json", a_result()};  // one token of each request takes 20 times as long
  const std::string markdown = to_markdown(make_page(std::span(&named, 1)));
  EXPECT_NE(markdown.find("a stall is a token that took more than 3 times the median"), std::string::npos);
  EXPECT_NE(markdown.find("| longest | stalls |"), std::string::npos);
  EXPECT_NE(markdown.find(" | 10 | 500 | 500 |"), std::string::npos) << markdown;
}

TEST(Page, AnotherGoalComesFirstAndDoesNotHideSlowerDecoding) {
  ResultFile result = a_result();
  result.goal = "ttft";
  result.rows.resize(2);
  result.rows[0].ttft_s = 0.4, result.rows[1].ttft_s = 0.2;
  result.rows[1].verdict = "faster";
  const NamedResult named{"a.json", result};
  const Page page = make_page(std::span(&named, 1));
  std::vector<std::string> titles;
  for (const Block& block : find(page, "Speed")->blocks)
    if (const auto* figure = std::get_if<Figure>(&block))
      if (const auto* dots = std::get_if<Dots>(&figure->chart)) titles.push_back(dots->title);
  EXPECT_EQ(titles, (std::vector<std::string>{"Time to the first token of each setting",
                                              "Decode speed of each setting"}));
  const std::string markdown = to_markdown(page);
  EXPECT_NE(markdown.find("| no cache | measured | Decode, tok/s | 20.0 | 50.0 (49.0 to 51.0), measured | "
                          "60.0 % | compared beyond the noise (0.40"),
            std::string::npos)
      << markdown;
  result.runs.clear();
  const NamedResult without_runs{"a.json", result};
  EXPECT_NE(to_markdown(make_page(std::span(&without_runs, 1)))
                .find("60.0 % | the numbers alone; what was compared is the time to the first token |"),
            std::string::npos);
  result.rows[1].ttft_s = 0.8, result.rows[1].verdict = "slower";
  const std::vector<SlowerRow> slower = slower_rows(result);
  ASSERT_EQ(slower.size(), 2u);
  EXPECT_EQ(slower[0].measure, Measure::kTtft);
  EXPECT_EQ(slower[0].how, SlowerRow::How::kCompared);
  EXPECT_DOUBLE_EQ(slower[0].ratio, 0.5);
}

TEST(Page, ABusyMachineAndOutliersAreSaid) {
  ResultFile result = a_result();
  result.runs[4].load.other_cpu = 1.5;
  result.runs[6].requests[0].decode_s *= 3;
  result.runs[8].load.throttled_s = 1;
  result.runs[10].cut_short = "interrupted";
  EXPECT_TRUE(outlier_runs(result)[6]);
  EXPECT_FALSE(outlier_runs(result)[4]);
  const NamedResult named{"a.json", result};
  const std::string markdown = to_markdown(make_page(std::span(&named, 1)));
  for (const char* words : {"during 1 of 12 runs other programs", "held it back during 1 of 12",
                            "in 1 of 12 runs", "an outlier of its setting", "cut short: interrupted"})
    EXPECT_NE(markdown.find(words), std::string::npos) << words;
}

TEST(Page, AnotherBuildMachineModelOrWorkloadIsNeverTheSame) {
  const ResultFile first = a_result();
  EXPECT_TRUE(differences(first, first).empty());
  const auto one = [&](auto&& change) {
    ResultFile other = first;
    change(other);
    const std::vector<std::string> all = differences(first, other);
    EXPECT_EQ(all.size(), 1u);
    std::vector<NamedResult> named = {{"a.json", first}, {"b.json", other}};
    const Page page = make_page(named);
    const Section* section = find(page, "Result 2: b.json");
    EXPECT_TRUE(section != nullptr && section->blocks.size() == 1 &&
                std::get<Paragraph>(section->blocks[0]).kind == Paragraph::Kind::kWarning);
    return all.empty() ? "" : all[0];
  };
  EXPECT_EQ(one([](ResultFile& r) { r.build.version = "0.1.0 (def)"; }),
            "build 0.1.0 (def), g++ 12.2, Release, not 0.1.0 (abc), g++ 12.2, Release");
  EXPECT_NE(one([](ResultFile& r) { r.build.type = "Debug"; }), "");
  EXPECT_NE(one([](ResultFile& r) { r.model.content = "0100"; }), "");
  EXPECT_NE(one([](ResultFile& r) { r.machine.cpu = "another processor"; }), "");
  EXPECT_NE(one([](ResultFile& r) { r.machine.memory_bytes /= 2; }), "");
  EXPECT_NE(one([](ResultFile& r) { r.machine.driver = "1.3"; }), "");
  EXPECT_NE(one([](ResultFile& r) { r.machine.system = "Another"; }), "");
  EXPECT_NE(one([](ResultFile& r) { r.workload.content = "12"; }), "");
  ResultFile renamed = first;
  renamed.model.file = "renamed.gguf";
  EXPECT_TRUE(differences(first, renamed).empty());
}

TEST(Page, WhatIsNotKnownIsNoDifference) {
  const ResultFile first = a_result();
  ResultFile plan = first;
  plan.kind = "plan";
  plan.model.content = "";
  plan.machine = {};
  plan.workload = {};
  EXPECT_EQ(differences(first, plan), std::vector<std::string>{"another kind of result (plan)"});
  EXPECT_EQ(differences(plan, first), std::vector<std::string>{"another kind of result (tune)"});
  plan.kind = "tune";
  EXPECT_TRUE(differences(first, plan).empty());
  EXPECT_EQ(not_known(first, plan), (std::vector<std::string>{"the model's content", "the processor",
                                                              "the device", "the system", "the workload"}));
  EXPECT_TRUE(not_known(first, first).empty());
  plan.model.bytes = 1001;  // of two files without a known content, one is larger
  EXPECT_EQ(differences(first, plan),
            std::vector<std::string>{"model demo (1,001 bytes), not demo (1,000 bytes, content 00ff)"});
}

TEST(Page, DifferencesAreListedOnceBesideTheirNumbers) {
  ResultFile other = a_result();
  other.kind = "plan";
  const std::vector<NamedResult> named = {{"a.json", a_result()}, {"b.json", other}};
  const std::string markdown = to_markdown(make_page(named));
  const size_t at = markdown.find("another kind of result (plan)");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(markdown.find("another kind of result", at + 1), std::string::npos);
  EXPECT_NE(markdown.find("not comparable: see result 2"), std::string::npos);
}

// ---- as HTML and Markdown

ResultFile a_hostile_result() {
  const std::string evil =
      "</title></style><script>alert(1)</script><img src=x onerror=alert(1)>\"'`|*_[x](javascript:1)"
      "\x1b[31m\xff \u202e @everyone &amp; ]]>";
  ResultFile r = a_result();
  r.kind = r.created = r.command = r.conclusion = evil;
  r.build = {evil, evil, evil};
  r.model = {evil, evil, evil, UINT64_MAX};
  r.machine = {evil, UINT32_MAX, UINT64_MAX, evil, evil, UINT64_MAX, evil};
  r.workload = {evil, evil, UINT32_MAX, UINT32_MAX};
  r.settings = {{evil, {{evil, evil}}}, {"", {}}};
  for (const double value : {1e308, -1e308, 0.0, 5e-324, double(NAN), double(INFINITY)})
    r.rows.push_back({.setting = evil,
                      .label = Label::kEstimated,
                      .cache_bytes = value,
                      .share = evil,
                      .decode_tok_s = value,
                      .decode_low = -value,
                      .decode_high = value,
                      .prefill_tok_s = value,
                      .ttft_s = value,
                      .p95_itl_ms = value,
                      .hit_rate = value,
                      .predicted_tok_s = value,
                      .resources = Resources{value, value, value, value, value},
                      .verdict = evil,
                      .machine = evil});
  Run run{.setting = 0, .started = evil, .warm = true, .seconds = 1e308};
  run.requests = {{.topic = evil,
                   .generated_tokens = UINT32_MAX,
                   .decode_s = 1e308,
                   .itl_ms = {NAN, 1e308, 0, -1},
                   .finish = evil},
                  {}};
  run.hit_points = {{UINT64_MAX, UINT64_MAX, UINT64_MAX}, {}};
  run.load = {1e308, 1e308};
  run.cut_short = evil;
  r.runs.push_back(run);
  r.runs.push_back({.setting = 1});
  r.terms.push_back({evil, evil, NAN, Label::kDefault, 1e308, {}, evil});
  r.notes = {evil, ""};
  return r;
}

// Tags that are opened and closed in order, attributes quoted, ids unique, no bare ampersand.
void expect_well_formed(const std::string& html) {
  std::vector<std::string> open, ids;
  size_t at = html.find("<html");
  ASSERT_NE(at, std::string::npos);
  while ((at = html.find_first_of("<&", at)) != std::string::npos) {
    if (html[at] == '&') {
      const size_t end = html.find(';', at);
      ASSERT_LT(end - at, 8u) << html.substr(at, 20);
      at = end;
      continue;
    }
    const size_t end = html.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = html.substr(at + 1, end - at - 1);
    at = end;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(tag.substr(1), open.back());
      open.pop_back();
    } else if (!tag.ends_with('/') && name != "meta") {
      open.push_back(name);
    }
    EXPECT_EQ(std::ranges::count(tag, '"') % 2, 0) << tag;
    if (const size_t id = tag.find(" id=\""); id != std::string::npos)
      ids.push_back(tag.substr(id + 5, tag.find('"', id + 5) - id - 5));
    for (const char* number : {"\"nan", "\"inf", "-nan", "nan ", "inf "})
      EXPECT_EQ(tag.find(number), std::string::npos) << tag;
  }
  EXPECT_TRUE(open.empty());
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
}

TEST(Html, NeedsNothingElseAndIsWellFormed) {
  const NamedResult named{"a.json", a_result()};
  const std::string html = to_html(make_page(std::span(&named, 1)));
  expect_well_formed(html);
  for (const char* outside : {"http:", "https:", "src=", "href=", "<script", "@import", "url("})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(html.find("<desc id="), std::string::npos);
  EXPECT_NE(html.find("<th scope=\"row\">"), std::string::npos);
}

TEST(Html, NothingInAResultIsObeyed) {
  const std::vector<NamedResult> named = {
      {"<script>.json", a_hostile_result()}, {"b.json", {}}, {"c.json", a_result()}};
  for (size_t first = 0; first < named.size(); ++first) {
    const std::string html = to_html(make_page(std::span(named).subspan(first)));
    expect_well_formed(html);
    for (const char* live : {"<script", "<img", "</style></", "\x1b", "\xff", "\u202e"})
      EXPECT_EQ(html.find(live), std::string::npos) << live;
    // Only the page's own style ends a style.
    EXPECT_EQ(html.find("</style>"), html.rfind("</style>"));
  }
}

TEST(Markdown, NothingInAResultIsObeyed) {
  const NamedResult named{"a.json", a_hostile_result()};
  const std::string markdown = to_markdown(make_page(std::span(&named, 1)));
  for (const char* live : {"<script", "<img", "\x1b", "\xff", "[x](", "@everyone", "\u202e"})
    EXPECT_EQ(markdown.find(live), std::string::npos) << live;
  EXPECT_EQ(markdown_escaped("a|b`c*<d>\n# e"), "a\\|b\\`c\\*&lt;d&gt; \\# e");
}

TEST(Markdown, CountsAreWholeAndNothingIsEmpty) {
  ResultFile result = a_result();
  result.workload = {.name = "a prompt of 8 tokens"};
  result.rows[0].ttft_s = 0.00102;
  const NamedResult named{"a.json", result};
  const std::string markdown = to_markdown(make_page(std::span(&named, 1)));
  EXPECT_EQ(markdown.find("(empty)"), std::string::npos);
  EXPECT_EQ(markdown.find("0 requests"), std::string::npos);
  EXPECT_NE(markdown.find("| Workload | a prompt of 8 tokens |"), std::string::npos);
  EXPECT_NE(markdown.find("| default | 400 |"), std::string::npos);  // tokens of five runs
  EXPECT_NE(markdown.find("| 1.02 |"), std::string::npos);           // milliseconds
}

TEST(Markdown, EveryRowOfATableHasItsColumns) {
  const NamedResult named{"a.json", a_result()};
  const std::string markdown = to_markdown(make_page(std::span(&named, 1)));
  size_t begin = 0, columns = 0, n_rows = 0;
  while (begin < markdown.size()) {
    const size_t end = markdown.find('\n', begin);
    const std::string line = markdown.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with('|')) {
      columns = 0;
      continue;
    }
    const auto n = static_cast<size_t>(std::ranges::count(line, '|'));
    if (columns == 0) columns = n;
    EXPECT_EQ(n, columns) << line;
    ++n_rows;
  }
  EXPECT_GT(n_rows, 60u);
  EXPECT_NE(markdown.find("| default | measured | 4 GiB | auto | 50.0 (49.0 to 51.0) |"), std::string::npos);
}

}  // namespace
}  // namespace spillway::report
