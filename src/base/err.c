/* What a call answered, and the sentence with the particulars. */
#include <baton/err.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/utf8.h"

#define DETAIL_MAX 512

/* The one variable outside of the callers' hands: a detail belongs to a call and its thread, as
 * errno does, and every signature would carry it otherwise. */
static _Thread_local char detail[DETAIL_MAX];

const char *baton_strerror(enum baton_err e)
{
	switch (e) {
#define TEXT_OF(name, number, text) \
	case BATON_##name:          \
		return text;
		BATON_ERR_TABLE(TEXT_OF)
#undef TEXT_OF
	}
	return "unknown error";
}

const char *baton_err_name(enum baton_err e)
{
	switch (e) {
#define NAME_OF(name, number, text) \
	case BATON_##name:          \
		return "BATON_" #name;
		BATON_ERR_TABLE(NAME_OF)
#undef NAME_OF
	}
	return "BATON_UNKNOWN";
}

const char *baton_err_detail(void)
{
	return detail;
}

__attribute__((format(printf, 1, 0))) static void set_detail(const char *format, va_list args)
{
	/* Written aside first: the old detail may be among the arguments. */
	char text[DETAIL_MAX];
	int len = vsnprintf(text, sizeof text, format, args);
	if (len < 0)
		text[0] = '\0';
	else if (len >= (int)sizeof text)
		text[utf8_cut(text, sizeof text - 1)] = '\0';
	memcpy(detail, text, sizeof detail);
}

void fail_detail(const char *format, ...)
{
	int saved = errno;
	va_list args;
	va_start(args, format);
	set_detail(format, args);
	va_end(args);
	errno = saved;
}

void fail_errno_detail(int errnum, const char *format, ...)
{
	int saved = errno;
	va_list args;
	va_start(args, format);
	set_detail(format, args);
	va_end(args);

	char text[128];
	fail_detail("%s: %s", detail, strerror_r(errnum, text, sizeof text));
	errno = saved;
}
