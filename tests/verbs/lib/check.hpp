// SPDX-License-Identifier: GPL-2.0
//
// How a test states what it expects. CHECK notes a failure and goes on,
// REQUIRE ends the test, skip() ends it without a verdict. A test runs in a
// process of its own (runner.hpp), so the notes travel to the parent through a
// pipe; everything here works from any thread of the test's process.
#pragma once

#include <concepts>
#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace vt {

// Thrown to end a test; not seen outside of the runner.
struct test_failed {};
struct test_skipped {};

std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Notes one failure of the running test. Returns false, for use in conditions.
bool fail_at(const char *file, int line, const std::string &what);

// Ends the test: what it needs is not there.
[[noreturn]] void skip(const std::string &why);

// One line of output that is no verdict: a measured value, a remark.
void note(const std::string &what);

bool has_failed();

inline std::string check_text(const char *expression)
{
	return expression;
}

template <typename... A>
std::string check_text(const char *expression, const char *format, A... args)
{
	if constexpr (sizeof...(A) == 0)
		return std::string(format) + " (" + expression + ")";
	else
		return text(format, args...) + " (" + expression + ")";
}

template <typename T>
std::string show(const T &v)
{
	std::ostringstream s;
	if constexpr (std::is_enum_v<T>)
		s << static_cast<std::int64_t>(v);
	else if constexpr (std::is_integral_v<T> && sizeof(T) == 1)
		s << static_cast<int>(v);
	else
		s << v;
	return s.str();
}

template <typename A, typename B>
bool equal(const A &a, const B &b)
{
	if constexpr (std::is_enum_v<A> || std::is_enum_v<B>)
		return static_cast<std::int64_t>(a) == static_cast<std::int64_t>(b);
	else if constexpr (std::is_same_v<A, bool> || std::is_same_v<B, bool>)
		return static_cast<bool>(a) == static_cast<bool>(b);
	else if constexpr (std::integral<A> && std::integral<B>)
		return std::cmp_equal(a, b);
	else
		return a == b;
}

template <typename A, typename B>
bool check_equal(const char *file, int line, const char *name, const A &a, const B &b,
		 const std::string &context = {})
{
	if (equal(a, b))
		return true;
	std::string what = std::string(name) + " is " + show(a) + ", expected " + show(b);
	if (!context.empty())
		what += " [" + context + "]";
	return fail_at(file, line, what);
}

} // namespace vt

#define CHECK(cond, ...)                                                                           \
	((cond) ? true                                                                             \
		: ::vt::fail_at(__FILE__, __LINE__, ::vt::check_text(#cond __VA_OPT__(, ) __VA_ARGS__)))

#define REQUIRE(cond, ...)                                                                         \
	do {                                                                                       \
		if (!CHECK(cond __VA_OPT__(, ) __VA_ARGS__))                                       \
			throw ::vt::test_failed{};                                                 \
	} while (0)

#define CHECK_EQ(a, b, ...) ::vt::check_equal(__FILE__, __LINE__, #a, a, b __VA_OPT__(, ) __VA_ARGS__)

#define REQUIRE_EQ(a, b, ...)                                                                      \
	do {                                                                                       \
		if (!CHECK_EQ(a, b __VA_OPT__(, ) __VA_ARGS__))                                    \
			throw ::vt::test_failed{};                                                 \
	} while (0)

#define FAIL(...) ::vt::fail_at(__FILE__, __LINE__, ::vt::text(__VA_ARGS__))
