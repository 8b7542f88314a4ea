// Whether this is a build for ./dev asan or ./dev tsan, where code is 3 to 15 times slower and takes memory
// of its own.
#pragma once

#if defined(__has_feature)  // clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SW_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SW_SANITIZED
#endif

namespace spillway::test_support {

#if defined(SW_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace spillway::test_support
