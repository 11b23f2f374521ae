/* See calls_lib.h. */
#include "calls_lib.h"
#include <stdarg.h>

int add_one(int x) { return x + 1; }

int add_two(int x) { return x + 2; }

double sum_numbers(int a, double b, float c, long double d, long e, long f, long g, long h, long i,
                   long on_stack, double x2, double x3, double x4, double x5, double x6, double x7,
                   double stack_too) {
    return a + b + c + d + e + f + g + h + i + on_stack + x2 + x3 + x4 + x5 + x6 + x7 + stack_too;
}

float half(float x) { return x / 2; }

long double longer(long double x) { return x * 2 + 1; }

struct pair make_pair(long a, long b) { return (struct pair){a, b}; }

struct mixed make_mixed(double a, long b) { return (struct mixed){a, b}; }

struct floats make_floats(double a, double b) { return (struct floats){a, b}; }

struct big make_big(long a) { return (struct big){{a, a + 1, a + 2, a + 3, a + 4}}; }

__attribute__((target("avx"))) __m256d add_wide(__m256d a, __m256d b) { return a + b; }

double sum_doubles(int n, ...) {
    va_list rest;
    va_start(rest, n);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += va_arg(rest, double);
    va_end(rest);
    return sum;
}

long sum_longs(int n, ...) {
    va_list rest;
    va_start(rest, n);
    long sum = 0;
    for (int i = 0; i < n; i++) sum += va_arg(rest, long);
    va_end(rest);
    return sum;
}

long descend(long depth, long (*again)(long)) { return depth ? 1 + again(depth - 1) : 0; }

void jump_out(jmp_buf where, int value) { longjmp(where, value); }

void call_back(void (*function)(void *), void *with) { function(with); }
