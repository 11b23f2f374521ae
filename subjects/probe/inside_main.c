/* Calls inside_work once: inside_main ROUNDS [fork | threads | fail | evex]. */
#include "inside_lib.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rounds;

static void *work(void *unused) {
    (void)unused;
    inside_work(rounds);
    return NULL;
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? atoi(argv[1]) : 10;
    const char *how = argc > 2 ? argv[2] : "";
    if (strcmp(how, "evex") == 0) {
        __asm__ volatile(".byte 0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc0"); /* vmovaps zmm0, zmm0 */
    }
    if (strcmp(how, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            inside_work(rounds);
            exit(0);
        }
        waitpid(child, NULL, 0);
    }
    if (strcmp(how, "threads") == 0) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    }
    printf("%d\n", inside_work(rounds));
    return strcmp(how, "fail") == 0 ? 7 : 0;
}
