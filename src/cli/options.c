/* Reads the options of a command line: getopt_long() with one clear line for whatever is wrong. */
#include <ctype.h>
#include <string.h>

#include "options.h"
#include "out.h"
#include "suggest.h"

#define LETTERS_MAX 64

/* Lists the short options as getopt() wants them: '+' stops at the first operand, ':' tells a
 * missing value from an unknown option. */
static void list_letters(const struct option *options, char letters[LETTERS_MAX])
{
	size_t n = 0;
	letters[n++] = '+';
	letters[n++] = ':';
	for (; options->name && n < LETTERS_MAX - 2; options++) {
		if (options->val > 0x7f || !isalnum(options->val))
			continue;
		letters[n++] = (char)options->val;
		if (options->has_arg == required_argument)
			letters[n++] = ':';
	}
	letters[n] = '\0';
}

/* Where all options are explained: `of` is a command, or the program itself. */
static void complain_unknown(const char *shown, const char *of)
{
	bool program = strcmp(of, PROGRAM) == 0;
	complain("unknown option '%s'; 'baton %s%s--help' says more", shown, program ? "" : of,
	         program ? "" : " ");
}

static void complain_unknown_long(const char *typed, const char *of, const struct option *options)
{
	char shown[SHOWN_MAX];
	show(typed, shown);
	char *value = strchr(shown, '=');
	if (value)
		*value = '\0';
	struct suggestion meant = {.typed = shown + 2};
	for (; options->name; options++)
		suggestion_consider(&meant, options->name);
	if (meant.nearest)
		complain("unknown option '%s'; did you mean '--%s'?", shown, meant.nearest);
	else
		complain_unknown(shown, of);
}

static void complain_option(const char *typed, int result, const char *of,
                            const struct option *options)
{
	char shown[SHOWN_MAX];
	char letter[] = {'-', isprint((unsigned char)optopt) ? (char)optopt : '?', '\0'};
	show(typed, shown);
	if (result == ':')
		complain("option '%s' needs a value", shown);
	else if (strncmp(typed, "--", 2) != 0)
		complain_unknown(letter, of);
	else if (optopt != 0)
		complain("option '%.*s' takes no value", (int)strcspn(shown, "="), shown);
	else
		complain_unknown_long(typed, of, options);
}

int option_next(int argc, char **argv, const struct option *options)
{
	char letters[LETTERS_MAX];
	list_letters(options, letters);
	opterr = 0;
	/* optind moves on only after the last letter of a group such as -ab. */
	int before = optind == 0 ? 1 : optind;
	int result = getopt_long(argc, argv, letters, options, NULL);
	if (result != '?' && result != ':')
		return result;
	complain_option(argv[before], result, argv[0], options);
	return OPTION_BAD;
}

/* Keeps an operand. False: it is one too many, and has been complained about. */
static bool operand_keep(struct operands *operands, const char *command, char *text)
{
	char shown[SHOWN_MAX];
	if (operands->count < operands->max) {
		operands->texts[operands->count++] = text;
		return true;
	}
	show(text, shown);
	if (operands->max == 0)
		complain("'%s' takes no argument, but got '%s'", command, shown);
	else if (operands->max == 1)
		complain("'%s' takes one argument, but got '%s' too", command, shown);
	else
		complain("'%s' takes %zu arguments, but got '%s' too", command, operands->max,
		         shown);
	return false;
}

int option_mixed(int argc, char **argv, const struct option *options, struct operands *operands)
{
	operands->texts = argv + 1;
	for (;;) {
		int before = optind == 0 ? 1 : optind;
		int option = option_next(argc, argv, options);
		if (option != OPTION_END)
			return option;
		/* It stops at an operand without moving, and moves on only over "--". */
		bool options_over = optind > before;
		do {
			if (optind >= argc)
				return OPTION_END;
			if (!operand_keep(operands, argv[0], argv[optind++]))
				return OPTION_BAD;
		} while (options_over);
	}
}

const char *operand_at(const struct operands *operands, size_t index)
{
	return index < operands->count ? operands->texts[index] : NULL;
}

int option_none(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	struct operands none = {.max = 0};
	optind = 0;
	return option_mixed(argc, argv, options, &none);
}
