/* A client for tests: connects with a first request, says how, and shows all that comes until the
 * end of the connection.
 *
 *	caller SERVICE FIRST [answered] [reconnect] [wait=MS] [parent=TRACEPARENT] [state=STATE]
 *
 * Writes "handed ROUNDS" or "reconnected ROUNDS", then what comes; or "error NAME: SENTENCE". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <baton.h>

static void option_take(struct baton_client_ask *ask, const char *text)
{
	const char *value = strchr(text, '=');
	value = value ? value + 1 : "";
	if (strcmp(text, "answered") == 0)
		ask->answered = true;
	else if (strcmp(text, "reconnect") == 0)
		ask->no_handoff = true;
	else if (strncmp(text, "parent=", 7) == 0)
		ask->traceparent = baton_str_z(value);
	else if (strncmp(text, "state=", 6) == 0)
		ask->tracestate = baton_str_z(value);
	else if (strncmp(text, "wait=", 5) == 0)
		ask->wait = baton_duration_ms(atoi(value));
	else
		exit(64);
}

int main(int argc, char **argv)
{
	struct baton_client_way way;
	char room[4096];
	int fd;
	if (argc < 3)
		return 64;
	struct baton_client_ask ask = {.service = baton_str_z(argv[1]),
	                               .first = baton_str_z(argv[2])};
	for (int i = 3; i < argc; i++)
		option_take(&ask, argv[i]);
	enum baton_err e = baton_client_connect(&ask, &fd, &way);
	if (e != BATON_OK) {
		printf("error %s: %s\n", baton_err_name(e), baton_err_detail());
		return 1;
	}
	printf("%s %u\n", way.handed ? "handed" : "reconnected", (unsigned)way.rounds);
	shutdown(fd, SHUT_WR);
	ssize_t n;
	while ((n = recv(fd, room, sizeof room, 0)) > 0)
		fwrite(room, 1, (size_t)n, stdout);
	return 0;
}
