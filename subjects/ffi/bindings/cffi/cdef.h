/* benchlib.h for cffi, which has no preprocessor. */
void bl_noop(void);
int32_t bl_return_int(void);
int64_t bl_return_int64(void);
bool bl_return_bool(void);
double bl_return_double(void);

int32_t bl_add_int32(int32_t a, int32_t b);
int64_t bl_add_int64(int64_t a, int64_t b);
bool bl_and_bool(bool a, bool b);
double bl_add_double(double a, double b);

size_t bl_bytes_length(const char *text);
size_t bl_bytes_count(const char *bytes, size_t length, uint8_t byte);
size_t bl_str_length(const char *utf8);
char *bl_concat(const char *a, const char *b);
void bl_free(void *memory);

double bl_sum_double(const double *values, size_t count);
void bl_scale(double *values, size_t count, double factor);
double bl_sum_strided(const double *values, size_t count, size_t stride);
int64_t bl_sum_int32(const int32_t *values, size_t count);

typedef struct {
    double x, y;
} bl_point;
bl_point bl_point_make(double x, double y);
double bl_point_norm(bl_point point);
void bl_point_move(bl_point *point, double dx, double dy);

typedef int64_t (*bl_plain_callback)(int64_t x);
int64_t bl_call_plain(bl_plain_callback callback, int64_t x);
int64_t bl_call_many_plain(bl_plain_callback callback, int64_t count);

size_t bl_alloc(size_t bytes);

double bl_dot(const double *a, const double *b, size_t count);
void bl_matmul(const double *a, const double *b, double *out, size_t side);

int32_t bl_args5(int32_t a, int32_t b, int32_t c, int32_t d, int32_t e);
double bl_args8(double a, double b, double c, double d, double e, double f, double g, double h);
double bl_args_mixed(int32_t a, double b, int64_t c, bool d, double e, int32_t f);

typedef struct {
    double values[16];
} bl_large;
bl_large bl_large_make(double start);
void bl_fill(uint8_t *out, size_t length);

int32_t bl_check(int32_t x);

int32_t bl_f00(void), bl_f01(void), bl_f02(void), bl_f03(void), bl_f04(void),
    bl_f05(void), bl_f06(void), bl_f07(void), bl_f08(void), bl_f09(void);
int32_t bl_f10(void), bl_f11(void), bl_f12(void), bl_f13(void), bl_f14(void),
    bl_f15(void), bl_f16(void), bl_f17(void), bl_f18(void), bl_f19(void);
int32_t bl_f20(void), bl_f21(void), bl_f22(void), bl_f23(void), bl_f24(void),
    bl_f25(void), bl_f26(void), bl_f27(void), bl_f28(void), bl_f29(void);
int32_t bl_f30(void), bl_f31(void), bl_f32(void), bl_f33(void), bl_f34(void),
    bl_f35(void), bl_f36(void), bl_f37(void), bl_f38(void), bl_f39(void);
int32_t bl_f40(void), bl_f41(void), bl_f42(void), bl_f43(void), bl_f44(void),
    bl_f45(void), bl_f46(void), bl_f47(void), bl_f48(void), bl_f49(void);
int32_t bl_f50(void), bl_f51(void), bl_f52(void), bl_f53(void), bl_f54(void),
    bl_f55(void), bl_f56(void), bl_f57(void), bl_f58(void), bl_f59(void);
int32_t bl_f60(void), bl_f61(void), bl_f62(void), bl_f63(void), bl_f64(void),
    bl_f65(void), bl_f66(void), bl_f67(void), bl_f68(void), bl_f69(void);
int32_t bl_f70(void), bl_f71(void), bl_f72(void), bl_f73(void), bl_f74(void),
    bl_f75(void), bl_f76(void), bl_f77(void), bl_f78(void), bl_f79(void);
int32_t bl_f80(void), bl_f81(void), bl_f82(void), bl_f83(void), bl_f84(void),
    bl_f85(void), bl_f86(void), bl_f87(void), bl_f88(void), bl_f89(void);
int32_t bl_f90(void), bl_f91(void), bl_f92(void), bl_f93(void), bl_f94(void),
    bl_f95(void), bl_f96(void), bl_f97(void), bl_f98(void), bl_f99(void);
