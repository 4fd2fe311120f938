/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The little that the unit tests add to CUnit: tests register themselves, a
 * failed comparison shows both values and where in a loop it happened.
 *
 * One TEST is one CUnit test; its suite is named after its source file. A
 * test that asserts a statement of the conformance list (R001..R070) starts
 * its name with the number.
 */
#ifndef SRN_TESTS_UNIT_H
#define SRN_TESTS_UNIT_H

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>

#include <cstdarg>
#include <cstdio>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace unit {

struct test {
	const char *suite;
	const char *name;
	void (*fn)();
};

inline std::vector<test> &tests()
{
	static std::vector<test> all;
	return all;
}

struct registrar {
	registrar(const char *suite, const char *name, void (*fn)())
	{
		tests().push_back({suite, name, fn});
	}
};

/* Failures of one test that are shown; a broken loop can make millions. */
constexpr unsigned max_shown = 20;

inline unsigned &failures_of_test()
{
	static unsigned n;
	return n;
}

[[gnu::format(printf, 1, 2)]] inline std::string fmt(const char *f, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, f);
	vsnprintf(text, sizeof(text), f, ap);
	va_end(ap);
	return text;
}

inline std::string fmt()
{
	return {};
}

inline void fail(const char *file, unsigned line, const std::string &text)
{
	if (++failures_of_test() <= max_shown)
		CU_assertImplementation(CU_FALSE, line, text.c_str(), file, "", CU_FALSE);
}

/* Enumerations and bool as integers, so that anything compares with anything. */
template<class T> constexpr auto number(T v)
{
	if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>)
		return static_cast<long long>(v);
	else
		return v;
}

template<class T> std::string show(T v)
{
	if constexpr (std::is_signed_v<T>)
		return std::to_string(v);
	else
		return fmt("0x%llx", static_cast<unsigned long long>(v));
}

} /* namespace unit */

#define UNIT_CAT2(a, b) a##b
#define UNIT_CAT(a, b) UNIT_CAT2(a, b)

/* TEST("what is asserted") { ... } */
#define TEST(name) UNIT_TEST(name, UNIT_CAT(unit_test_, __LINE__))
#define UNIT_TEST(name, id) \
	static void id(); \
	static const unit::registrar UNIT_CAT(id, _reg)(__FILE__, name, id); \
	static void id()

/* CHECK(condition[, printf context]): the context is formatted on failure only. */
#define CHECK(cond, ...) do { \
	if (!(cond)) \
		unit::fail(__FILE__, __LINE__, #cond " " + unit::fmt(__VA_ARGS__)); \
} while (0)

/* EQ(got, want[, printf context]): equal as numbers, whatever their types. */
#define EQ(got, want, ...) do { \
	const auto unit_got = unit::number(got); \
	const auto unit_want = unit::number(want); \
	if (!std::cmp_equal(unit_got, unit_want)) \
		unit::fail(__FILE__, __LINE__, #got " is " + unit::show(unit_got) + \
			   ", want " + unit::show(unit_want) + " " + \
			   unit::fmt(__VA_ARGS__)); \
} while (0)

#endif /* SRN_TESTS_UNIT_H */
