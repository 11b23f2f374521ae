// A program that loads Python at run time, like applications with plugins.
// Usage: embedded LIBPYTHON
#include <dlfcn.h>
#include <stdio.h>

__attribute__((noinline)) int embeds(const char *library) {
    void *python = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!python) return fprintf(stderr, "%s\n", dlerror()), 3;
    void (*initialize)(int) = (void (*)(int))dlsym(python, "Py_InitializeEx");
    int (*run)(const char *) = (int (*)(const char *))dlsym(python, "PyRun_SimpleString");
    if (!initialize || !run) return 4;
    initialize(0);
    return run("def inside():\n"
               "    import time\n"
               "    end = time.process_time() + 1.0\n"
               "    while time.process_time() < end:\n"
               "        sum(range(5000))\n"
               "inside()\n");
}

int main(int argc, char **argv) { return argc < 2 ? 2 : embeds(argv[1]); }
