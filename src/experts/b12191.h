// The reference: how llama.cpp b12191 replaces experts, written from the description of its behaviour.
//
// Scores are decayed use counts with a half-life of 128 tokens, kept across evictions, the clock per layer.
// An expert that is used goes to the tail of the list of its class, class = floor(log2(score)) within 0..7
// (just used, its score is at least 1; a count that is fed every token tends to 185, so 8 classes span it).
// The victim is, of the eight lists' heads, the one with the largest age / 2^class, age being the tokens of
// its layer since it was put there; equal: the lower class.
//
// The rest of the reference's rules are the planner's (experts/planner.h): micro-batches of 1 to 32 tokens
// that fit the slots change the cache, larger ones only read it; no floors, no admission test, no promotion.
#pragma once

namespace spillway {
namespace experts {

inline constexpr unsigned kReferenceClasses = 8;
inline constexpr unsigned kReferenceMaxTokens = 32;

}  // namespace experts
}  // namespace spillway
