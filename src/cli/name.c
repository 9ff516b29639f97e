/* Names of queues, lanes and jobs as people type them. */
#include <string.h>

#include "name.h"
#include "number.h"
#include "options.h"
#include "out.h"

#define JOB_MAX ((UINT64_C(1) << 53) - 1)

bool name_other(const char *what, const char *text, struct baton_str *ret)
{
	if (baton_str_name(what, text, strlen(text), BATON_NAME_MAX, ret) == BATON_OK)
		return true;
	complain("%s", baton_err_detail());
	return false;
}

bool name_queue(const char *text, struct baton_str *ret)
{
	char shown[SHOWN_MAX];
	if (!name_other("queue's name", text, ret))
		return false;
	if (!strchr(text, '/'))
		return true;
	complain("the queue's name is '%s': it may not have a '/'", show(text, shown));
	return false;
}

bool name_job(const char *text, struct baton_batch_id *ret)
{
	char shown[SHOWN_MAX];
	uint64_t number;
	if (number_read(text, 1, JOB_MAX, &number) && strlen(text) < sizeof ret->text) {
		*ret = (struct baton_batch_id){.text = ""};
		memcpy(ret->text, text, strlen(text));
		return true;
	}
	complain("'%s' is no id of a job: it is a number, as 'baton put' prints it",
	         show(text, shown));
	return false;
}

bool name_needed(const struct operands *operands, size_t min, const char *command,
                 const char *names)
{
	if (operands->count >= min)
		return true;
	complain("'%s' needs %s", command, names);
	return false;
}
