/* A secret of 16 random bytes that stands for one connection on its way to one backend. */
#ifndef HANDOFF_TOKEN_H
#define HANDOFF_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/str.h>

#define TOKEN_SIZE 16

struct token {
	uint8_t bytes[TOKEN_SIZE];
};

/* What bytes that should be a token are. */
enum token_form {
	TOKEN_GOOD = 1,
	TOKEN_MISSING,       /* there are none                              */
	TOKEN_INVALID_LENGTH /* there are not TOKEN_SIZE of them            */
};

/* Unless TOKEN_GOOD *ret is untouched, and the detail says what is wrong with how many bytes. */
enum token_form token_parse(struct baton_str bytes, struct token *ret);

/* In a time that does not tell where they differ. */
bool token_equal(const struct token *a, const struct token *b);

/* Leaves nothing of it. */
void token_wipe(struct token *token);

/* A view of its bytes. */
struct baton_str token_str(const struct token *token);

/* Where tokens come from. */
struct token_source {
	/* BATON_SYSTEM: there is no randomness. */
	enum baton_err (*draw)(void *arg, struct token *ret);
	void *arg;
};

/* getrandom(2). */
struct token_source token_source_system(void);

/* Tokens that were drawn by one call and not given out yet. Zeroed at first. */
#define TOKEN_POOL 16
struct token_pool {
	struct token tokens[TOKEN_POOL];
	uint32_t left;
};

/* getrandom(2), once for a poolful. The pool is borrowed. */
struct token_source token_source_pool(struct token_pool *pool);

/* Leaves nothing of what was not given out. */
void token_pool_wipe(struct token_pool *pool);

#endif
