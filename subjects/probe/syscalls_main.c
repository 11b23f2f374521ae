/* Makes known numbers of system calls: syscalls_main HOW [N]. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static long n;
static char *self;
static volatile sig_atomic_t got;

static void ask(long times) {
    for (long i = 0; i < times; i++) syscall(SYS_getpgrp);
}

static void *thread(void *unused) {
    (void)unused;
    ask(n);
    return NULL;
}

static void *replaced(void *unused) {
    (void)unused;
    char number[32];
    snprintf(number, sizeof number, "%ld", n);
    execl(self, self, "ask", number, NULL);
    return NULL;
}

static void count(int signal) {
    (void)signal;
    got++;
}

static int ended(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
    self = argv[0];
    const char *how = argc > 1 ? argv[1] : "";
    n = argc > 2 ? atol(argv[2]) : 100;
    if (strcmp(how, "ask") == 0) {
        ask(n);
    } else if (strcmp(how, "write") == 0) {
        int fd = open("/dev/null", O_WRONLY);
        for (long i = 0; i < n; i++) (void)!write(fd, "x", 1);
    } else if (strcmp(how, "sleep") == 0) {
        struct timespec two_ms = {0, 2000000};
        for (long i = 0; i < n; i++) clock_nanosleep(CLOCK_MONOTONIC, 0, &two_ms, NULL);
    } else if (strcmp(how, "threads") == 0) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, thread, NULL);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    } else if (strcmp(how, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            ask(n);
            _exit(3);
        }
        return ended(child);
    } else if (strcmp(how, "spawn") == 0) {
        pid_t child;
        char number[32];
        snprintf(number, sizeof number, "%ld", n);
        char *words[] = {self, "ask", number, NULL};
        if (posix_spawn(&child, self, NULL, NULL, words, environ) != 0) return 1;
        return ended(child);
    } else if (strcmp(how, "exec") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, replaced, NULL);
        for (;;) pause();
    } else if (strcmp(how, "signals") == 0) {
        signal(SIGUSR1, count);
        for (long i = 0; i < n; i++) kill(getpid(), SIGUSR1);
        return got == n ? 5 : 1;
    } else if (strcmp(how, "stop") == 0) {
        pid_t child = fork();
        if (child == 0) {
            raise(SIGSTOP);
            ask(n);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, WUNTRACED);
        if (!WIFSTOPPED(status)) return 1;
        kill(child, SIGCONT);
        return ended(child);
    } else if (strcmp(how, "killed") == 0) {
        kill(getpid(), SIGKILL);
    } else if (strcmp(how, "crash") == 0) {
        abort();
    } else if (strcmp(how, "fails") == 0) {
        for (long i = 0; i < n; i++) {
            open("/no/such/file", O_RDONLY);
            if (i % 2) close(-1);
        }
    } else if (strcmp(how, "waits") == 0) {
        pause();
    } else if (strcmp(how, "leaves") == 0) {
        int ends[2];
        char byte = 0;
        if (pipe(ends) != 0) return 1;
        if (fork() == 0) {
            (void)!write(ends[1], &byte, 1);
            sleep(1);
            _exit(0);
        }
        (void)!read(ends[0], &byte, 1);
    } else {
        return 64;
    }
    return 0;
}
