#include "gguf/shards.h"

#include <algorithm>
#include <charconv>

#include "base/checked.h"
#include "base/limits.h"
#include "gguf/names.h"

namespace spillway::gguf {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr size_t kDigits = 5;

// Takes kDigits digits from the end of `text`.
std::optional<uint32_t> take_digits(std::string_view& text) {
  if (text.size() < kDigits) return std::nullopt;
  const std::string_view digits = text.substr(text.size() - kDigits);
  if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  text.remove_suffix(kDigits);
  return number;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

bool is_split_key(std::string_view key) { return key.starts_with("split."); }

// Checks what file `i` of `count` says about its own place; the number of tensors that it claims for the
// model, if any.
Result<std::optional<uint64_t>> check_place(const Metadata& metadata, uint64_t i, uint64_t count) {
  SW_ASSIGN(const auto own_count, metadata.find_uint(kSplitCountKey, UINT16_MAX));
  SW_ASSIGN(const auto own_no, metadata.find_uint(kSplitNoKey, UINT16_MAX));
  SW_ASSIGN(const auto tensors, metadata.find_uint(kSplitTensorsKey, limits::kMaxTensors));
  const bool is_split = own_count.value_or(0) > 1;
  if (!is_split && count == 1) return std::nullopt;  // left over from a merge
  if (count == 1)
    return invalid(
        "it is shard {} of {} by its metadata ('{}', '{}'), but its name isn't of the form "
        "PREFIX-{:05}-of-{:05}.gguf; give it back that name, with the other shards beside it",
        own_no.value_or(0) + 1, *own_count, kSplitNoKey, kSplitCountKey, own_no.value_or(0) + 1, *own_count);
  if (!is_split)
    return invalid(
        "it is shard {} of {} by its name, but its metadata ('{}') says that it isn't split; rename it if it "
        "is "
        "a model of its own, else get the shard anew",
        i + 1, count, kSplitCountKey);
  if (*own_count != count)
    return invalid(
        "it is one of {} shards by its name, but one of {} by its metadata ('{}'); it belongs to another "
        "model "
        "or was renamed",
        count, *own_count, kSplitCountKey);
  if (!own_no) return invalid("key '{}' is missing; it needs to be {}", kSplitNoKey, i);
  if (*own_no != i)
    return invalid("it is shard {} by its name, but shard {} by its metadata ('{}' is {}); it was renamed",
                   i + 1, *own_no + 1, kSplitNoKey, *own_no);
  return tensors;
}

// A later shard repeats few keys or none; what it repeats must agree with the first.
Result<void> check_same_model(const Metadata& first, const Metadata& later) {
  for (const Metadata::Entry& entry : later.entries()) {
    if (is_split_key(entry.key)) continue;
    const Value* value = first.find(entry.key);
    if (value && !(*value == entry.value) && entry.key != "general.alignment")
      return invalid("its key {} is {}, but the first shard has {}; they belong to different models",
                     quoted(entry.key), entry.value.to_text(), value->to_text());
  }
  return {};
}

}  // namespace

std::optional<ShardName> parse_shard_name(std::string_view path) {
  std::string_view rest = path;
  if (!take_suffix(rest, kExtension)) return std::nullopt;
  const auto count = take_digits(rest);
  if (!count || !take_suffix(rest, "-of-")) return std::nullopt;
  const auto number = take_digits(rest);
  if (!number || !take_suffix(rest, "-") || rest.empty()) return std::nullopt;
  if (*number < 1 || *number > *count || *count > limits::kMaxShards) return std::nullopt;
  return ShardName{std::string(rest), *number, *count};
}

std::string shard_path(std::string_view prefix, uint32_t number, uint32_t count) {
  return fmt::format("{}-{:05}-of-{:05}{}", prefix, number, count, kExtension);
}

std::vector<std::string> shard_paths(std::string_view path) {
  const auto name = parse_shard_name(path);
  if (!name) return {std::string(path)};
  std::vector<std::string> paths;
  for (uint32_t number = 1; number <= name->count; ++number)
    paths.push_back(shard_path(name->prefix, number, name->count));
  return paths;
}

const TensorInfo* Model::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &tensors_[at->second];
}

Result<const TensorInfo*> Model::require(std::string_view name) const {
  if (const TensorInfo* tensor = find(name)) return tensor;
  return fail(Error::Kind::kNotFound,
              "tensor {} is missing; the file is not a complete model of its architecture", quoted(name));
}

uint64_t Model::tensor_bytes() const {
  uint64_t sum = 0;  // can't wrap: the tensors of a file don't overlap, and there are few files
  for (const TensorInfo& tensor : tensors_) sum += tensor.bytes;
  return sum;
}

Result<Model> Model::merge(std::vector<std::string> paths, std::vector<Header> headers) {
  if (paths.empty() || paths.size() != headers.size())
    return invalid("{} headers were given for {} files", headers.size(), paths.size());
  Model model;
  std::optional<uint64_t> claimed;
  for (size_t i = 0; i < headers.size(); ++i) {
    Result<std::optional<uint64_t>> own = check_place(headers[i].metadata, i, paths.size());
    if (!own) return std::unexpected(own.error().in(paths[i]));
    if (claimed && *own && *claimed != **own)
      return invalid("{}: key '{}' is {}, but an earlier shard has {}; they belong to different models",
                     paths[i], kSplitTensorsKey, **own, *claimed);
    if (!claimed) claimed = *own;
    if (i > 0) {
      Result<void> same = check_same_model(headers[0].metadata, headers[i].metadata);
      if (!same) return std::unexpected(same.error().in(paths[i]));
    }
    for (TensorInfo& tensor : headers[i].tensors) {
      tensor.shard = static_cast<uint32_t>(i);
      model.tensors_.push_back(std::move(tensor));
    }
  }
  if (claimed && *claimed != model.tensors_.size())
    return invalid(
        "{}: the model has {} tensors by key '{}', but its {} file{} hold {}; a shard belongs to another "
        "model "
        "or was changed",
        paths[0], *claimed, kSplitTensorsKey, paths.size(), paths.size() == 1 ? "" : "s",
        model.tensors_.size());
  model.index_.reserve(model.tensors_.size());
  for (size_t i = 0; i < model.tensors_.size(); ++i) {
    const auto [at, is_new] = model.index_.emplace(model.tensors_[i].name, i);
    if (!is_new)
      return invalid("tensor {} is in {} and in {}; the shards belong to different models",
                     quoted(model.tensors_[i].name), paths[model.tensors_[at->second].shard],
                     paths[model.tensors_[i].shard]);
  }
  model.metadata_ = std::move(headers[0].metadata);
  model.paths_ = std::move(paths);
  return model;
}

Result<Model> open_model(const std::string& path, const OpenHeader& open) {
  std::vector<std::string> paths = shard_paths(path);
  std::vector<Header> headers;
  std::string missing;
  for (const std::string& file : paths) {
    Result<Header> header = open(file);
    if (header) {
      headers.push_back(*std::move(header));
    } else if (header.error().kind == Error::Kind::kNotFound && paths.size() > 1) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", file);
    } else {
      Error error = std::move(header).error();  // one of opening the file names it already
      return std::unexpected(error.message.starts_with(file) ? error : error.in(file));
    }
  }
  if (!missing.empty())
    return fail(Error::Kind::kNotFound,
                "the model is split into {} files and these are missing: {}; put all of them into one folder",
                paths.size(), missing);
  return Model::merge(std::move(paths), std::move(headers));
}

}  // namespace spillway::gguf
