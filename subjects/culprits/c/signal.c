/* Samples: shaped, smoothed, chosen, turned into shares. */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>

int has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }
#else
int has_avx2(void) { return 0; }
#endif

#define DEGREE 7
static const float shape[DEGREE + 1] = {0.5f, -1.25f, 0.75f, 2.0f, -0.5f, 0.25f, -1.5f, 1.0f};

/* out = the polynomial of in. */
void shape_f32_scalar(float *out, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float x = in[i], y = shape[0];
        for (int k = 1; k <= DEGREE; k++) y = y * x + shape[k];
        out[i] = y;
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void shape_f32_avx2(float *out, const float *in, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 x = _mm256_loadu_ps(in + i), y = _mm256_set1_ps(shape[0]);
        for (int k = 1; k <= DEGREE; k++)
            y = _mm256_add_ps(_mm256_mul_ps(y, x), _mm256_set1_ps(shape[k]));
        _mm256_storeu_ps(out + i, y);
    }
    if (i < n) shape_f32_scalar(out + i, in + i, n - i);
}
#endif

/* A running mean over `width` samples, by sums from the first on. `sums` has room for n + 1 of them; without it the
   function gets room of its own. Gives 0, or -1 when there is no memory. */
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

/* Copies the samples above a limit, and says how many there are. */
size_t select_above(int32_t *out, const int32_t *in, size_t n, int32_t limit) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (in[i] > limit) out[found++] = in[i];
    return found;
}

/* Turns weights into shares of their sum, and gives the largest. */
float shares(float *out, const float *weights, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += weights[i];
    float whole = (float)sum, most = 0;
    for (size_t i = 0; i < n; i++) {
        out[i] = weights[i] / whole;
        if (out[i] > most) most = out[i];
    }
    return most;
}

/* Each sample with its two neighbours, in quarters. The second is what the first was called before. */
#define SOFTEN(name)                                                  \
    void name(float *out, const float *in, size_t n) {                \
        for (size_t i = 1; i + 1 < n; i++)                            \
            out[i] = 0.25f * in[i - 1] + 0.5f * in[i] + 0.25f * in[i + 1]; \
    }

SOFTEN(soften)
SOFTEN(soften_v1)
