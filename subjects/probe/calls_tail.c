/* A library between the program and the traced library, with a tail call. */
#include "calls_lib.h"

int tail(int x) { return add_one(x); }
