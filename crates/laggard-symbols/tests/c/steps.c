// Runs one scenario and records registers and stack before every instruction of a part of it.
//
//   steps SCENARIO OUTPUT
//
// A record is 17 registers in DWARF order, start and length of the stack copy (which includes
// the red zone), and the copy. OUTPUT.maps gets /proc/self/maps at the end.
#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
enum { MOST_RECORDS = 4000, TRAP_FLAG = 0x100, RED_ZONE = 128 };

extern void *__libc_stack_end;
static __thread uintptr_t stack_end;
static volatile int records, sink;
static int output;

static void on_trap(int number, siginfo_t *info, void *context) {
    (void)number;
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (info->si_code != TRAP_TRACE) {
        g[REG_EFL] = records < MOST_RECORDS ? g[REG_EFL] ^ TRAP_FLAG : g[REG_EFL] & ~TRAP_FLAG;
        return;
    }
    uint64_t head[19] = {g[REG_RAX], g[REG_RDX], g[REG_RCX], g[REG_RBX], g[REG_RSI], g[REG_RDI],
                         g[REG_RBP], g[REG_RSP], g[REG_R8],  g[REG_R9],  g[REG_R10], g[REG_R11],
                         g[REG_R12], g[REG_R13], g[REG_R14], g[REG_R15], g[REG_RIP]};
    head[17] = g[REG_RSP] - RED_ZONE;
    head[18] = stack_end - head[17];
    if (write(output, head, sizeof head) < 0 || write(output, (void *)head[17], head[18]) < 0) _exit(3);
    if (++records >= MOST_RECORDS) g[REG_EFL] &= ~TRAP_FLAG;
}

// A breakpoint switches recording on or off. Unlike pushf, it does not move the stack pointer,
// a move that no unwind information would cover.
#define TRACE_ON() __asm__ volatile("int3" ::: "memory")
#define TRACE_OFF() TRACE_ON()

NOINLINE static int leaf(int x) { return x * 3 + sink; }
NOINLINE static int middle(int a, int b, int c, int d, int e, int f) {
    int x = leaf(a) + leaf(b), y = leaf(c) ^ x, z = leaf(d) - y, w = leaf(e) | z, v = leaf(f) + w;
    return x + y * z + w * v + leaf(x) + leaf(y) + leaf(z) + leaf(w) + leaf(v);
}
NOINLINE static void plain(void) {
    TRACE_ON();
    sink += middle(1, 2, 3, 4, 5, 6);
    TRACE_OFF();
}

// Realigned, with stack arguments and a size known only at run time: unwound through r10.
NOINLINE static int aligned(int n, int a, int b, int c, int d, int e, int f, int g) {
    char room[256] __attribute__((aligned(64)));
    char *more = alloca(n);
    memset(room, a, sizeof room);
    memset(more, b, n);
    int sum = leaf(c) + leaf(d) + leaf(e) + leaf(f) + leaf(g);
    return sum + room[n & 63] + more[n / 2] + leaf(sum);
}
NOINLINE static void realign(void) {
    TRACE_ON();
    sink += aligned(100 + sink, 1, 2, 3, 4, 5, 6, 7);
    TRACE_OFF();
}

NOINLINE static int deep(int n) {
    if (n > 0) return leaf(deep(n - 1)) + n;
    TRACE_ON();
    int x = leaf(n);
    TRACE_OFF();
    return x;
}
NOINLINE static void recursion(void) { sink += deep(300); }

static void on_usr1(int number) {
    TRACE_ON();
    sink += leaf(number);
    TRACE_OFF();
}
NOINLINE static void interrupt(void) {
    signal(SIGUSR1, on_usr1);
    raise(SIGUSR1);
    sink++;
}

NOINLINE static void plt(void) {
    TRACE_ON();
    sink += (int)strtol("77", NULL, 10) + leaf(getpagesize());
    TRACE_OFF();
}

static int order(const void *a, const void *b) { return leaf(*(const int *)a) - leaf(*(const int *)b); }
NOINLINE static void callback(void) {
    int numbers[] = {5, 3, 9, 1};
    TRACE_ON();
    qsort(numbers, 4, sizeof *numbers, order);
    TRACE_OFF();
    sink += numbers[0];
}

static void *in_thread(void *base) {
    stack_end = (uintptr_t)base;
    pthread_attr_t attributes;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    stack_end = (uintptr_t)low + size;
    TRACE_ON();
    sink += leaf(1);
    TRACE_OFF();
    return NULL;
}
NOINLINE static void thread(void) {
    pthread_t other;
    pthread_create(&other, NULL, in_thread, NULL);
    pthread_join(other, NULL);
}

// Assembly without unwind information.
__asm__(".text\n.type bare_leaf, @function\nbare_leaf: nop\nnop\nret\n.size bare_leaf, .-bare_leaf\n"
        ".type bare_frame, @function\nbare_frame: push %rbp\nmov %rsp, %rbp\ncall *%rdi\npop %rbp\n"
        "ret\n.size bare_frame, .-bare_frame\n"
        ".type bare_word, @function\nbare_word: sub $8, %rsp\ncall *%rdi\nadd $8, %rsp\nret\n"
        ".size bare_word, .-bare_word\n");
void bare_leaf(void);
void bare_frame(void (*)(void));
void bare_word(void (*)(void));
static void in_frame(void) {
    TRACE_ON();
    sink += leaf(2);
    TRACE_OFF();
}
NOINLINE static void assembly(void) {
    TRACE_ON();
    bare_leaf();
    TRACE_OFF();
    bare_frame(in_frame);
    bare_word(in_frame);
    sink++;
}

// Stores its caller's stack pointer only in the red zone, like the assembly of OpenSSL.
__asm__(".type in_red_zone, @function\nin_red_zone: .cfi_startproc\nmov %rsp, %rax\n"
        ".cfi_def_cfa_register rax\nsub $256, %rsp\nand $-32, %rsp\nmov %rax, -8(%rsp)\n"
        ".cfi_escape 0x0f, 5, 0x77, 0x78, 0x06, 0x23, 0x08\nxor %eax, %eax\nnop\n"
        "mov -8(%rsp), %rsp\n.cfi_def_cfa rsp, 8\nret\n.cfi_endproc\n"
        ".size in_red_zone, .-in_red_zone\n");
void in_red_zone(void);
NOINLINE static void red_zone(void) {
    TRACE_ON();
    in_red_zone();
    TRACE_OFF();
    sink++;
}

NOINLINE static void vdso(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    TRACE_ON();
    clock_gettime(CLOCK_MONOTONIC, &now);
    TRACE_OFF();
    sink += (int)now.tv_nsec;
}

int main(int count, char **words) {
    static const struct { const char *name; void (*run)(void); } scenarios[] = {
        {"plain", plain}, {"realign", realign}, {"recursion", recursion}, {"interrupt", interrupt},
        {"plt", plt}, {"callback", callback}, {"thread", thread}, {"assembly", assembly}, {"vdso", vdso},
        {"red_zone", red_zone},
    };
    if (count != 3) return 2;
    stack_end = (uintptr_t)__libc_stack_end;
    output = open(words[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (!strcmp(words[1], scenarios[i].name)) scenarios[i].run();
    static char path[4096], text[65536];
    snprintf(path, sizeof path, "%s.maps", words[2]);
    int from = open("/proc/self/maps", O_RDONLY), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (ssize_t n; (n = read(from, text, sizeof text)) > 0;)
        if (write(to, text, n) != n) return 3;
    return records > 0 ? 0 : 4;
}
