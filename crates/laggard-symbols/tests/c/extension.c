// An extension module with the layouts of CPython 3.8 to 3.13, without its headers.
#include <stddef.h>

#define CALLED __attribute__((noinline, used)) static
#define FUNCTION(name, number)                                                                     \
    CALLED void *name(long *self, long *other) {                                                   \
        self[number] += other[0];                                                                  \
        return self + number;                                                                      \
    }

typedef void *(*function)(long *, long *);
typedef struct { const char *name; function call; int flags; const char *doc; } method;
typedef struct { const char *name; function get, set; const char *doc; void *closure; } attribute;
typedef struct { int id; void *value; } slot;
typedef struct { const char *name; int basicsize, itemsize; unsigned flags; slot *slots; } spec;
typedef struct { long count; void *type, *init, *index, *copy; } base;
typedef struct {
    base base;
    const char *name, *doc;
    long size;
    method *methods;
    slot *slots;
    void *traverse, *clear, *free;
} module;
// Words of a type object, by their offset.
typedef union { long number; const void *pointer; } word;
#define AT(offset) [(offset) / 8]

FUNCTION(table_get, 1)
FUNCTION(table_copy, 2)
FUNCTION(table_call, 3)
FUNCTION(table_next, 4)
FUNCTION(table_free, 5)
FUNCTION(table_length, 6)
FUNCTION(table_size, 7)
FUNCTION(view_get, 8)
FUNCTION(view_repr, 9)
FUNCTION(shared_hash, 10)
FUNCTION(count_values, 11)
FUNCTION(execute, 12)
FUNCTION(any_float, 13)
FUNCTION(not_listed, 14)
FUNCTION(bad_flags, 15)
FUNCTION(bad_name, 16)
void *shown(long *self, long *other) { return not_listed(self + 17, other); }

// Cython passes the name of the current function to such a helper.
CALLED void add_traceback(const char *name) { __asm__ volatile("" : : "r"(name) : "memory"); }
CALLED void *wrapper(long *self, long *other) {
    if (!other)
        add_traceback("package.extension.Table.scaled");
    return self + 18;
}
CALLED void *helper(long *self, long *other) {
    if (!other)
        add_traceback("package.extension.scale_all");
    return wrapper(self + 19, other);
}
CALLED void *two_names(long *self, long *other) {
    if (!other)
        add_traceback("package.extension.first");
    if (!self)
        add_traceback("package.extension.second");
    return helper(self + 20, other);
}

static method table_methods[] = {
    {"get_item", table_get, 8, "Get an item."},
    {"copy", table_copy, 4, NULL},
    {"__copy__", table_copy, 4, NULL},
    {NULL, NULL, 0, NULL},
};
static attribute table_attributes[] = {
    {"size", table_size, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static void *sequence[] = {table_length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
word table_type[] = {
    AT(0) = {.number = 1},
    AT(24) = {.pointer = "package.extension.Table"},
    AT(32) = {.number = 64},
    AT(48) = {.pointer = table_free},
    AT(104) = {.pointer = sequence},
    AT(120) = {.pointer = shared_hash},
    AT(128) = {.pointer = table_call},
    AT(168) = {.number = 1 << 10},
    AT(224) = {.pointer = table_next},
    AT(232) = {.pointer = table_methods},
    AT(248) = {.pointer = table_attributes},
    AT(408) = {.number = 0},
};

static method view_methods[] = {{"get_item", view_get, 0x82, NULL}, {NULL, NULL, 0, NULL}};
static slot view_slots[] = {{66, view_repr}, {59, shared_hash}, {64, view_methods}, {0, NULL}};
spec view_spec = {"package.extension.View", 32, 0, 1 << 10, view_slots};

static method functions[] = {
    {"value_count", count_values, 3, NULL},
    {"__pyx_fuse_1any_value", any_float, 3, NULL},
    {"other_name", shown, 8, NULL},
    {"bad_flags", bad_flags, 0xc, NULL},
    {"bad name", bad_name, 8, NULL},
    {NULL, NULL, 0, NULL},
};
static slot module_slots[] = {{2, execute}, {0, NULL}};
module definition = {
    .base = {1, NULL, NULL, NULL, NULL}, .name = "extension", .methods = functions, .slots = module_slots,
};
// Cython has a separate record for each function.
method wrapper_record = {"scaled", (function)wrapper, 8, NULL};

const char *const runtime = "cython_runtime";
INIT { return (void *)two_names; }
