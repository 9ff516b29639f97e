/* Which claim a command is about: its id and its token. */
#include <stdlib.h>
#include <string.h>

#include "out.h"
#include "proof.h"

/* A claim's id is two numbers with a dash between them. */
static bool is_claim_id(const char *text)
{
	static const char digits[] = "0123456789";
	size_t first = strspn(text, digits);
	if (first == 0 || text[first] != '-')
		return false;
	size_t second = strspn(text + first + 1, digits);
	return second > 0 && text[first + 1 + second] == '\0';
}

static bool make(const char *id, const char *token, struct baton_work_proof *ret)
{
	char shown[SHOWN_MAX];
	*ret = (struct baton_work_proof){.id = ""};
	if (!is_claim_id(id) || strlen(id) >= sizeof ret->id) {
		complain(
			"'%s' is no id of a claim: it is two numbers with a dash, as 'baton claim' "
			"prints it",
			show(id, shown));
		return false;
	}
	memcpy(ret->id, id, strlen(id));
	if (baton_id_parse(baton_str_z(token), &ret->token) == BATON_OK)
		return true;
	/* What was typed may be a token with a slip, which is nobody's business. */
	complain("the token has %zu characters that are no token: it is 32 hexadecimal digits, as "
	         "'baton claim' prints it",
	         strlen(token));
	return false;
}

bool proof_parse(const struct operands *operands, size_t first, struct baton_work_proof *ret)
{
	const char *id = operand_at(operands, first);
	const char *token = operand_at(operands, first + 1);
	if (!id) {
		id = getenv("BATON_CLAIM");
		if (!id || id[0] == '\0') {
			complain("no claim: set BATON_CLAIM and BATON_TOKEN, as 'baton claim "
			         "--shell' prints them, or give CLAIM and TOKEN");
			return false;
		}
	}
	if (!token) {
		token = getenv("BATON_TOKEN");
		if (!token || token[0] == '\0') {
			complain("no token: set BATON_TOKEN, or give it after the claim");
			return false;
		}
	}
	return make(id, token, ret);
}

int proof_lost(const struct baton_work_proof *proof)
{
	complain("claim %s is not held: it has ended, or has expired and another took its work, or "
	         "its token is another one",
	         proof->id);
	return EXIT_FAILURE;
}
