/* The traced library in the tests of the call tracer. */
#include <immintrin.h>
#include <setjmp.h>

struct pair { long a, b; };
struct mixed { double a; long b; };
struct floats { double a, b; };
struct big { long a[5]; };

#ifdef __cplusplus
extern "C" {
#endif
int add_one(int x);
int add_two(int x);
double sum_numbers(int a, double b, float c, long double d, long e, long f, long g, long h, long i,
                   long on_stack, double x2, double x3, double x4, double x5, double x6, double x7,
                   double stack_too);
float half(float x);
long double longer(long double x);
struct pair make_pair(long a, long b);
struct mixed make_mixed(double a, long b);
struct floats make_floats(double a, double b);
struct big make_big(long a);
__m256d add_wide(__m256d a, __m256d b);
double sum_doubles(int n, ...);
long sum_longs(int n, ...);
int tail(int x);
long descend(long depth, long (*again)(long));
void jump_out(jmp_buf where, int value);
void call_back(void (*function)(void *), void *with);
void throw_out(int value);
#ifdef __cplusplus
}
#endif
