// Native stacks that are hard to unwind; each uses CPU time in a function with a known name.
// Usage: stacks WHAT MILLISECONDS
#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile uint64_t sink;
static double limit;

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

__attribute__((noinline)) void leaf_burn(void) {
    for (int i = 0; i < 2000; i++) sink += i * sink;
}

__attribute__((noinline)) static void burn(void) {
    double end = cpu() + limit;
    while (cpu() < end) {
        leaf_burn();
        __asm__ volatile("");
    }
}

// The stack pointer is realigned and moves by a variable amount, so unwinding needs DWARF expressions.
__attribute__((noinline)) void realigned(int n) {
    volatile char wide[256] __attribute__((aligned(64)));
    volatile char *more = alloca(n);
    wide[0] = more[0] = 1;
    burn();
    sink += wide[0] + more[0];
}

__attribute__((noinline)) void recursive(int n) {
    volatile char pad[64];
    pad[0] = n;
    if (n == 0)
        burn();
    else
        recursive(n - 1);
    sink += pad[0];
}

static int compare(const void *a, const void *b) {
    leaf_burn();
    return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) void callback(void) {
    double end = cpu() + limit;
    while (cpu() < end) {
        int numbers[64];
        for (int i = 0; i < 64; i++) numbers[i] = (i * 37) % 64;
        qsort(numbers, 64, sizeof *numbers, compare);
    }
}

static void on_signal(int signal) { burn(); }
__attribute__((noinline)) void in_handler(void) {
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    sink++;
}

static void *thread_of_its_own(void *unused) {
    burn();
    return unused;
}
__attribute__((noinline)) void threads(void) {
    pthread_t all[4];
    for (int i = 0; i < 4; i++) pthread_create(&all[i], 0, thread_of_its_own, 0);
    for (int i = 0; i < 4; i++) pthread_join(all[i], 0);
}

// Threads with the smallest stack that start with all signals blocked.
__attribute__((noinline)) void blocked_threads(void) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32 << 10);
    pthread_t one;
    if (pthread_create(&one, &attributes, thread_of_its_own, 0)) exit(9);
    pthread_sigmask(SIG_SETMASK, &old, 0);
    pthread_join(one, 0);
}

// A coroutine on a thread. Its stack lies directly below that of the thread, separated by a guard page.
static ucontext_t outside, inside;
static void coroutine(void) { burn(); }
static void *thread_with_coroutine(void *unused) {
    static char *stack;
    size_t size = 256 << 10;
    stack = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = size;
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
    return unused;
}
__attribute__((noinline)) void coroutines(void) {
    pthread_t one;
    if (pthread_create(&one, 0, thread_with_coroutine, 0)) exit(9);
    pthread_join(one, 0);
}

static jmp_buf back;
__attribute__((noinline)) static void jumps(int n) {
    volatile char pad[512];
    pad[n] = 1;
    leaf_burn();
    if (n == 0) longjmp(back, 1);
    jumps(n - 1);
    sink += pad[n];
}
__attribute__((noinline)) void jumping(void) {
    double end = cpu() + limit;
    while (cpu() < end)
        if (!setjmp(back)) jumps(20);
}

static void *volatile kept[64];
__attribute__((noinline)) void allocating(void) {
    double end = cpu() + limit;
    while (cpu() < end)
        for (int i = 0; i < 5000; i++) {
            free(kept[i % 64]);
            kept[i % 64] = malloc(64 + i % 977);
        }
}

static volatile char *page;
static int mended;

// SIGSEGV handler: makes the faulting page writable.
static void mend(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    if (info->si_addr != page) _exit(2);
    mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
    mended++;
}

int main(int argc, char **argv) {
    const char *what = argv[1];
    limit = atof(argv[2]);
    if (!strcmp(what, "realigned")) realigned(argc * 100);
    if (!strcmp(what, "recursive")) recursive(200);
    if (!strcmp(what, "callback")) callback();
    if (!strcmp(what, "handler")) in_handler();
    if (!strcmp(what, "threads")) threads();
    if (!strcmp(what, "blocked")) blocked_threads();
    if (!strcmp(what, "jumping")) jumping();
    if (!strcmp(what, "allocating")) allocating();
    if (!strcmp(what, "coroutine")) coroutines();
    if (!strcmp(what, "closes")) {
        burn();
        for (int fd = 3; fd < 1024; fd++) close(fd);
        burn();
        // The agent must not use or close descriptors that the program opens.
        int mine = open("/dev/null", O_RDWR);
        burn();
        if (mine != 3 || write(mine, "x", 1) != 1) return 8;
    }
    if (!strcmp(what, "exits")) {
        burn();
        _exit(5);
    }
    if (!strcmp(what, "killed")) {
        burn();
        kill(getpid(), SIGKILL);
    }
    if (!strcmp(what, "traps")) {
        burn();
        raise(SIGTRAP);
    }
    if (!strcmp(what, "mends")) {
        page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct sigaction action = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO};
        sigaction(SIGSEGV, &action, 0);
        for (int i = 0; i < 100; i++) {
            mprotect((void *)page, 4096, PROT_NONE);
            *page = i;
        }
        burn();
        return mended == 100 && *page == 99 ? 0 : 1;
    }
    if (!strcmp(what, "faults")) {
        burn();
        *(volatile int *)(uintptr_t)argc = 1;
    }
    return 0;
}
