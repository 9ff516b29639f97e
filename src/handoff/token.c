/* A secret of 16 random bytes. */
#include "handoff/token.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <baton/id.h>

#include "base/digest.h"
#include "base/fail.h"

static_assert(sizeof(struct token) == sizeof(struct baton_id), "both have 128 bits");

enum token_form token_parse(struct baton_str bytes, struct token *ret)
{
	if (bytes.len == 0) {
		fail_detail("a token is missing");
		return TOKEN_MISSING;
	}
	if (bytes.len != TOKEN_SIZE) {
		fail_detail("a token of %zu bytes; it has %d", bytes.len, TOKEN_SIZE);
		return TOKEN_INVALID_LENGTH;
	}
	memcpy(ret->bytes, bytes.ptr, TOKEN_SIZE);
	return TOKEN_GOOD;
}

bool token_equal(const struct token *a, const struct token *b)
{
	return digest_equal(a->bytes, b->bytes, TOKEN_SIZE);
}

void token_wipe(struct token *token)
{
	explicit_bzero(token, sizeof *token);
}

struct baton_str token_str(const struct token *token)
{
	return (struct baton_str){(const char *)token->bytes, TOKEN_SIZE};
}

static enum baton_err draw(void *arg, struct token *ret)
{
	struct baton_id id;
	(void)arg;
	enum baton_err e = baton_id_random(&id);
	if (e == BATON_OK)
		memcpy(ret->bytes, id.bytes, TOKEN_SIZE);
	explicit_bzero(&id, sizeof id);
	return e;
}

struct token_source token_source_system(void)
{
	return (struct token_source){draw, NULL};
}

/* As many as getentropy(3) gives at once. */
static_assert(sizeof(((struct token_pool *)0)->tokens) <= 256, "one call");

static enum baton_err pool_draw(void *arg, struct token *ret)
{
	struct token_pool *pool = arg;
	if (pool->left == 0 && getentropy(pool->tokens, sizeof pool->tokens) != 0)
		return fail_errno(errno, "the system gives no random bytes");
	if (pool->left == 0)
		pool->left = TOKEN_POOL;
	struct token *next = &pool->tokens[--pool->left];
	*ret = *next;
	token_wipe(next);
	return BATON_OK;
}

struct token_source token_source_pool(struct token_pool *pool)
{
	return (struct token_source){pool_draw, pool};
}

void token_pool_wipe(struct token_pool *pool)
{
	explicit_bzero(pool, sizeof *pool);
}
