/*
 * t4a: differentiable operations on tensors of DLPack.
 *
 * An operation is a value: equal text, equal operation. It says shapes and dtypes of its results before any work, runs,
 * and has derivatives, which are operations again, so a host with a tape of its own gets every order.
 *
 * Conventions
 *   Functions that can fail return a t4a_status and, if `error` is not NULL, write an error object there, or NULL if all is
 *   well. Nothing is kept per thread; every object may be used and released on any thread, by several at once as long
 *   as none releases it. No panic and no exception leaves the library.
 *   Structs that begin with `size` want sizeof the struct; later versions append fields.
 *   Only memory of the processor. Tensors with any strides, negative ones and zeros too. Elements that are not aligned,
 *   and booleans, are copied when they are read, others are not.
 *   Complex tensors have interleaved parts and count as one tensor. Cotangents of complex numbers are
 *   dL/dRe + i dL/dIm, as in PyTorch and ChainRules; those of JAX are the conjugates.
 *   Flags are bytes: 0 is false.
 *   Libraries built with debug assertions refuse a handle that was released (T4A_ARGUMENT), and ignore it where it is
 *   released again; in others that is undefined behaviour.
 *
 * Meaning of operations
 *   Where a maximum is tied, the first place in row-major order has the whole derivative.
 *   Hermitian matrices (eigh, cholesky) are read as (A + A^H) / 2, both triangles.
 *   Derivatives of singular or eigenvectors that depend on an arbitrary phase or basis are T4A_GAUGE. A tape that takes
 *   second derivatives of complex ones apart has parts that depend on phases where their sum does not: there
 *   the operation's "check_gauge" has to be false.
 */
#ifndef T4A_H
#define T4A_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* DLPack 1.1, unless its own header came first. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
typedef struct { uint32_t major; uint32_t minor; } DLPackVersion;
typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL is row-major */
  uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags; /* bit 0: read-only */
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif

#define T4A_ABI_MAJOR 1
#define T4A_ABI_MINOR 3

typedef int32_t t4a_status;
enum {
  T4A_OK = 0,
  T4A_ARGUMENT = 1,    /* null pointers, numbers of arguments, text that is no operation */
  T4A_SHAPE = 2,       /* shapes that do not fit */
  T4A_DTYPE = 3,       /* dtypes that do not fit */
  T4A_SINGULAR = 4,    /* a matrix without the factorisation or the inverse */
  T4A_GAUGE = 5,       /* a derivative that depends on an arbitrary choice of vectors */
  T4A_MEMORY = 6,      /* memory, or a bound on it */
  T4A_UNSUPPORTED = 7, /* devices, versions, forms that the library does not have */
  T4A_INTERNAL = 255   /* a fault of the library */
};

typedef struct t4a_error t4a_error;
typedef struct t4a_tensor t4a_tensor;
typedef struct t4a_op t4a_op;
typedef struct t4a_saved t4a_saved;

/* major << 16 | minor. The majors must agree; a library of a greater minor serves an older header. */
uint32_t t4a_abi(void);
/* The version of the library, for people. */
const char *t4a_version(void);
/* The maximum number of threads of operations that follow. */
t4a_status t4a_set_threads(int32_t count, t4a_error **error);
int32_t t4a_threads(void);

/* ---- errors: owned by the caller ---- */

t4a_status t4a_error_status(const t4a_error *error);
/* UTF-8, as long as the error lives. */
const char *t4a_error_text(const t4a_error *error);
/* The matrix of a batch that is to blame, or -1. */
int64_t t4a_error_batch(const t4a_error *error);
void t4a_error_free(t4a_error *error);

/* ---- tensors: immutable, counted ---- */

/* Takes a tensor over. Its deleter is called exactly once: with the last handle, or before an error is returned. The
   elements must not change until then. */
t4a_status t4a_tensor_take(DLManagedTensorVersioned *tensor, t4a_tensor **out, t4a_error **error);
t4a_status t4a_tensor_copy(const DLTensor *tensor, t4a_tensor **out, t4a_error **error);

#define T4A_WRITABLE 1u     /* the consumer writes: elements that somebody else holds are copied */
#define T4A_COLUMN_MAJOR 2u /* first axis fastest; without it row-major */
#define T4A_STRIDED 4u      /* whatever strides there are */

/* Gives the tensor to a consumer, who calls the deleter. The handle is released, in failure too. Without
   T4A_WRITABLE elements that others hold are marked read-only. */
t4a_status t4a_tensor_give(t4a_tensor *tensor, uint32_t flags, DLManagedTensorVersioned **out,
                           t4a_error **error);
/* The same pointer, to be released once more. */
t4a_tensor *t4a_tensor_retain(t4a_tensor *tensor);
void t4a_tensor_release(t4a_tensor *tensor);
/* Elements, to be read as long as a handle lives. */
const DLTensor *t4a_tensor_view(const t4a_tensor *tensor);

/* ---- operations: values ---- */

typedef struct {
  size_t size;
  const int64_t *labels;
  const int64_t *shape;
  int32_t rank;
} t4a_operand;

typedef struct {
  size_t size;
  const char *semiring; /* NULL: "standard"; "max_plus", "min_plus", "max_mul", "min_mul", "max_min", "log_sum_exp" */
  size_t memory;        /* bytes for intermediate tensors, 0: no bound */
  DLDataType dtype;     /* all zero: f64; a complex one makes operands and result complex */
  const char *optimize; /* NULL: "greedy"; "annealing"; a path of opt_einsum as "[[0,1],[0,1]]". Since 1.2 */
} t4a_einsum_options;

/* A contraction: axes with one label go together, labels that `result` lacks are summed. Any integers are labels. The
   plan is found once for each set of labels and shapes. `options` may be NULL. */
t4a_status t4a_op_einsum(const t4a_operand *operands, size_t count, const int64_t *result, int32_t result_rank,
                         const t4a_einsum_options *options, t4a_op **out, t4a_error **error);
/* Text of an operation: {"t4a":1,"op":{"softmax":{"axis":1}}}. */
t4a_status t4a_op_parse(const char *text, size_t length, t4a_op **out, t4a_error **error);
/* The length of the text; writes what there is room for, with a zero behind it. 0 if the operation has a number
   that no text has, as infinity. */
size_t t4a_op_text(const t4a_op *op, char *buffer, size_t room);

/* Operands, then tangents of those that move -> results, tangents of all results, indices. */
t4a_status t4a_op_jvp(const t4a_op *op, const uint8_t *moving, size_t operands, t4a_op **out, t4a_error **error);
/* Operands, then cotangents of the results given -> cotangents of the operands wanted. Indices are no results here. */
t4a_status t4a_op_vjp(const t4a_op *op, const uint8_t *given, size_t results, const uint8_t *wanted,
                      size_t operands, t4a_op **out, t4a_error **error);
/* Operands, then all results, then cotangents of the results given -> cotangents of the operands wanted: the results are
   not computed again. The same value as t4a_op_vjp has, and the same derivatives: results are functions of operands.
   T4A_UNSUPPORTED for an operation whose rule reads no results, or more than operands and results. Since 1.1. */
t4a_status t4a_op_vjp_of_results(const t4a_op *op, const uint8_t *given, size_t results, const uint8_t *wanted,
                                 size_t operands, t4a_op **out, t4a_error **error);
/* The operation on `size` examples: operands that differ, and all results, have one more axis in front; a result that
   is a number without axes has the shape [size, 1].
   T4A_UNSUPPORTED if it has no such form for these operands. */
t4a_status t4a_op_batch(const t4a_op *op, size_t size, const uint8_t *differ, size_t operands, t4a_op **out,
                        t4a_error **error);

#define T4A_MAX_RANK 64
typedef struct {
  size_t size;
  int32_t rank;
  DLDataType dtype;
  int64_t shape[T4A_MAX_RANK];
} t4a_meta;

/* Shapes and dtypes of the results, before any work. With out == NULL their number alone. */
t4a_status t4a_op_results(const t4a_op *op, const t4a_meta *operands, size_t count, t4a_meta *out, size_t room,
                          size_t *results, t4a_error **error);
void t4a_op_free(t4a_op *op);

/* ---- running: operands are borrowed for the call ---- */

/* Results are row-major or views of each other's memory, never of that of an operand. After an error nothing was
   written to `out`. */
t4a_status t4a_run(const t4a_op *op, const DLTensor *const *operands, size_t count, t4a_tensor **out, size_t room,
                   size_t *results, t4a_error **error);
/* Into memory of the caller, with any strides; it must not overlap operands or itself. Indices are i64, or the integers
   of their place. */
t4a_status t4a_run_into(const t4a_op *op, const DLTensor *const *operands, size_t count, DLTensor *const *out,
                        size_t results, t4a_error **error);
/* Keeps what the reverse pass by the wanted operands needs. */
t4a_status t4a_run_saved(const t4a_op *op, t4a_tensor *const *operands, size_t count, const uint8_t *wanted,
                         t4a_tensor **out, size_t room, size_t *results, t4a_saved **saved, t4a_error **error);
/* Cotangents of the wanted operands; NULL among `cotangents` is zero. May be called several times. */
t4a_status t4a_saved_vjp(const t4a_saved *saved, const DLTensor *const *cotangents, size_t count,
                         t4a_tensor **out, size_t room, size_t *results, t4a_error **error);
void t4a_saved_free(t4a_saved *saved);

/* ---- networks: since 1.1 ---- */

/* Called after each sweep: numbers of state and sweep, energy, part of the squares of singular values that was dropped,
   largest bond. 0 goes on, 1 ends the search of this state, anything else is T4A_ARGUMENT. */
typedef int32_t (*t4a_progress)(void *context, size_t state, size_t sweep, double energy, double truncation, size_t bond);
/* The lowest states of a chain by DMRG. The problem is text:
     {"site": "spin_half" | {"spin": {"twice": 2}} | "fermion" | "electron" | {"boson": {"most": 3}}, "count": 8,
      "conserve": true, "terms": [{"coefficient": [0.5, 0], "factors": [["S+", 0], ["S-", 1]], "with_adjoint": true}],
      "start": ["Up", "Dn", ...], "states": 1, "options": {"max_dims": [16, 32], "cutoff": 1e-12, "sweeps": 20,
      "tolerance": 1e-10, "update": "two_sites" | "one_site", "expansion": 1e-3, "applications": 6},
      "expect": ["Sz"], "correlations": [["Sz", "Sz"]]}
   All from "conserve" on but "terms" and "start" may be missing. The result is text too, as bytes: energies, variances,
   sweeps, entropies of bonds, expectation values and correlations as pairs of numbers. `progress` may be NULL. */
t4a_status t4a_ground_states(const char *problem, size_t length, t4a_progress progress, void *context, t4a_tensor **out,
                             size_t room, size_t *results, t4a_error **error);

/* Values at `count` points of so many indices as there are sites, point by point: doubles, or pairs of them for complex
   numbers. Anything but 0 is T4A_ARGUMENT. Called on the thread of the caller. */
typedef int32_t (*t4a_values)(void *context, const int64_t *points, size_t count, double *values);
/* The tensor train of a function of indices by cross interpolation. Results: a report, text as bytes, then a core [left,
   size, right] for each site. Options are text: {"tolerance": 1e-8, "max_bond": 100, "max_sweeps": 100, "search": "rook" |
   "full", "global_search": 5, "initial_pivots": [[0, 1]], "seed": 0}; NULL for none. */
t4a_status t4a_cross_interpolation(const int64_t *sizes, size_t sites, int32_t is_complex, t4a_values values,
                                   void *context, const char *options, size_t length, t4a_tensor **out, size_t room,
                                   size_t *results, t4a_error **error);

/* ---- XLA ---- */

/* A handler of its foreign function interface (execute; any later version of the structs of 0.1). The attribute `text`
   is the operation. Returns NULL, or an error of XLA. */
void *t4a_xla_execute(void *call_frame);

/* ---- Python ---- */

/* For the package t4a of Python alone: built-in functions of CPython, a list, made with the functions at these addresses
   (capi/src/python), or NULL. To be called with the lock of the interpreter. Since 1.1. */
void *t4a_python(const void *symbols);

/* The destructor for PyCapsule_New of a capsule "dltensor_versioned" that owns an exported tensor, made with the addresses of
   PyCapsule_IsValid and PyCapsule_GetPointer; NULL if one is NULL. Since 1.3. */
void *t4a_capsule_destructor(const void *is_valid, const void *pointer);

#ifdef __cplusplus
}
#endif
#endif
