#include "cli/verify.h"

#include "base/limits.h"
#include "cli/arguments.h"
#include "cli/common.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"

namespace spillway::cli {
namespace {

Result<int> verify(const VerifyFlags& flags, const CLI::App& command) {
  catch_interrupts();
  return flags.exact ? verify_exact(flags, command) : verify_quality(flags, command);
}

void add_quality_options(CLI::App& command, VerifyFlags& flags) {
  const char* group = "Without --exact: what is compared with the CPU alone (KV cache of f16)";
  command.add_option("--against", flags.against, "another file of the same model; may be given again")
      ->group(group);
  command
      .add_option("-f,--file", flags.text_file, "text to run instead of the built-in one; -: standard input")
      ->group(group);
  command
      .add_option("-n,--generate", flags.generate,
                  "tokens of the answer that each generates (the likeliest every time); 0: none")
      ->check(CLI::Range(0u, limits::kMaxContext))
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--max-kl", flags.limits.max_kl,
          "most mean divergence (Kullback-Leibler, nats); all three limits are for other files and KV "
          "types: other settings must give every bit")
      ->check(NumberWithin(0, 1e6))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--min-top1", flags.limits.min_top1,
                  "least share of tokens at which both find the same next one likeliest")
      ->check(NumberWithin(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--max-ppl-ratio", flags.limits.max_perplexity_ratio,
                  "most perplexity as a multiple of the reference's")
      ->check(NumberWithin(0, 1e6))
      ->capture_default_str()
      ->group(group);
  command.add_option("--out", flags.out, "write a result file, for 'spillway report'")->group(group);
  command
      .add_option("--scratch-mib", flags.scratch_mib,
                  "most disk space for the reference's logits (in TMPDIR, or /tmp)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 24))
      ->capture_default_str()
      ->group(group);
}

// In place of the options of a single value: --device, the size and share of the cache take lists as they
// are, being texts.
void take_lists(CLI::App& command, LoadFlags& load) {
  for (const auto& [name, to, help] :
       {std::tuple("--ctk,--cache-type-k", &load.key_type, "types of the cached keys to compare: f16, f32"),
        std::tuple("--ctv,--cache-type-v", &load.value_type,
                   "types of the cached values to compare: f16, f32")}) {
    const std::string first(name, std::string_view(name).find(','));
    command.remove_option(command.get_option(first));
    command.add_option(name, *to, help)->capture_default_str()->group("Model and memory");
  }
}

}  // namespace

Result<std::unique_ptr<engine::Engine>> load_quietly(const engine::Options& options) {
  ProgressBar bar("loading", ProgressBar::Unit::kBytes);
  auto engine = engine::Engine::load(options, [&](uint64_t done, uint64_t total) {
    bar.update(done, total);
    return !interrupted();
  });
  bar.clear();
  return engine;
}

void add_verify(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = app.add_subcommand("verify",
                                         "Compare settings, KV types and files with a reference: equal bits "
                                         "where promised, else how much quality "
                                         "is lost");
  command->add_flag(
      "--exact", flags->exact,
      "compare the logits of ten cache settings on the device with those of the CPU, byte for byte");
  command
      ->add_option("--tokens", flags->tokens,
                   "tokens of text to run; 0: 96 with --exact, else 512 or all there are")
      ->check(CLI::Range(0u, limits::kMaxContext));
  command->add_flag("--json", flags->json, "print JSON");
  flags->load.add_to(*command);
  take_lists(*command, flags->load);
  add_quality_options(*command, *flags);
  command->callback([flags, command, &exit_code] {
    const auto result = verify(*flags, *command);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace spillway::cli
