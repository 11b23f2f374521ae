/* Measures calls of a one-instruction function: CPU nanoseconds per call, one line per round, written to
 * the file in the second argument or to stdout. */
#define _GNU_SOURCE
#include "calls_lib.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int n, char **words) {
    int rounds = n > 1 ? atoi(words[1]) : 20;
    FILE *out = n > 2 ? fopen(words[2], "w") : stdout;
    const int calls = 1000000;
    if (!out) return 2;
    for (int r = 0; r < rounds; r++) {
        double start = now();
        int x = 0;
        for (int i = 0; i < calls; i++) x = add_one(x);
        if (x != calls) return 1;
        fprintf(out, "%.2f\n", (now() - start) / calls);
    }
    return 0;
}
