#include "benchlib.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void bl_noop(void) {}

int32_t bl_return_int(void) { return 42; }

int64_t bl_return_int64(void) { return ((int64_t)1 << 40) + 7; }

bool bl_return_bool(void) { return true; }

double bl_return_double(void) { return 2.5; }

int32_t bl_add_int32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }

int64_t bl_add_int64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

bool bl_and_bool(bool a, bool b) { return a && b; }

double bl_add_double(double a, double b) { return a + b; }

size_t bl_bytes_length(const char *text) { return strlen(text); }

size_t bl_bytes_count(const char *bytes, size_t length, uint8_t byte) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += (uint8_t)bytes[i] == byte;
    return count;
}

size_t bl_str_length(const char *utf8) {
    size_t count = 0;
    /* Count all bytes except UTF-8 continuation bytes. */
    for (; *utf8; utf8++) count += ((uint8_t)*utf8 & 0xc0) != 0x80;
    return count;
}

char *bl_concat(const char *a, const char *b) {
    size_t of_a = strlen(a), of_b = strlen(b);
    char *both = malloc(of_a + of_b + 1);
    if (!both) return NULL;
    memcpy(both, a, of_a);
    memcpy(both + of_a, b, of_b + 1);
    return both;
}

void bl_free(void *memory) { free(memory); }

double bl_sum_double(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += values[i];
    return sum;
}

void bl_scale(double *values, size_t count, double factor) {
    for (size_t i = 0; i < count; i++) values[i] *= factor;
}

double bl_sum_strided(const double *values, size_t count, size_t stride) {
    double sum = 0;
    for (size_t i = 0; i < count; i += stride) sum += values[i];
    return sum;
}

int64_t bl_sum_int32(const int32_t *values, size_t count) {
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += values[i];
    return sum;
}

bl_point bl_point_make(double x, double y) { return (bl_point){x, y}; }

double bl_point_norm(bl_point point) { return sqrt(point.x * point.x + point.y * point.y); }

void bl_point_move(bl_point *point, double dx, double dy) {
    point->x += dx;
    point->y += dy;
}

int64_t bl_call_plain(bl_plain_callback callback, int64_t x) { return callback(x) + 1; }

int64_t bl_call_many_plain(bl_plain_callback callback, int64_t count) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++) sum += callback(i);
    return sum;
}

int64_t bl_call(bl_callback callback, void *context, int64_t x) { return callback(x, context) + 1; }

int64_t bl_call_many(bl_callback callback, void *context, int64_t count) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++) sum += callback(i, context);
    return sum;
}

size_t bl_alloc(size_t bytes) {
    volatile char *memory = malloc(bytes);
    if (!memory || !bytes) {
        free((void *)memory);
        return 0;
    }
    memory[0] = 1;
    memory[bytes - 1] = 1;
    free((void *)memory);
    return bytes;
}

double bl_dot(const double *a, const double *b, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

void bl_matmul(const double *a, const double *b, double *out, size_t side) {
    for (size_t row = 0; row < side; row++) {
        for (size_t column = 0; column < side; column++) out[row * side + column] = 0;
        for (size_t k = 0; k < side; k++) {
            double factor = a[row * side + k];
            for (size_t column = 0; column < side; column++) {
                out[row * side + column] += factor * b[k * side + column];
            }
        }
    }
}

int32_t bl_args5(int32_t a, int32_t b, int32_t c, int32_t d, int32_t e) {
    return (int32_t)((uint32_t)a + (uint32_t)b + (uint32_t)c + (uint32_t)d + (uint32_t)e);
}

double bl_args8(double a, double b, double c, double d, double e, double f, double g, double h) {
    return a + b + c + d + e + f + g + h;
}

double bl_args_mixed(int32_t a, double b, int64_t c, bool d, double e, int32_t f) {
    return a + b + (double)c + d + e + f;
}

bl_large bl_large_make(double start) {
    bl_large large;
    for (int i = 0; i < 16; i++) large.values[i] = start + i;
    return large;
}

void bl_fill(uint8_t *out, size_t length) {
    for (size_t i = 0; i < length; i++) out[i] = (uint8_t)i;
}

int32_t bl_check(int32_t x) { return x < 0 ? -1 : 0; }

/* Volatile pointers, so that the compiler does not inline the calls. */
static void (*volatile noop)(void) = bl_noop;
static double (*volatile sum_double)(const double *, size_t) = bl_sum_double;

void bl_loop_noop(uint64_t times) {
    for (uint64_t i = 0; i < times; i++) noop();
}

double bl_loop_sum(const double *values, size_t count, uint64_t times) {
    double sum = 0;
    for (uint64_t i = 0; i < times; i++) sum = sum_double(values, count);
    return sum;
}

/* 1##n - 100 is n; the literal n itself would be octal. */
#define BL_DEFINE(n) \
    int32_t bl_f##n(void) { return 1##n - 100; }
BL_HUNDRED(BL_DEFINE)
