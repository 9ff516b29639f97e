/* Whether bytes are JSON, by the letter of RFC 8259. */
#ifndef SUPPORT_JSON_H
#define SUPPORT_JSON_H

#include <stdbool.h>

#include <baton/str.h>

/* One object and nothing after it, not even a space; its texts are valid UTF-8. */
bool json_is_object(struct baton_str text);

#endif
