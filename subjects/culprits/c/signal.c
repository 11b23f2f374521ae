/* Signal processing: polynomial, scaling, running mean, selection, normalization. */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>

int has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }
#else
int has_avx2(void) { return 0; }
#endif

/* Coefficients of a polynomial of degree seven, highest first. */
#define C0 0.5f
#define C1 -1.25f
#define C2 0.75f
#define C3 2.0f
#define C4 -0.5f
#define C5 0.25f
#define C6 -1.5f
#define C7 1.0f

void shape_f32_scalar(float *out, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float x = in[i];
        out[i] = ((((((C0 * x + C1) * x + C2) * x + C3) * x + C4) * x + C5) * x + C6) * x + C7;
    }
}

#if defined(__x86_64__)
#define STEP(y, c) _mm256_add_ps(_mm256_mul_ps(y, x), _mm256_set1_ps(c))

__attribute__((target("avx2"))) void shape_f32_avx2(float *out, const float *in, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 x = _mm256_loadu_ps(in + i), y = _mm256_set1_ps(C0);
        y = STEP(STEP(STEP(STEP(STEP(STEP(STEP(y, C1), C2), C3), C4), C5), C6), C7);
        _mm256_storeu_ps(out + i, y);
    }
    if (i < n) shape_f32_scalar(out + i, in + i, n - i);
}
#endif

/* out = in * factor */
void scale_up(double *out, const double *in, size_t n, double factor) {
    for (size_t i = 0; i < n; i++) out[i] = in[i] * factor;
}

/* out = in / divisor */
void scale_down(double *out, const double *in, size_t n, double divisor) {
    for (size_t i = 0; i < n; i++) out[i] = in[i] / divisor;
}

/* A running mean over `width` samples, computed from prefix sums. `sums` has space for n + 1 of them; if it is NULL,
   the function maps its own buffer. Returns 0, or -1 if there is no memory. */
int running_mean(float *out, const float *in, size_t n, size_t width, double *sums) {
    size_t bytes = (n + 1) * sizeof(double);
    double *own = NULL;
    if (!sums) {
        own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (own == MAP_FAILED) return -1;
        sums = own;
    }
    sums[0] = 0;
    for (size_t i = 0; i < n; i++) sums[i + 1] = sums[i] + in[i];
    double share = 1.0 / width;
    for (size_t i = 0; i + width <= n; i++) out[i] = (float)((sums[i + width] - sums[i]) * share);
    if (own) munmap(own, bytes);
    return 0;
}

/* Copies the samples above a limit and returns their number. */
size_t select_above(int32_t *out, const int32_t *in, size_t n, int32_t limit) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (in[i] > limit) out[found++] = in[i];
    return found;
}

/* Divides weights by their sum and returns the sum. */
float shares(float *out, const float *weights, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += weights[i];
    float whole = (float)sum;
    for (size_t i = 0; i < n; i++) out[i] = weights[i] / whole;
    return whole;
}

/* Smooths with weights 1/4, 1/2, 1/4. Both functions are the same. */
#define SOFTEN(name)                                                  \
    void name(float *out, const float *in, size_t n) {                \
        for (size_t i = 1; i + 1 < n; i++)                            \
            out[i] = 0.25f * in[i - 1] + 0.5f * in[i] + 0.25f * in[i + 1]; \
    }

SOFTEN(soften)
SOFTEN(soften_v1)
