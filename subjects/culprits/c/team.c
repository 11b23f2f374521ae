/* Norms of rows, computed by one thread or by two threads that split each row. */
#include <pthread.h>
#include <stddef.h>

struct part {
    const float *from;
    size_t n;
    double sum;
};

static double sum_of_squares(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return sum;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_is_there = PTHREAD_COND_INITIALIZER, work_is_done = PTHREAD_COND_INITIALIZER;
static struct part *work;
static int started;

static void *mate(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!work) pthread_cond_wait(&work_is_there, &lock);
        struct part *mine = work;
        pthread_mutex_unlock(&lock);
        mine->sum = sum_of_squares(mine->from, mine->n);
        pthread_mutex_lock(&lock);
        work = NULL;
        pthread_cond_signal(&work_is_done);
    }
    return NULL;
}

/* The second thread computes half of the row. */
static double sum_of_squares_shared(const float *x, size_t n) {
    struct part theirs = {x + n / 2, n - n / 2, 0};
    pthread_mutex_lock(&lock);
    work = &theirs;
    pthread_cond_signal(&work_is_there);
    pthread_mutex_unlock(&lock);
    double mine = sum_of_squares(x, n / 2);
    pthread_mutex_lock(&lock);
    while (work) pthread_cond_wait(&work_is_done, &lock);
    pthread_mutex_unlock(&lock);
    return mine + theirs.sum;
}

/* Writes the squared norm of each row and returns their sum, or -1 if the second thread cannot be started. */
double row_norms(double *out, const float *in, size_t rows, size_t cols, int threads) {
    if (threads > 1 && !started) {
        pthread_t id;
        if (pthread_create(&id, NULL, mate, NULL) != 0) return -1;
        pthread_detach(id);
        started = 1;
    }
    double all = 0;
    for (size_t i = 0; i < rows; i++) {
        const float *row = in + i * cols;
        out[i] = threads > 1 ? sum_of_squares_shared(row, cols) : sum_of_squares(row, cols);
        all += out[i];
    }
    return all;
}
