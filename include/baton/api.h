/* How public functions are marked. Included by every other public header. */
#ifndef BATON_API_H
#define BATON_API_H

#define BATON_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define BATON_BEGIN extern "C" {
#define BATON_END }
#else
#define BATON_BEGIN
#define BATON_END
#endif

#endif
