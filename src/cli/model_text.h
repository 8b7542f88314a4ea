// The text side of a model file: its tokenizer and chat template, from the metadata.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "gguf/metadata.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace spillway::cli {

// The tokenizer of the file, which errors name as `path`. `embedding_rows` of the model must be at least the
// number of tokens.
Result<std::unique_ptr<text::Tokenizer>> load_tokenizer(const std::string& path,
                                                        const gguf::Metadata& metadata,
                                                        uint32_t embedding_rows,
                                                        std::optional<std::string> pre = {});

// The template in `override_file`, or the file's own; nothing where neither exists.
Result<std::optional<text::ChatTemplate>> load_chat_template(const gguf::Metadata& metadata,
                                                             const text::Vocabulary& vocabulary,
                                                             const std::string& override_file);

// A whole text file, of at most `max_bytes`.
Result<std::string> read_text_file(const std::string& path, uint64_t max_bytes);
Result<std::string> read_standard_input(uint64_t max_bytes);

}  // namespace spillway::cli
