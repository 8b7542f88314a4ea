// Promise 1 across devices: the same logits, byte for byte, wherever an expert ran and a layer lay. Every
// cell of a pairwise covering set and of seeded random ones is a whole run of a model with one choice of
// everything; each also says by its counters that the choice was in force.
//
// SPILLWAY_EXACT=full runs the whole product on the host device (./dev test exact-full), or with
// SPILLWAY_EXACT_PART=I/N the I-th part of N; SPILLWAY_EXACT_SEED sets the seed of the random cells, and
// under a sanitizer that of the tenth of the cells that is run.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>

#include "engine/devices.h"
#include "support/pairwise.h"
#include "support/run_engine.h"
#include "support/sanitizers.h"

namespace spillway {
namespace {

using namespace test_support;
using engine::CacheSize;

struct File {
  const char* name;
  ModelSpec spec;
};

// All 16 types of matrices, dense and expert, in shapes off every power of two.
const ModelSpec kSuper{.layers = 3, .hidden = 256, .head_length = 64, .experts = 8, .expert_width = 256};
const ModelSpec kBlocks{.layers = 3, .hidden = 64, .experts = 12, .used = 3};
const ModelSpec kShared{.family = "qwen2moe",
                        .layers = 2,
                        .hidden = 96,
                        .kv_heads = 1,
                        .head_length = 24,
                        .experts = 7,
                        .used = 3,
                        .expert_width = 160,
                        .shared_width = 64,
                        .vocabulary = 301};
const ModelSpec kOdd{.family = "llama",
                     .layers = 2,
                     .hidden = 72,
                     .heads = 3,
                     .kv_heads = 1,
                     .head_length = 20,
                     .experts = 9,
                     .used = 4,
                     .expert_width = 37,
                     .vocabulary = 301};
const ModelSpec kFull{.family = "olmoe",
                      .layers = 2,
                      .hidden = 256,
                      .heads = 8,
                      .kv_heads = 8,
                      .head_length = 32,
                      .experts = 6,
                      .expert_width = 256};

ModelSpec typed(ModelSpec spec, TensorType dense, TensorType experts) {
  spec.type = dense;
  spec.expert_type = experts;
  return spec;
}

const File kFiles[] = {
    {"Q8_0", typed(kBlocks, TensorType::kQ8_0, TensorType::kQ8_0)},
    {"Q6_K_with_Q4_K", typed(kSuper, TensorType::kQ6_K, TensorType::kQ4_K)},
    {"Q5_K_with_Q6_K", typed(kSuper, TensorType::kQ5_K, TensorType::kQ6_K)},
    {"Q3_K_with_Q2_K", typed(kFull, TensorType::kQ3_K, TensorType::kQ2_K)},
    {"F16_with_F32", typed(kOdd, TensorType::kF16, TensorType::kF32)},
    {"BF16_with_F16", typed(kOdd, TensorType::kBF16, TensorType::kF16)},
    {"Q5_0_with_MXFP4", typed(kShared, TensorType::kQ5_0, TensorType::kMXFP4)},
    {"Q5_1_with_Q4_1", typed(kShared, TensorType::kQ5_1, TensorType::kQ4_1)},
    {"Q4_0_with_IQ4_NL", typed(kBlocks, TensorType::kQ4_0, TensorType::kIQ4_NL)},
    {"IQ4_XS_with_Q8_0", typed(kSuper, TensorType::kIQ4_XS, TensorType::kQ8_0)},
};

// The parameters of a cell, each a list of texts as flags take them.
const std::vector<std::string> kCache = {"0", "5s", "10%", "50%", "100%"};
const std::vector<std::string> kShare = {"0", "0.3", "1", "auto"};
const std::vector<std::string> kPolicy = {"crf", "lru", "static", "b12191"};
const std::vector<std::string> kPromote = {"unset", "on", "off", "auto"};
const std::vector<std::string> kAdmit = {"unset", "0", "2", "auto"};
const std::vector<backend::KvTypes> kKv = {{backend::KvType::kF16, backend::KvType::kF16},
                                           {backend::KvType::kF32, backend::KvType::kF32},
                                           {backend::KvType::kF16, backend::KvType::kF32},
                                           {backend::KvType::kF32, backend::KvType::kF16}};
const std::vector<bool> kPin = {true, false};
const std::vector<uint32_t> kThreads = {1, 2, 3};
const std::vector<uint32_t> kPieces = {1, 2, 7, 33, 200};
const std::vector<std::string> kLayers = {"auto", "0", "1", "all but the output"};
const std::vector<engine::LoadMode> kModes = {engine::LoadMode::kRead, engine::LoadMode::kMmap,
                                              engine::LoadMode::kDirect};

std::vector<std::string> devices() {
  std::vector<std::string> names = {"none", "host"};
  for (const backend::DeviceInfo& info : engine::list_devices())
    if (info.id.starts_with("vulkan")) {
      names.push_back(info.id);
      break;
    }
  return names;
}

struct Cell {
  std::string cache, share, policy, promote, device, layers, admit;
  uint32_t kv = 0;
  bool pin = true;
  uint32_t threads = 1, piece = 1;
  engine::LoadMode mode = engine::LoadMode::kRead;
  uint32_t file = 0;

  std::string text() const {
    return fmt::format(
        "{} on {}, cache {}, share {}, policy {}, promote {}, admit {}, -ngl {}, {} threads, pieces of {}, "
        "-lm {}, KV {}/{}, {}",
        kFiles[file].name, device, cache, share, policy, promote, admit, layers, threads, piece,
        engine::load_mode_name(mode), backend::kv_type_name(kKv[kv].key),
        backend::kv_type_name(kKv[kv].value), pin ? "pinned" : "not pinned");
  }
};

constexpr uint32_t kContext = 256;
constexpr uint32_t kPrompt = 200;
constexpr uint32_t kSingle = 12;  // then token by token

uint64_t random_seed() {
  const char* text = std::getenv("SPILLWAY_EXACT_SEED");
  const uint64_t seed = text ? std::strtoull(text, nullptr, 10) : 20261130;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// The cells to run: all; under a sanitizer a random one of each ten. There a cell takes about ten times as
// long, and what is looked for are faults of code, which a tenth of the cells walks through as the whole
// does, and not a difference of bits, which the other builds look for in all of them.
template <class T>
std::vector<T> to_run(const std::vector<T>& all, Random& random) {
  constexpr size_t kOneOf = 10;
  if (!kSanitized) return all;
  std::vector<T> some;
  for (size_t i = 0; i < all.size(); i += kOneOf)
    some.push_back(all[i + random.below(static_cast<uint32_t>(std::min(kOneOf, all.size() - i)))]);
  return some;
}

class Exact : public testing::Test {
 protected:
  static const ModelFile& file(uint32_t index) {
    static std::map<uint32_t, std::unique_ptr<ModelFile>> files;
    auto& entry = files[index];
    if (!entry) entry = std::make_unique<ModelFile>(kFiles[index].spec);
    return *entry;
  }
  static std::vector<float> run(engine::Engine& engine, uint32_t file_index, uint32_t piece) {
    const auto tokens = random_tokens(kPrompt + kSingle, kFiles[file_index].spec.vocabulary, 5);
    const engine::SequenceId sequence = engine.open_sequence();
    std::vector<float> all = append(engine, sequence, std::span(tokens).first(kPrompt), piece);
    const std::vector<float> rest = append(engine, sequence, std::span(tokens).subspan(kPrompt), 1);
    all.insert(all.end(), rest.begin(), rest.end());
    engine.close_sequence(sequence);
    return all;
  }
  static const std::vector<float>& reference(uint32_t index, uint32_t kv) {
    static std::map<std::pair<uint32_t, uint32_t>, std::vector<float>> logits;
    auto& entry = logits[{index, kv}];
    if (entry.empty()) {
      const auto engine =
          load_engine(file(index),
                      {.threads = 1, .context = kContext, .kv_types = kKv[kv], .device = {.device = "none"}});
      entry = run(*engine, index, 0);
    }
    return entry;
  }

  static engine::Options options(const Cell& cell) {
    engine::Options options{.load_mode = cell.mode,
                            .threads = cell.threads,
                            .context = kContext,
                            .ubatch = 256,
                            .kv_types = kKv[cell.kv]};
    engine::DeviceOptions& d = options.device;
    d.device = cell.device;
    const auto n = kFiles[cell.file].spec.layers;
    if (cell.layers == "0") d.layers = 0;
    if (cell.layers == "1") d.layers = 1;
    if (cell.layers == "all but the output") d.layers = n;
    d.experts_on_host = true;
    d.pin = cell.pin;
    d.cache = *engine::parse_cache_size(cell.cache);
    d.host.memory_bytes = 256 << 20;
    experts::PlannerSettings& p = d.planner;
    p.policy.kind = *experts::parse_policy(cell.policy);
    p.cpu_share =
        cell.share == "auto" ? experts::Choice::automatic() : experts::Choice::number(std::stod(cell.share));
    if (cell.admit != "unset")
      p.admit = cell.admit == "auto" ? experts::Choice::automatic()
                                     : experts::Choice::number(std::stod(cell.admit));
    if (cell.promote != "unset")
      p.promote = cell.promote == "on"    ? experts::Promotion::kOn
                  : cell.promote == "off" ? experts::Promotion::kOff
                                          : experts::Promotion::kAuto;
    return options;
  }

  static void check_counters(const Cell& cell, const engine::Engine& engine) {
    const engine::ExpertStats stats = engine.expert_stats();
    const experts::Counters all = stats.total.all();
    if (cell.device == "none" || cell.layers == "0") {
      EXPECT_EQ(all.plans, 0u);
      EXPECT_EQ(engine.placement().n_planned_layers(), 0u);
      return;
    }
    const ModelSpec& spec = kFiles[cell.file].spec;
    const uint32_t layers = cell.layers == "1" ? 1 : spec.layers;
    ASSERT_EQ(engine.placement().n_planned_layers(), layers);
    const uint32_t steps = (kPrompt + cell.piece - 1) / cell.piece + kSingle;
    EXPECT_EQ(all.plans, uint64_t{steps} * layers);
    EXPECT_EQ(all.tokens, uint64_t{kPrompt + kSingle} * layers);
    EXPECT_EQ(stats.times.waits, all.plans) << "one wait a layer";
    EXPECT_EQ(all.failed, 0u);
    // Each distinct expert of a plan is a hit or a miss, and is computed in exactly one place.
    EXPECT_EQ(all.misses, all.cpu + all.uploaded + all.streamed + all.joined);
    const uint64_t slots = engine.placement().cache_slots();
    EXPECT_LE(all.evicted, all.uploaded + all.promoted);
    if (slots == 0) {
      EXPECT_EQ(all.hits, 0u);
      EXPECT_EQ(all.uploaded + all.promoted, 0u);
    }
    if (cell.cache == "100%") {
      // With auto a cache that does not pay is given up.
      if (cell.share != "auto") {
        EXPECT_EQ(all.evicted, 0u);
        EXPECT_GT(all.hits, 0u);
        EXPECT_EQ(all.cpu, 0u) << "the cache holds everything, so nothing is missed once it is full";
      }
    }
    const bool promotes = cell.promote == "on" || cell.promote == "auto" ||
                          (cell.promote == "unset" && cell.share == "auto" && cell.policy != "b12191");
    if (!promotes) {
      EXPECT_EQ(all.promoted, 0u);
    }
    // A share of 0 computes nothing on the CPU, where the device can take it all.
    if (cell.share == "0" && slots > 0) {
      EXPECT_EQ(all.cpu, 0u);
    }
    // A share of 1 leaves nothing to upload once the cache is full. (The reference only reads a cache that a
    // token's experts don't fit into, and copies what it misses.)
    const bool only_reads = cell.policy == "b12191" && slots < spec.used;
    if (cell.share == "1" && slots > 0 && slots < uint64_t{layers} * spec.experts && !only_reads) {
      EXPECT_GT(all.cpu, 0u);
    }
  }

  static void check(const Cell& cell) {
    SCOPED_TRACE(cell.text());
    const auto engine = load_engine(file(cell.file), options(cell));
    const std::vector<float> logits = run(*engine, cell.file, cell.piece);
    const std::vector<float>& expected = reference(cell.file, cell.kv);
    ASSERT_EQ(logits.size(), expected.size());
    if (std::memcmp(logits.data(), expected.data(), logits.size() * sizeof(float)) != 0) {
      const uint32_t width = kFiles[cell.file].spec.vocabulary;
      size_t first = 0, differ = 0;
      for (size_t i = logits.size(); i-- > 0;)
        if (std::memcmp(&logits[i], &expected[i], sizeof(float)) != 0) first = i, ++differ;
      ADD_FAILURE() << differ << " logits differ, the first at token " << first / width << ", "
                    << logits[first] << " for " << expected[first];
    }
    check_counters(cell, *engine);
  }

  static std::vector<uint32_t> sizes(const std::vector<std::string>& device_names) {
    const auto n = [](const auto& list) { return static_cast<uint32_t>(std::size(list)); };
    return {n(kCache),  n(kShare), n(kPolicy), n(kPromote), n(kThreads), n(kPieces), n(device_names),
            n(kLayers), n(kModes), n(kFiles),  n(kAdmit),   n(kKv),      n(kPin)};
  }
  static Cell cell(const std::vector<uint32_t>& row, const std::vector<std::string>& device_names) {
    return {.cache = kCache[row[0]],
            .share = kShare[row[1]],
            .policy = kPolicy[row[2]],
            .promote = kPromote[row[3]],
            .device = device_names[row[6]],
            .layers = kLayers[row[7]],
            .admit = kAdmit[row[10]],
            .kv = row[11],
            .pin = kPin[row[12]],
            .threads = kThreads[row[4]],
            .piece = kPieces[row[5]],
            .mode = kModes[row[8]],
            .file = row[9]};
  }
};

TEST_F(Exact, PairsOfSettings) {
  const auto names = devices();
  if (names.size() < 3) std::puts("SKIPPED the Vulkan cells: this machine has no Vulkan device");
  std::vector<Cell> cells;
  for (const uint64_t seed : {1, 2})  // two sets: about 110 cells
    for (const auto& row : covering_array(sizes(names), seed)) cells.push_back(cell(row, names));
  EXPECT_GE(cells.size(), 100u);
  Random random(random_seed());
  const std::vector<Cell> chosen = to_run(cells, random);
  for (const Cell& one : chosen) check(one);
  std::printf("%zu of %zu cells\n", chosen.size(), cells.size());
}

TEST_F(Exact, RandomSettings) {
  Random random(random_seed());
  const auto names = devices();
  std::vector<Cell> cells;
  for (int i = 0; i < 50; ++i) {
    std::vector<uint32_t> row;
    for (const uint32_t size : sizes(names)) row.push_back(random.below(size));
    cells.push_back(cell(row, names));
  }
  for (const Cell& one : to_run(cells, random)) check(one);
}

// Every combination, on every file, of what decides where an expert is computed: cache, share, policy,
// promotion and admission, with -ngl and the pieces of the prompt. Without a cache the policy, promotion and
// admission decide nothing, nor does any of them with -ngl 0: these come once. What only changes how the same
// work is done (threads, load mode, KV types, pinning) turns from cell to cell instead of multiplying them.
std::vector<Cell> whole_product() {
  std::vector<Cell> cells;
  const auto add = [&](Cell cell) {
    const auto n = static_cast<uint32_t>(cells.size());
    cell.device = "host";
    cell.threads = kThreads[n % kThreads.size()];
    cell.mode = kModes[n / 3 % kModes.size()];
    cell.kv = n / 9 % static_cast<uint32_t>(kKv.size());
    cell.pin = n / 36 % 2 == 0;
    cells.push_back(cell);
  };
  for (uint32_t file = 0; file < std::size(kFiles); ++file)
    for (const uint32_t piece : kPieces)
      for (const std::string& layers : kLayers) {
        Cell cell{.cache = "0",
                  .share = "auto",
                  .policy = "crf",
                  .promote = "unset",
                  .layers = layers,
                  .admit = "unset",
                  .piece = piece,
                  .file = file};
        if (layers == "0") {
          add(cell);
          continue;
        }
        for (const std::string& share : kShare) {
          cell.share = share;
          for (const std::string& cache : kCache) {
            cell.cache = cache;
            for (const std::string& policy : kPolicy)
              for (const std::string& promote : kPromote)
                for (const std::string& admit : kAdmit) {
                  // "unset" is one of the others, by the share and the policy.
                  if (promote == "unset" || admit == "unset") continue;
                  Cell one = cell;
                  if (cache != "0") {
                    one.policy = policy, one.promote = promote, one.admit = admit;
                  } else if (policy != kPolicy[0] || promote != "on" || admit != "0") {
                    continue;
                  }
                  add(one);
                }
          }
        }
      }
  return cells;
}

TEST_F(Exact, WholeProductOnTheHostDevice) {
  const char* mode = std::getenv("SPILLWAY_EXACT");
  if (!mode || std::strcmp(mode, "full") != 0) GTEST_SKIP() << "./dev test exact-full runs the whole product";
  unsigned part = 1, parts = 1;
  if (const char* text = std::getenv("SPILLWAY_EXACT_PART")) {
    ASSERT_TRUE(std::sscanf(text, "%u/%u", &part, &parts) == 2 && part >= 1 && part <= parts)
        << "SPILLWAY_EXACT_PART is " << text << ", must be such as 2/8";
  }
  const std::vector<Cell> cells = whole_product();
  const size_t mine = (cells.size() - part) / parts + 1;
  // In steps of a number that shares no factor with theirs, so that a run that is stopped has seen some of
  // everything.
  size_t stride = cells.size() / 3 * 2 + 1;
  while (std::gcd(stride, cells.size()) != 1) ++stride;
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto next_line = start;
  for (size_t i = 0; i < mine; ++i) {
    check(cells[(i * parts + part - 1) * stride % cells.size()]);
    if (HasFailure()) return;
    const auto now = Clock::now();
    if (now < next_line && i + 1 < mine) continue;
    next_line = now + std::chrono::seconds(10);
    const double seconds = std::chrono::duration<double>(now - start).count();
    const auto done = static_cast<double>(i + 1);
    std::printf("part %u of %u: %zu of %zu cells, %.1f a second, %.0f minutes left\n", part, parts, i + 1,
                mine, done / seconds, static_cast<double>(mine - i - 1) * seconds / done / 60);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace spillway
