#include "text/vocabulary.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "text/special_tokens.h"

namespace spillway {
namespace text {
namespace {

constexpr std::string_view kKeys = "tokenizer.ggml.";

struct IdKey {
  std::string_view name;  // after "tokenizer.ggml."
  std::optional<uint32_t> SpecialIds::* id;
};
constexpr IdKey kIdKeys[] = {
    {"bos_token_id", &SpecialIds::bos},
    {"eos_token_id", &SpecialIds::eos},
    {"eot_token_id", &SpecialIds::eot},
    {"eom_token_id", &SpecialIds::eom},
    {"unknown_token_id", &SpecialIds::unk},
    {"seperator_token_id", &SpecialIds::sep},  // the format's spelling
    {"padding_token_id", &SpecialIds::pad},
    {"fim_pre_token_id", &SpecialIds::fim_prefix},
    {"fim_suf_token_id", &SpecialIds::fim_suffix},
    {"fim_mid_token_id", &SpecialIds::fim_middle},
    {"fim_pad_token_id", &SpecialIds::fim_pad},
    {"fim_rep_token_id", &SpecialIds::fim_repo},
    {"fim_sep_token_id", &SpecialIds::fim_separator},
};

Result<Vocabulary::Kind> kind_of(std::string_view name) {
  if (name == "gpt2") return Vocabulary::Kind::kByteLevelBpe;
  if (name == "llama") return Vocabulary::Kind::kSentencePieceBpe;
  if (name == "gemma4") return Vocabulary::Kind::kSentencePieceRanks;
  std::string_view what = "an unknown kind";
  if (name == "t5") what = "a unigram vocabulary";
  if (name == "bert") what = "a WordPiece vocabulary";
  if (name == "rwkv") what = "the RWKV trie vocabulary";
  if (name == "plamo2") what = "the PLaMo-2 vocabulary";
  if (name == "none") what = "a file without a vocabulary";
  return unsupported(
      "{}model is '{}' ({}); this program has encoders for 'gpt2' (byte-level BPE), 'llama' "
      "(SentencePiece BPE) and 'gemma4'",
      kKeys, name, what);
}

}  // namespace

Result<Vocabulary> Vocabulary::create(VocabularyData data) {
  Vocabulary vocabulary;
  SW_ASSIGN(vocabulary.kind_, kind_of(data.kind));
  vocabulary.data_ = std::move(data);
  SW_TRY(vocabulary.check_lengths());
  SW_TRY(vocabulary.check_ids());
  SW_TRY(vocabulary.read_types());
  SW_TRY(vocabulary.read_merges());
  vocabulary.index_tokens();
  vocabulary.set_sentence_piece_defaults();
  vocabulary.find_special_tokens();
  SW_TRY(vocabulary.set_flags());
  return vocabulary;
}

Result<void> Vocabulary::check_lengths() const {
  const size_t count = data_.tokens.size();
  if (count == 0)
    return invalid("{}tokens is empty or missing; a model's vocabulary needs at least one token", kKeys);
  if (count > limits::kMaxVocabulary)
    return invalid("{}tokens has {} entries; at most {} are supported", kKeys, count, limits::kMaxVocabulary);
  if (data_.scores.size() < count && (!data_.scores.empty() || kind_ == Kind::kSentencePieceBpe))
    return invalid("{}scores has {} entries, but {}tokens has {}: every token needs a score", kKeys,
                   data_.scores.size(), kKeys, count);
  if (data_.types.size() < count && !data_.types.empty())
    return invalid("{}token_type has {} entries, but {}tokens has {}: every token needs a type", kKeys,
                   data_.types.size(), kKeys, count);
  if (data_.merges.empty() && kind_ != Kind::kSentencePieceBpe)
    return invalid("{}merges is empty or missing, and {}model '{}' can't be encoded without it", kKeys, kKeys,
                   data_.kind);
  if (data_.merges.size() > limits::kMaxArrayLength)
    return invalid("{}merges has {} entries; at most {} are supported", kKeys, data_.merges.size(),
                   limits::kMaxArrayLength);
  for (size_t i = 0; i < count; ++i)
    if (data_.tokens[i].size() > limits::kMaxNameBytes)
      return invalid("{}tokens[{}] is {} bytes long; at most {} are supported", kKeys, i,
                     data_.tokens[i].size(), limits::kMaxNameBytes);
  return {};
}

Result<void> Vocabulary::check_ids() const {
  for (const IdKey& key : kIdKeys) {
    const std::optional<uint32_t>& id = data_.ids.*key.id;
    if (id && *id >= size())
      return invalid("{}{} is {}, but {}tokens has only {} entries", kKeys, key.name, *id, kKeys, size());
  }
  for (size_t i = 0; i < data_.end_of_generation.size(); ++i)
    if (data_.end_of_generation[i] >= size())
      return invalid("{}eos_token_ids[{}] is {}, but {}tokens has only {} entries", kKeys, i,
                     data_.end_of_generation[i], kKeys, size());
  return {};
}

Result<void> Vocabulary::read_types() {
  types_.assign(size(), TokenType::kNormal);
  if (data_.types.empty()) {
    // No type says which tokens are control tokens: those with a role that no text should take on.
    for (const auto id : {data_.ids.bos, data_.ids.eos, data_.ids.eot, data_.ids.eom, data_.ids.pad})
      if (id) types_[*id] = TokenType::kControl;
    if (data_.ids.unk) types_[*data_.ids.unk] = TokenType::kUnknown;
    return {};
  }
  for (uint32_t id = 0; id < size(); ++id) {
    const int32_t type = data_.types[id];
    if (type >= 1 && type <= 6) types_[id] = static_cast<TokenType>(type);
    if (types_[id] == TokenType::kByte && !byte_of_token(data_.tokens[id]))
      return invalid(
          "{}token_type[{}] is 6 (byte), but {}tokens[{}] is '{}'; a byte token is written <0x00> to <0xFF>",
          kKeys, id, kKeys, id, data_.tokens[id]);
  }
  return {};
}

Result<void> Vocabulary::read_merges() {
  if (kind_ == Kind::kSentencePieceBpe) return {};
  merges_.reserve(data_.merges.size());
  for (size_t i = 0; i < data_.merges.size(); ++i) {
    const std::string_view merge = data_.merges[i];
    // The first part may itself be a space in vocabularies that keep raw UTF-8, so the search starts behind
    // it.
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size())
      return invalid("{}merges[{}] is '{}'; it must be two token texts with a space between", kKeys, i,
                     merge);
    merges_.push_back({merge.substr(0, space), merge.substr(space + 1)});
  }
  return {};
}

void Vocabulary::index_tokens() {
  index_.reserve(size());
  uint32_t empty = 0, repeated = 0, example = 0;
  for (uint32_t id = 0; id < size(); ++id) {
    if (data_.tokens[id].empty()) {
      ++empty;
    } else if (!index_.emplace(data_.tokens[id], id).second) {
      if (repeated++ == 0) example = id;
    }
  }
  if (empty > 0)
    warnings_.push_back(fmt::format("{}tokens has {} empty texts; they are never encoded", kKeys, empty));
  if (repeated > 0)
    warnings_.push_back(fmt::format(
        "{}tokens has {} texts that stand there twice (first: '{}', {} and {}); the lower id is used", kKeys,
        repeated, data_.tokens[example], *find(data_.tokens[example]), example));
}

// Old SentencePiece files name no ids; their readers take those that every such model has.
void Vocabulary::set_sentence_piece_defaults() {
  if (kind_ != Kind::kSentencePieceBpe) return;
  const auto set = [this](std::optional<uint32_t>& id, std::string_view text, TokenType type) {
    const auto found = find(text);
    if (!id && found && types_[*found] == type) id = found;
  };
  set(data_.ids.bos, "<s>", TokenType::kControl);
  set(data_.ids.eos, "</s>", TokenType::kControl);
  set(data_.ids.unk, "<unk>", TokenType::kUnknown);
}

void Vocabulary::find_special_tokens() {
  SpecialTokens special{data_.ids, types_, data_.end_of_generation, shown_controls_, warnings_, {}};
  special.is_made_by_merges = [this](std::string_view token) {
    return std::ranges::any_of(merges_, [&](const Merge& merge) {
      return merge.left.size() + merge.right.size() == token.size() && token.starts_with(merge.left) &&
             token.ends_with(merge.right);
    });
  };
  special.file_has_types = !data_.types.empty();
  recognise_special_tokens([this](std::string_view token) { return find(token); }, special);
  end_of_generation_ = std::move(data_.end_of_generation);
  std::ranges::sort(end_of_generation_);
  std::ranges::sort(shown_controls_);
  end_of_generation_.erase(std::unique(end_of_generation_.begin(), end_of_generation_.end()),
                           end_of_generation_.end());
}

Result<void> Vocabulary::set_flags() {
  if (data_.add_bos.value_or(false) && !data_.ids.bos)
    return invalid("{}add_bos_token is true, but there is no {}bos_token_id", kKeys, kKeys);
  if (data_.add_eos.value_or(false) && !data_.ids.eos)
    return invalid("{}add_eos_token is true, but there is no {}eos_token_id", kKeys, kKeys);
  if (data_.remove_extra_whitespaces.value_or(false))
    warnings_.push_back(
        fmt::format("{}remove_extra_whitespaces is true; it is not applied to '{}' vocabularies, so that "
                    "every text decodes to itself",
                    kKeys, data_.kind));
  const bool sentence_piece = kind_ == Kind::kSentencePieceBpe;
  const bool bos_by_default = sentence_piece || kind_ == Kind::kSentencePieceRanks ||
                              (data_.pre && pre_tokenizer_adds_bos(*data_.pre));
  add_bos_ = data_.add_bos.value_or(bos_by_default) && data_.ids.bos.has_value();
  add_eos_ = data_.add_eos.value_or(false);
  // Only the encoders of SentencePiece put a space before a text. If decoding took one off elsewhere, a
  // text's own space would be lost.
  const bool byte_level = kind_ == Kind::kByteLevelBpe;
  add_space_prefix_ = data_.add_space_prefix.value_or(sentence_piece) && !byte_level;
  if (byte_level && data_.add_space_prefix.value_or(false))
    warnings_.push_back(fmt::format(
        "{}add_space_prefix is true; it is not applied to '{}' vocabularies (their encoders add no space)",
        kKeys, data_.kind));
  return {};
}

bool Vocabulary::is_shown_control(uint32_t id) const {
  return std::ranges::binary_search(shown_controls_, id);
}

bool Vocabulary::is_end_of_generation(int64_t id) const {
  return id >= 0 &&
         std::ranges::binary_search(end_of_generation_, id, {}, [](uint32_t x) { return int64_t{x}; });
}

std::optional<uint32_t> Vocabulary::find(std::string_view token_text) const {
  const auto found = index_.find(token_text);
  return found == index_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace text
}  // namespace spillway
