/* The library that every binding calls. Its functions do little work, so that call overhead dominates. */
#ifndef BENCHLIB_H
#define BENCHLIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BL_API __attribute__((visibility("default")))

/* No-op and returns. */
BL_API void bl_noop(void);
BL_API int32_t bl_return_int(void);
BL_API int64_t bl_return_int64(void);
BL_API bool bl_return_bool(void);
BL_API double bl_return_double(void);

/* Integers, bools, floats. */
BL_API int32_t bl_add_int32(int32_t a, int32_t b);
BL_API int64_t bl_add_int64(int64_t a, int64_t b);
BL_API bool bl_and_bool(bool a, bool b);
BL_API double bl_add_double(double a, double b);

/* Strings are NUL-terminated UTF-8. */
BL_API size_t bl_bytes_length(const char *text);
BL_API size_t bl_bytes_count(const char *bytes, size_t length, uint8_t byte);
/* Number of characters, not bytes. */
BL_API size_t bl_str_length(const char *utf8);
/* Must be freed with bl_free; NULL if out of memory. */
BL_API char *bl_concat(const char *a, const char *b);
BL_API void bl_free(void *memory);

/* Buffers. */
BL_API double bl_sum_double(const double *values, size_t count);
BL_API void bl_scale(double *values, size_t count, double factor);
/* Every stride-th of `count` values. */
BL_API double bl_sum_strided(const double *values, size_t count, size_t stride);
BL_API int64_t bl_sum_int32(const int32_t *values, size_t count);

/* Structs. */
typedef struct {
    double x, y;
} bl_point;
BL_API bl_point bl_point_make(double x, double y);
BL_API double bl_point_norm(bl_point point);
BL_API void bl_point_move(bl_point *point, double dx, double dy);

/* Callbacks, with a context for bindings that need one. Return the sum of the results for 0 to count - 1. */
typedef int64_t (*bl_plain_callback)(int64_t x);
typedef int64_t (*bl_callback)(int64_t x, void *context);
BL_API int64_t bl_call_plain(bl_plain_callback callback, int64_t x);
BL_API int64_t bl_call_many_plain(bl_plain_callback callback, int64_t count);
BL_API int64_t bl_call(bl_callback callback, void *context, int64_t x);
BL_API int64_t bl_call_many(bl_callback callback, void *context, int64_t count);

/* Allocates memory, touches both ends and frees it; returns the size. */
BL_API size_t bl_alloc(size_t bytes);

/* Compute. Matrices are square and row-major. */
BL_API double bl_dot(const double *a, const double *b, size_t count);
BL_API void bl_matmul(const double *a, const double *b, double *out, size_t side);

/* Many arguments. */
BL_API int32_t bl_args5(int32_t a, int32_t b, int32_t c, int32_t d, int32_t e);
BL_API double bl_args8(double a, double b, double c, double d, double e, double f, double g, double h);
BL_API double bl_args_mixed(int32_t a, double b, int64_t c, bool d, double e, int32_t f);

/* Large returns: a struct returned through memory, and bytes 0, 1, 2, … */
typedef struct {
    double values[16];
} bl_large;
BL_API bl_large bl_large_make(double start);
BL_API void bl_fill(uint8_t *out, size_t length);

/* -1 if x is negative, which bindings raise as ValueError; else 0. */
BL_API int32_t bl_check(int32_t x);

/* The same calls in a C loop: the cost without Python. */
BL_API void bl_loop_noop(uint64_t times);
BL_API double bl_loop_sum(const double *values, size_t count, uint64_t times);

/* 100 functions that return their number: bl_f00 to bl_f99. X takes the number as two digits. */
#define BL_TEN(X, tens) \
    X(tens##0) X(tens##1) X(tens##2) X(tens##3) X(tens##4) X(tens##5) X(tens##6) X(tens##7) X(tens##8) X(tens##9)
#define BL_HUNDRED(X) \
    BL_TEN(X, 0) BL_TEN(X, 1) BL_TEN(X, 2) BL_TEN(X, 3) BL_TEN(X, 4) \
    BL_TEN(X, 5) BL_TEN(X, 6) BL_TEN(X, 7) BL_TEN(X, 8) BL_TEN(X, 9)
#define BL_DECLARE(n) BL_API int32_t bl_f##n(void);
BL_HUNDRED(BL_DECLARE)
#undef BL_DECLARE

#ifdef __cplusplus
}
#endif

#endif
