/* Assignments that a shell can read. */
#include <string.h>

#include "shell.h"

static void quote(struct line *line, struct baton_str value)
{
	line_char(line, '\'');
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] == '\'')
			line_text(line, "'\\''");
		else
			line_char(line, value.ptr[i]);
	}
	line_char(line, '\'');
}

void shell_export(struct line *line, const char *name, struct baton_str value)
{
	bool has_nul = value.len > 0 && memchr(value.ptr, '\0', value.len);
	line_print(line, has_nul ? "unset %s" : "export %s=", name);
	if (!has_nul)
		quote(line, value);
	line_char(line, '\n');
}
