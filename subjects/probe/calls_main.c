/* Calls the library in the way given by the first argument; exits with status 0 if all results are
 * correct. The tests count calls of add_one. */
#define _GNU_SOURCE
#include "calls_lib.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static long count = 100000;

static int many(void) {
    int x = 0;
    for (long i = 0; i < count; i++) x = add_one(x);
    return x != count;
}

static void *many_in_thread(void *bad) {
    if (many()) *(int *)bad = 1;
    return NULL;
}

static int threads(void) {
    pthread_t all[2];
    int bad = 0;
    for (int i = 0; i < 2; i++) pthread_create(&all[i], NULL, many_in_thread, &bad);
    for (int i = 0; i < 2; i++) pthread_join(all[i], NULL);
    return bad;
}

static int many_threads(void) {
    int bad = 0;
    for (int i = 0; i < 2000; i++) {
        pthread_t one;
        if (pthread_create(&one, NULL, many_in_thread, &bad)) return 3;
        pthread_join(one, NULL);
    }
    return bad;
}

/* Forks inside a traced call, from which the child also returns. */
static void fork_here(void *pid) { *(pid_t *)pid = fork(); }

static int forks(void) {
    pid_t pid = 0;
    int status = 0;
    if (many()) return 1;
    call_back(fork_here, &pid);
    if (pid == 0) _exit(many());
    if (many()) return 1;
    waitpid(pid, &status, 0);
    return status != 0;
}

/* Another thread of the child calls first, while the forked thread is still in its traced call. */
static void fork_and_thread(void *pid) {
    fork_here(pid);
    if (*(pid_t *)pid == 0) {
        pthread_t one;
        int bad = 0;
        pthread_create(&one, NULL, many_in_thread, &bad);
        pthread_join(one, NULL);
        if (bad) _exit(1);
    }
}

static int forks_thread_first(void) {
    pid_t pid = 0;
    int status = 0;
    call_back(fork_and_thread, &pid);
    if (pid == 0) _exit(many());
    waitpid(pid, &status, 0);
    return many() || status != 0;
}

static int killed(void) {
    for (long done = 0;; done++) {
        add_one(1);
        if (done == count) {
            printf("%ld\n", done);
            fflush(stdout);
            kill(getpid(), SIGKILL);
        }
    }
}

static int jumps(void) {
    jmp_buf here;
    volatile int jumped = 0;
    for (volatile int i = 0; i < 300; i++) {
        if (i % 3 == 0) {
            if (setjmp(here) == 0) jump_out(here, 1);
            else jumped++;
        } else if (add_one(i) != i + 1) return 1;
    }
    return jumped != 100;
}

static int values(void) {
    for (int i = 0; i < 1000; i++) {
        double n = sum_numbers(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17 + i);
        if (n != 153 + i) return 1;
        if (half(i) != i / 2.0f) return 2;
        if (longer(i) != i * 2.0L + 1) return 3;
        struct pair p = make_pair(i, -i);
        if (p.a != i || p.b != -i) return 4;
        struct mixed m = make_mixed(i + 0.5, i);
        if (m.a != i + 0.5 || m.b != i) return 5;
        struct floats f = make_floats(i, i + 1);
        if (f.a != i || f.b != i + 1) return 6;
        struct big b = make_big(i);
        if (b.a[0] != i || b.a[4] != i + 4) return 7;
        if (sum_doubles(9, 1., 2., 3., 4., 5., 6., 7., 8., 9.) != 45) return 8;
        if (sum_longs(9, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L) != 45) return 9;
        char text[64];
        snprintf(text, sizeof text, "%d %.1f %s", i, i + 0.5, "x");
        char expected[64], *at = expected;
        at += sprintf(at, "%d ", i);
        at += sprintf(at, "%.1f ", i + 0.5);
        strcpy(at, "x");
        if (strcmp(text, expected)) return 10;
    }
    return 0;
}

__attribute__((target("avx"))) static int wide(void) {
    for (int i = 0; i < 1000; i++) {
        __m256d a = _mm256_set_pd(i, i + 1, i + 2, i + 3), b = _mm256_set1_pd(i);
        double got[4];
        _mm256_storeu_pd(got, add_wide(a, b));
        for (int k = 0; k < 4; k++)
            if (got[k] != 2 * i + 3 - k) return 1;
    }
    return 0;
}

static int tails(void) {
    int x = 0;
    for (long i = 0; i < count; i++) x = tail(x);
    return x != count;
}

static long again(long depth) { return descend(depth, again); }

static int deep(void) {
    for (int i = 0; i < 3; i++)
        if (descend(10000, again) != 10000) return 1;
    return many();
}

static int by_name(void) {
    void *library = dlopen(getenv("CALLS_LIBRARY"), RTLD_NOW);
    if (!library) return 2;
    int (*function)(int) = (int (*)(int))dlsym(library, "add_one");
    int x = 0;
    for (long i = 0; i < count; i++) x = function(x);
    return x != count;
}

/* Two coroutines and the main stack, each switched away from within traced calls, that end in
 * another order than they started. */
static ucontext_t main_context, first_context, second_context;
static char *first_stack, *second_stack;
static int steps;

static void to_main(void *from) { swapcontext(from, &main_context); }

static void coroutine(int number) {
    ucontext_t *own = number ? &second_context : &first_context;
    for (int i = 0; i < 100; i++) {
        call_back(to_main, own);
        steps += add_one(0);
    }
}

static void resume(void *coroutine) { swapcontext(&main_context, coroutine); }

static int coroutines(int in_one_area) {
    first_stack = in_one_area ? malloc(1 << 16) : mmap(NULL, 1 << 16, 3, 0x22, -1, 0);
    second_stack = malloc(1 << 16);
    ucontext_t *contexts[] = {&first_context, &second_context};
    void *stacks[] = {first_stack, second_stack};
    for (int i = 0; i < 2; i++) {
        getcontext(contexts[i]);
        contexts[i]->uc_stack.ss_sp = stacks[i];
        contexts[i]->uc_stack.ss_size = 1 << 16;
        contexts[i]->uc_link = &main_context;
        makecontext(contexts[i], (void (*)(void))coroutine, 1, i);
    }
    for (int i = 0; i < 101; i++) {
        call_back(resume, &first_context);
        steps += add_one(0);
        call_back(resume, &second_context);
    }
    return steps != 301;
}

/* A signal handler with its own stack calls while other calls are active. */
static volatile long handled;
static void handler(int signal) {
    (void)signal;
    handled += add_one(0);
}

static int signals(void) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGALRM, &action, NULL);
    ualarm(200, 200);
    long mine = 0;
    while (handled < 200) mine += add_two(0) - 1 == 1;
    ualarm(0, 0);
    return mine == 0;
}

static void *cancelled(void *nothing) {
    (void)nothing;
    for (;;) {
        add_one(1);
        pthread_testcancel();
    }
}
static void cancel_here(void *nothing) { cancelled(nothing); }
static void *cancel_in_call(void *nothing) {
    call_back(cancel_here, nothing);
    return NULL;
}

static int cancels(void) {
    for (int i = 0; i < 20; i++) {
        pthread_t one;
        void *result;
        pthread_create(&one, NULL, cancel_in_call, NULL);
        usleep(1000);
        pthread_cancel(one);
        pthread_join(one, &result);
        if (result != PTHREAD_CANCELED) return 1;
    }
    return 0;
}

static int runs(char **arguments) {
    execvp(arguments[0], arguments);
    return 127;
}

static int spawns(char **arguments) {
    int status = 0;
    if (many()) return 1;
    if (fork() == 0) {
        execvp(arguments[0], arguments);
        _exit(127);
    }
    wait(&status);
    return status != 0;
}

static int arguments(void) {
    for (int i = 0; i < 1000; i++) {
        if (sum_longs(i % 2 ? 1 : 2, 7L, -1L) != (i % 2 ? 7 : 6)) return 1;
    }
    return 0;
}

int main(int n, char **words) {
    if (n < 2) return 2;
    const char *way = words[1];
    if (n > 2 && atol(words[2]) > 0) count = atol(words[2]);
    if (!strcmp(way, "many")) return many();
    if (!strcmp(way, "exit")) _exit(many());
    if (!strcmp(way, "threads")) return threads();
    if (!strcmp(way, "many-threads")) return many_threads();
    if (!strcmp(way, "forks")) return forks();
    if (!strcmp(way, "forks-thread-first")) return forks_thread_first();
    if (!strcmp(way, "killed")) return killed();
    if (!strcmp(way, "jumps")) return jumps();
    if (!strcmp(way, "values")) return values();
    if (!strcmp(way, "wide")) return __builtin_cpu_supports("avx") ? wide() : 0;
    if (!strcmp(way, "tails")) return tails();
    if (!strcmp(way, "deep")) return deep();
    if (!strcmp(way, "by-name")) return by_name();
    if (!strcmp(way, "coroutines")) return coroutines(0);
    if (!strcmp(way, "coroutines-on-heap")) return coroutines(1);
    if (!strcmp(way, "signals")) return signals();
    if (!strcmp(way, "cancels")) return cancels();
    if (!strcmp(way, "arguments")) return arguments();
    if (!strcmp(way, "runs")) return runs(words + 2);
    if (!strcmp(way, "spawns")) return spawns(words + 2);
    return 2;
}
