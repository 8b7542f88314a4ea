// `spillway report RESULT...`: one page from what bench, tune, plan, verify and probe wrote.
#include <filesystem>

#include "base/limits.h"
#include "cli/common.h"
#include "cli/model_text.h"
#include "cli/output_file.h"
#include "report/html.h"
#include "report/markdown.h"
#include "tune/profile_result.h"

namespace spillway::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> results;
  std::string out;
  bool markdown = false;
};

// What probe writes is a hardware profile, which has a format of its own.
Result<report::ResultFile> parse_any(std::string_view text) {
  if (!tune::is_profile_file(text)) return report::parse_result(text);
  SW_ASSIGN(const tune::ProfileFile file, tune::parse_profile_file(text));
  return tune::result_of(file);
}

Result<report::NamedResult> read_result(const std::string& path) {
  SW_ASSIGN(const std::string text, read_text_file(path, limits::kMaxResultBytes));
  auto result = parse_any(text);
  if (!result) return std::unexpected(result.error().in(path));
  return report::NamedResult{std::filesystem::path(path).filename().string(), *std::move(result)};
}

// Where a page goes that was not told where: beside the first result, unless something else lies there.
Result<std::string> page_beside(const std::string& result) {
  std::string path = std::filesystem::path(result).replace_extension(".html").string();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return path;
  const auto there = read_text_file(path, limits::kMaxResultBytes);
  if (there && there->starts_with(report::kHtmlBegin)) return path;
  return fail(Error::Kind::kIo,
              "'{}' is there already and was not written by 'spillway report': choose a name with --out",
              path);
}

Result<void> make_report(const ReportFlags& flags) {
  std::vector<report::NamedResult> results;
  for (const std::string& path : flags.results) {
    SW_ASSIGN(results.emplace_back(), read_result(path));
  }
  const report::Page page = report::make_page(results);
  std::string out = flags.out;
  if (out.empty() && flags.markdown) out = "-";
  if (out.empty()) {
    SW_ASSIGN(out, page_beside(flags.results[0]));
  }
  SW_TRY(check_output_file(out, flags.results));
  SW_TRY(write_output_file(out, flags.markdown ? report::to_markdown(page) : report::to_html(page)));
  if (out != "-") fmt::print("{}\n", out);
  return {};
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand(
      "report", "Make one page with charts from results of bench, tune, plan, verify and probe");
  command->add_option("results", flags->results, "result files (JSON)")->required();
  command->add_option("--out", flags->out,
                      "file to write, - for standard output; without it, the first result's name with .html");
  command->add_flag("--md", flags->markdown,
                    "Markdown for pasting into a discussion, to standard output unless --out is given");
  command->callback([flags, &exit_code] {
    const auto result = make_report(*flags);
    exit_code = result ? finish_output() : report(result.error());
  });
}

}  // namespace spillway::cli
