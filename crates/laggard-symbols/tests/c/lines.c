// A library with inlined calls, local functions and calls through the PLT.
#include <stdlib.h>
#include <string.h>

static inline __attribute__((always_inline)) int twice(int x) {
    if (x > 100)
        x = atoi("7");
    return x * 2;
}

static inline __attribute__((always_inline)) int four_times(int x) {
    int y = twice(x);
    return twice(y);
}

static __attribute__((noinline)) int hidden(const char *text) {
    int sum = 0;
    for (; *text; text++)
        sum += four_times(*text);
    return sum;
}

int shown(const char *text) {
    return hidden(text) + hidden(text + 1) + (int)strlen(text);
}

__attribute__((weak)) int weak_one(int x) { return abs(x) + 1; }
int same_place(int x) __attribute__((alias("weak_one")));

static int pick_one(int x) { return x + 1; }
static void *pick(void) { return pick_one; }
int picked(int x) __attribute__((ifunc("pick")));
