/* cmocka, with what it wants to see before it. */
#ifndef SUPPORT_HARNESS_H
#define SUPPORT_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name belongs to src/base/fail.h; what cmocka defines with its help is defined anew. */
#pragma push_macro("fail")
#undef fail
#include <cmocka.h>
#undef fail
#undef fail_msg
#pragma pop_macro("fail")
#define fail_msg(...)                      \
	do {                               \
		print_error(__VA_ARGS__);  \
		print_error("\n");         \
		_fail(__FILE__, __LINE__); \
	} while (0)

#endif
