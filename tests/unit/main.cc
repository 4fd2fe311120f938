// SPDX-License-Identifier: GPL-2.0
/*
 * Runs every registered unit test and writes one line per test, and a last
 * line "N passed, N failed, N skipped", to standard output and to the file
 * named by the first argument. Exits non-zero when a test failed. A second
 * argument runs only the tests whose name contains it.
 */
#include "unit.h"

#include <chrono>
#include <cstring>
#include <map>

namespace {

FILE *result;
unsigned passed, failed;
std::chrono::steady_clock::time_point started;

[[gnu::format(printf, 1, 2)]] void say(const char *f, ...)
{
	for (FILE *to : {stdout, result}) {
		va_list ap;

		if (!to)
			continue;
		va_start(ap, f);
		vfprintf(to, f, ap);
		va_end(ap);
		/* A sanitizer may abort the next test: lose nothing. */
		fflush(to);
	}
}

void test_started(const CU_pTest, const CU_pSuite)
{
	unit::failures_of_test() = 0;
	started = std::chrono::steady_clock::now();
}

void test_complete(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord first)
{
	const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
	const unsigned n = unit::failures_of_test();

	say("%s %s: %s (%.2f s)\n", n ? "FAIL" : "ok  ", suite->pName, test->pName, took.count());
	n ? failed++ : passed++;
	if (!n)
		return;
	for (CU_pFailureRecord r = first; r; r = r->pNext)
		if (r->pTest == test)
			say("     %s:%u: %s\n", r->strFileName, r->uiLineNumber, r->strCondition);
	if (n > unit::max_shown)
		say("     ... %u failures in all\n", n);
}

std::string suite_name(const char *file)
{
	const char *base = strrchr(file, '/');
	std::string name = base ? base + 1 : file;

	return name.substr(0, name.find('.'));
}

} /* namespace */

int main(int argc, char **argv)
{
	const char *only = argc > 2 ? argv[2] : "";
	std::map<std::string, CU_pSuite> suites;

	if (argc > 1 && !(result = fopen(argv[1], "w"))) {
		fprintf(stderr, "unit: cannot write %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	if (CU_initialize_registry() != CUE_SUCCESS) {
		fprintf(stderr, "unit: CUnit: %s\n", CU_get_error_msg());
		return 1;
	}
	for (const unit::test &t : unit::tests()) {
		if (!strstr(t.name, only))
			continue;
		CU_pSuite &suite = suites[suite_name(t.suite)];

		if (!suite)
			suite = CU_add_suite(suite_name(t.suite).c_str(), nullptr, nullptr);
		if (!suite || !CU_add_test(suite, t.name, t.fn)) {
			/* A name used twice would hide a test. */
			fprintf(stderr, "unit: cannot add test \"%s\": %s\n", t.name,
				CU_get_error_msg());
			return 1;
		}
	}
	CU_set_test_start_handler(test_started);
	CU_set_test_complete_handler(test_complete);
	CU_run_all_tests();
	CU_cleanup_registry();

	say("%u passed, %u failed, 0 skipped\n", passed, failed);
	return failed || !passed;
}
