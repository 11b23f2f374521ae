// Functions with known instructions.
#include <immintrin.h>
#include <stddef.h>

int callee(int value);

// A loop that becomes 256-bit FMA with -O2 -mavx2 -mfma and fast math, but not with -march=x86-64.
float dot(const float *a, const float *b, size_t n) {
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

long divide(long a, long b) {
    return a / b;
}

int caller(int value) {
    return callee(value + 1) + callee(value);
}

int leaf(int value) {
    return value * 3;
}

#ifdef __AVX2__
__attribute__((noinline)) void vectors(float *out, const float *in, const int *at) {
    __m256 sum = _mm256_setzero_ps();
    for (int i = 0; i < 1000; i++) {
        __m256i index = _mm256_loadu_si256((const __m256i *)(at + 8 * i));
        __m256 value = _mm256_i32gather_ps(in, index, 4);
        sum = _mm256_fmadd_ps(value, value, sum);
        sum = _mm256_div_ps(sum, _mm256_sqrt_ps(value));
    }
    _mm256_storeu_ps(out, sum);
}
#endif

#ifdef __AVX512F__
void wide(float *out, const float *in) {
    _mm512_storeu_ps(out, _mm512_add_ps(_mm512_loadu_ps(in), _mm512_loadu_ps(in + 16)));
}
#endif
