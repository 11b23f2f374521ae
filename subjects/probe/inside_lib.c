/* A library whose functions call each other directly, not through the PLT. */
#include "inside_lib.h"

#define KEPT __attribute__((noinline, noclone))

/* Starts with `lea` and has no frame: the kernel must single-step its first instruction. */
KEPT static int inside_leaf(int x) {
    __asm__ volatile("" ::: "memory");
    return x + 1;
}

/* Calls the leaf three times. Saves registers, so it starts with a push. */
KEPT static int inside_middle(int x) {
    int sum = 0;
    for (int i = 0; i < 3; i++) sum += inside_leaf(x + i);
    return sum;
}

/* Recurses `depth` times. */
KEPT static int inside_walk(int depth) {
    if (depth == 0) return 0;
    return 1 + inside_walk(depth - 1) + inside_leaf(depth);
}

int inside_work(int rounds) {
    int sum = 0;
    for (int i = 0; i < rounds; i++) sum += inside_middle(i);
    return sum + inside_walk(4);
}
