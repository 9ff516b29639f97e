/* Addresses to listen at, as people type them. */
#include "listen.h"

#include <stdio.h>
#include <string.h>

#include "out.h"

bool listen_add(struct listen *l, const char *text)
{
	if (l->count == LISTEN_MAX) {
		complain("--listen is there more than %d times", LISTEN_MAX);
		return false;
	}
	char *copy = l->texts[l->count];
	int len = snprintf(copy, LISTEN_TEXT, "%s", text);
	char *service = strchr(copy, '=');
	if (len >= LISTEN_TEXT || !service) {
		complain("--listen '%.80s' is not of the form ADDRESS:PORT=SERVICE[@NAME]", text);
		return false;
	}
	*service++ = '\0';
	char *name = strchr(service, '@');
	if (name)
		*name++ = '\0';
	l->all[l->count++] = (struct baton_broker_listener){
		.address = copy,
		.service = baton_str_z(service),
		.name = name,
	};
	return true;
}
