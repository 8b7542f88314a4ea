#include "cli/model_text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/limits.h"

namespace spillway::cli {
namespace {

using gguf::Metadata;

Result<std::optional<uint32_t>> find_id(const Metadata& metadata, std::string_view name) {
  SW_ASSIGN(const auto value,
            metadata.find_uint(fmt::format("tokenizer.ggml.{}_token_id", name), limits::kMaxVocabulary));
  return value ? std::optional(static_cast<uint32_t>(*value)) : std::nullopt;
}

Result<text::SpecialIds> read_special_ids(const Metadata& metadata) {
  text::SpecialIds ids;
  SW_ASSIGN(ids.bos, find_id(metadata, "bos"));
  SW_ASSIGN(ids.eos, find_id(metadata, "eos"));
  SW_ASSIGN(ids.eot, find_id(metadata, "eot"));
  SW_ASSIGN(ids.eom, find_id(metadata, "eom"));
  SW_ASSIGN(ids.unk, find_id(metadata, "unknown"));
  SW_ASSIGN(ids.sep, find_id(metadata, "seperator"));  // the format's spelling
  SW_ASSIGN(ids.pad, find_id(metadata, "padding"));
  SW_ASSIGN(ids.fim_prefix, find_id(metadata, "fim_pre"));
  SW_ASSIGN(ids.fim_suffix, find_id(metadata, "fim_suf"));
  SW_ASSIGN(ids.fim_middle, find_id(metadata, "fim_mid"));
  SW_ASSIGN(ids.fim_pad, find_id(metadata, "fim_pad"));
  SW_ASSIGN(ids.fim_repo, find_id(metadata, "fim_rep"));
  SW_ASSIGN(ids.fim_separator, find_id(metadata, "fim_sep"));
  return ids;
}

std::vector<std::string> to_strings(const gguf::StringArray& array) {
  std::vector<std::string> strings;
  strings.reserve(array.size());
  for (size_t i = 0; i < array.size(); ++i) strings.emplace_back(array[i]);
  return strings;
}

// By errno. A wait for a pipe that a signal ended is a stop, and no fault of the file's.
std::unexpected<Error> unreadable(const std::string& name, const char* what) {
  if (errno == EINTR) return fail(Error::Kind::kCancelled, "stopped while waiting for {}", name);
  return fail(errno == ENOENT ? Error::Kind::kNotFound : Error::Kind::kIo, "{} {}: {}", name, what,
              std::strerror(errno));
}

Result<std::string> read_all(std::FILE* file, const std::string& name, uint64_t max_bytes) {
  std::string text;
  char buffer[1 << 16];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), file)) {
    if (text.size() + n > max_bytes)
      return invalid("{} is longer than the limit of {} bytes", name, max_bytes);
    text.append(buffer, n);
  }
  if (std::ferror(file)) return unreadable(name, "could not be read");
  return text;
}

Result<std::unique_ptr<text::Tokenizer>> read_tokenizer(const Metadata& metadata, uint32_t embedding_rows,
                                                        std::optional<std::string> pre) {
  text::VocabularyData data;
  SW_ASSIGN(const std::string_view kind, metadata.require_string("tokenizer.ggml.model"));
  data.kind = std::string(kind);
  SW_ASSIGN(const auto file_pre, metadata.find_string("tokenizer.ggml.pre"));
  if (file_pre) data.pre = std::string(*file_pre);
  SW_ASSIGN(const gguf::StringArray* tokens, metadata.require_string_array("tokenizer.ggml.tokens"));
  data.tokens = to_strings(*tokens);
  SW_ASSIGN(auto scores, metadata.find_float_array("tokenizer.ggml.scores"));
  if (scores) data.scores = std::move(*scores);
  SW_ASSIGN(auto types, metadata.find_int_array("tokenizer.ggml.token_type"));
  if (types) data.types = std::move(*types);
  SW_ASSIGN(const gguf::StringArray* merges, metadata.find_string_array("tokenizer.ggml.merges"));
  if (merges) data.merges = to_strings(*merges);
  SW_ASSIGN(data.ids, read_special_ids(metadata));
  SW_ASSIGN(auto more_ends, metadata.find_int_array("tokenizer.ggml.eos_token_ids"));
  if (more_ends)
    for (const int32_t id : *more_ends) data.end_of_generation.push_back(static_cast<uint32_t>(id));
  SW_ASSIGN(data.add_bos, metadata.find_bool("tokenizer.ggml.add_bos_token"));
  SW_ASSIGN(data.add_eos, metadata.find_bool("tokenizer.ggml.add_eos_token"));
  SW_ASSIGN(data.add_space_prefix, metadata.find_bool("tokenizer.ggml.add_space_prefix"));
  SW_ASSIGN(data.remove_extra_whitespaces, metadata.find_bool("tokenizer.ggml.remove_extra_whitespaces"));

  if (data.tokens.size() > embedding_rows)
    return invalid("key 'tokenizer.ggml.tokens' has {} tokens, tensor 'token_embd.weight' only {} rows",
                   data.tokens.size(), embedding_rows);
  SW_ASSIGN(text::Vocabulary vocabulary, text::Vocabulary::create(std::move(data)));
  return text::Tokenizer::create(std::move(vocabulary), {.pre = std::move(pre)});
}

}  // namespace

Result<std::unique_ptr<text::Tokenizer>> load_tokenizer(const std::string& path, const Metadata& metadata,
                                                        uint32_t embedding_rows,
                                                        std::optional<std::string> pre) {
  auto tokenizer = read_tokenizer(metadata, embedding_rows, std::move(pre));
  if (!tokenizer) return std::unexpected(tokenizer.error().in(path));
  return tokenizer;
}

Result<std::optional<text::ChatTemplate>> load_chat_template(const Metadata& metadata,
                                                             const text::Vocabulary& vocabulary,
                                                             const std::string& override_file) {
  std::string source;
  std::string where = "key 'tokenizer.chat_template'";
  if (!override_file.empty()) {
    SW_ASSIGN(source, read_text_file(override_file, limits::kMaxTemplateBytes));
    where = override_file;
  } else {
    SW_ASSIGN(const auto own, metadata.find_string("tokenizer.chat_template"));
    if (!own) return std::nullopt;
    source = std::string(*own);
  }
  const auto text_of = [&](const std::optional<uint32_t>& id) {
    return id ? std::string(vocabulary.text(*id)) : std::string();
  };
  const text::SpecialIds& ids = vocabulary.ids();
  auto parsed = text::ChatTemplate::parse(
      source,
      {.bos = text_of(ids.bos), .eos = text_of(ids.eos), .pad = text_of(ids.pad), .unk = text_of(ids.unk)});
  if (!parsed) return std::unexpected(parsed.error().in(where));
  return std::optional(std::move(*parsed));
}

Result<std::string> read_text_file(const std::string& path, uint64_t max_bytes) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return unreadable(fmt::format("file '{}'", path), "cannot be opened");
  auto text = read_all(file, fmt::format("file '{}'", path), max_bytes);
  std::fclose(file);
  return text;
}

Result<std::string> read_standard_input(uint64_t max_bytes) {
  return read_all(stdin, "standard input", max_bytes);
}

}  // namespace spillway::cli
