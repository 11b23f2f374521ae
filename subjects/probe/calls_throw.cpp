// Throws through traced calls. Compiled as the library with LIBRARY defined, otherwise as the program.
#include "calls_lib.h"

#ifdef LIBRARY
extern "C" void throw_out(int value) { throw value; }
#else
#include <cstdio>

static int destroyed = 0;
struct Guard {
    ~Guard() { destroyed++; }
};

// The exception propagates through two traced calls and a frame with a destructor.
static void rethrow(void *value) {
    Guard guard;
    throw_out(*static_cast<int *>(value));
}

int main() {
    int caught = 0;
    for (int i = 0; i < 100; i++) {
        try {
            call_back(rethrow, &i);
        } catch (int value) {
            caught += value == i;
        }
        if (add_one(i) != i + 1) return 2;
    }
    return caught != 100 || destroyed != 100;
}
#endif
