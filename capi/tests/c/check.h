/* Layouts of structs against those of the library, and what the tests check with. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "t4a.h"

#ifdef __cplusplus
#define STATIC_ASSERT static_assert
#else
#define STATIC_ASSERT _Static_assert
#endif
#define FIELD(type, field) STATIC_ASSERT(offsetof(type, field) == RUST_##type##_##field, #type "." #field)
#define SIZE(type) STATIC_ASSERT(sizeof(type) == RUST_##type, #type)
SIZE(DLTensor);
FIELD(DLTensor, data);
FIELD(DLTensor, device);
FIELD(DLTensor, ndim);
FIELD(DLTensor, dtype);
FIELD(DLTensor, shape);
FIELD(DLTensor, strides);
FIELD(DLTensor, byte_offset);
SIZE(DLManagedTensorVersioned);
FIELD(DLManagedTensorVersioned, version);
FIELD(DLManagedTensorVersioned, manager_ctx);
FIELD(DLManagedTensorVersioned, deleter);
FIELD(DLManagedTensorVersioned, flags);
FIELD(DLManagedTensorVersioned, dl_tensor);
SIZE(t4a_operand);
FIELD(t4a_operand, labels);
FIELD(t4a_operand, shape);
FIELD(t4a_operand, rank);
SIZE(t4a_einsum_options);
FIELD(t4a_einsum_options, semiring);
FIELD(t4a_einsum_options, memory);
FIELD(t4a_einsum_options, dtype);
FIELD(t4a_einsum_options, optimize);
SIZE(t4a_meta);
FIELD(t4a_meta, rank);
FIELD(t4a_meta, dtype);
FIELD(t4a_meta, shape);

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);               \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

static inline void ok(t4a_status status, t4a_error *error, int line) {
  if (status != T4A_OK || error != NULL) {
    fprintf(stderr, "line %d: status %d: %s\n", line, status, t4a_error_text(error));
    exit(1);
  }
}
#define OK(call)                  \
  do {                            \
    t4a_error *error = NULL;      \
    t4a_status status_ = call;    \
    ok(status_, error, __LINE__); \
  } while (0)
/* A failure with this status and these words. */
static inline void fails(t4a_status wanted, const char *text, t4a_status status, t4a_error *error, int line) {
  if (status != wanted || error == NULL || t4a_error_status(error) != wanted ||
      strstr(t4a_error_text(error), text) == NULL) {
    fprintf(stderr, "line %d: status %d, wanted %d: %s\n", line, status, wanted, t4a_error_text(error));
    exit(1);
  }
  t4a_error_free(error);
}
#define FAILS(wanted, text, call)                     \
  do {                                                \
    t4a_error *error = NULL;                          \
    t4a_status status_ = call;                        \
    fails(wanted, text, status_, error, __LINE__);    \
  } while (0)

#define F64 t4a_dtype(2, 64)
#define F32 t4a_dtype(2, 32)
#define C128 t4a_dtype(5, 128)
static inline DLDataType t4a_dtype(uint8_t code, uint8_t bits) {
  DLDataType dtype;
  dtype.code = code;
  dtype.bits = bits;
  dtype.lanes = 1;
  return dtype;
}

static inline DLTensor tensor(void *data, DLDataType dtype, int32_t rank, int64_t *shape, int64_t *strides) {
  DLTensor t;
  memset(&t, 0, sizeof t);
  t.data = data;
  t.device.device_type = 1;
  t.ndim = rank;
  t.dtype = dtype;
  t.shape = shape;
  t.strides = strides;
  return t;
}

static inline t4a_op *product(const char *semiring, DLDataType dtype) {
  int64_t ij[] = {1, -2}, jk[] = {-2, 3}, ik[] = {1, 3}, left[] = {2, 3}, right[] = {3, 2};
  t4a_operand operands[] = {{sizeof(t4a_operand), ij, left, 2}, {sizeof(t4a_operand), jk, right, 2}};
  t4a_einsum_options options = {sizeof(t4a_einsum_options), semiring, 0, {0, 0, 0}, NULL};
  t4a_op *op = NULL;
  options.dtype = dtype;
  OK(t4a_op_einsum(operands, 2, ik, 2, &options, &op, &error));
  return op;
}

static inline t4a_op *parse(const char *text) {
  t4a_op *op = NULL;
  OK(t4a_op_parse(text, strlen(text), &op, &error));
  return op;
}
