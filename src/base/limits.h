// Every limit on things that come from outside and can grow, in one place. A limit is checked where the thing
// enters, and the message names the value found and the limit.
#pragma once

#include <cstdint>

namespace spillway::limits {

// GGUF. A 200 B-parameter model has about 1,500 tensors and 60 metadata keys; its vocabulary arrays hold up
// to 300,000 strings. Each limit leaves two to three orders of magnitude.
inline constexpr uint64_t kMaxTensors = 1 << 20;
inline constexpr uint64_t kMaxMetadataKeys = 1 << 16;
inline constexpr uint64_t kMaxNameBytes = 1 << 16;  // the format's own bound on key length
inline constexpr uint64_t kMaxArrayLength = 1 << 26;
inline constexpr uint32_t kMaxArrayDepth = 8;  // arrays of arrays
inline constexpr uint32_t kMaxDims = 4;
inline constexpr uint64_t kMaxAlignment = 1 << 20;
inline constexpr uint32_t kMaxShards = 1024;
inline constexpr uint64_t kMostPadding = 4096;  // behind the last tensor, that nobody is told of

// Models.
inline constexpr uint32_t kMaxLayers = 1024;
inline constexpr uint32_t kMaxExperts = 4096;
inline constexpr uint32_t kMaxExpertsUsed = 256;
inline constexpr uint32_t kMaxHiddenLength = 1 << 20;
inline constexpr uint32_t kMaxHeadLength = 1024;  // 576 is the largest published (MLA)
inline constexpr uint32_t kMaxVocabulary = 1 << 24;
inline constexpr uint32_t kMaxContext = 1 << 24;

// Text.
inline constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;  // a prompt
inline constexpr uint64_t kMaxTemplateBytes = 1 << 20;
inline constexpr uint32_t kMaxTemplateDepth = 128;         // nested blocks, expressions, macro calls
inline constexpr uint64_t kMaxTemplateSteps = 20'000'000;  // evaluated nodes: stops endless templates
inline constexpr uint64_t kMaxTemplateOutputBytes = 256 << 20;
inline constexpr uint64_t kMaxTemplateMemoryBytes = 256 << 20;  // live values of one rendering

// Running.
inline constexpr uint32_t kMaxThreads = 1024;
inline constexpr uint32_t kMaxUbatch = 1 << 16;
inline constexpr uint32_t kMaxStopStrings = 64;

// Records. A run of an hour at 100 tok/s keeps 360,000 latencies, 4 MiB as JSON.
inline constexpr uint64_t kMaxResultBytes = 256 << 20;
inline constexpr uint64_t kMaxTraceBytes = uint64_t{4} << 30;  // half a day of decoding at 100 tok/s
inline constexpr uint64_t kMaxProfileBytes = 1 << 20;
inline constexpr uint32_t kMaxJsonDepth = 64;      // of any JSON that is read; results need 5
inline constexpr uint32_t kMaxJsonMembers = 4096;  // of one object; results need some 40

// Workloads. Hours of work for any machine.
inline constexpr uint64_t kMaxWorkloadBytes = 64 << 20;
inline constexpr uint32_t kMaxConversations = 10'000;
inline constexpr uint32_t kMaxTurns = 1000;  // of one conversation
inline constexpr uint32_t kMaxUsers = 256;
inline constexpr uint32_t kMaxRepetitions = 1000;

}  // namespace spillway::limits
