/* Sum and transpose of matrices. */
#include <stddef.h>

/* Sums a matrix view with strides `down` and `right`. */
double sum_view(const double *first, size_t rows, size_t cols, ptrdiff_t down, ptrdiff_t right) {
    double sum = 0;
    for (size_t i = 0; i < rows; i++) {
        const double *at = first + (ptrdiff_t)i * down;
        for (size_t j = 0; j < cols; j++, at += right) sum += *at;
    }
    return sum;
}

/* Transposes a square matrix in tiles. */
void transpose(float *out, const float *in, size_t n, size_t tile) {
    for (size_t top = 0; top < n; top += tile) {
        size_t bottom = top + tile < n ? top + tile : n;
        for (size_t left = 0; left < n; left += tile) {
            size_t right = left + tile < n ? left + tile : n;
            for (size_t i = top; i < bottom; i++)
                for (size_t j = left; j < right; j++) out[j * n + i] = in[i * n + j];
        }
    }
}
