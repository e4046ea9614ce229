/* Contractions of dense row-major arrays in one call, over t4a.h. Complex numbers are two doubles. */
#ifndef T4A_CONTRACT_H
#define T4A_CONTRACT_H

#include "t4a.h"

#ifdef __cplusplus
extern "C" {
#endif

#define T4A_MAX_OPERANDS 16

/* An array with a label and a size for each axis. */
typedef struct {
  void *data;
  const int64_t *labels;
  const int64_t *shape;
  int32_t rank;
} t4a_array;

static inline DLTensor t4a_array_tensor_(const t4a_array *x, void *data, uint8_t code, uint8_t bits) {
  DLTensor t;
  t.data = data;
  t.device.device_type = 1;
  t.device.device_id = 0;
  t.ndim = x->rank;
  t.dtype.code = code;
  t.dtype.bits = bits;
  t.dtype.lanes = 1;
  t.shape = (int64_t *)(uintptr_t)x->shape;
  t.strides = NULL;
  t.byte_offset = 0;
  return t;
}

/* mode 0: result; 1: cotangents of all operands, of that of the result; 2: result and its tangent, of tangents of all
   operands. `more` are the additional operands' elements, `out` the results'. */
static inline t4a_status t4a_contract_(int mode, const char *semiring, const t4a_array *operands, size_t count,
                                       const t4a_array *result, void *const *more, void *const *out,
                                       uint8_t code, uint8_t bits, t4a_error **error) {
  t4a_operand described[T4A_MAX_OPERANDS];
  DLTensor in[2 * T4A_MAX_OPERANDS + 1], to[2 * T4A_MAX_OPERANDS];
  const DLTensor *in_at[2 * T4A_MAX_OPERANDS + 1];
  DLTensor *to_at[2 * T4A_MAX_OPERANDS];
  uint8_t all[T4A_MAX_OPERANDS], one = 1;
  t4a_einsum_options options;
  t4a_op *op = NULL, *derived = NULL;
  size_t i, n = 0, m = 0;
  t4a_status status;
  if (count > T4A_MAX_OPERANDS) return t4a_op_einsum(NULL, count, NULL, 0, NULL, &op, error);
  for (i = 0; i < count; i++) {
    described[i].size = sizeof described[i];
    described[i].labels = operands[i].labels;
    described[i].shape = operands[i].shape;
    described[i].rank = operands[i].rank;
    all[i] = 1;
    in[n++] = t4a_array_tensor_(&operands[i], operands[i].data, code, bits);
  }
  options.size = sizeof options;
  options.semiring = semiring;
  options.memory = 0;
  options.optimize = NULL;
  options.dtype.code = code;
  options.dtype.bits = bits;
  options.dtype.lanes = 1;
  status = t4a_op_einsum(described, count, result->labels, result->rank, &options, &op, error);
  if (status != T4A_OK) return status;
  if (mode == 0) {
    to[m++] = t4a_array_tensor_(result, result->data, code, bits);
  } else if (mode == 1) {
    status = t4a_op_vjp(op, &one, 1, all, count, &derived, error);
    in[n++] = t4a_array_tensor_(result, more[0], code, bits);
    for (i = 0; i < count; i++) to[m++] = t4a_array_tensor_(&operands[i], out[i], code, bits);
  } else {
    status = t4a_op_jvp(op, all, count, &derived, error);
    for (i = 0; i < count; i++) in[n++] = t4a_array_tensor_(&operands[i], more[i], code, bits);
    to[m++] = t4a_array_tensor_(result, result->data, code, bits);
    to[m++] = t4a_array_tensor_(result, out[0], code, bits);
  }
  for (i = 0; i < n; i++) in_at[i] = &in[i];
  for (i = 0; i < m; i++) to_at[i] = &to[i];
  if (status == T4A_OK) status = t4a_run_into(derived ? derived : op, in_at, n, to_at, m, error);
  t4a_op_free(derived);
  t4a_op_free(op);
  return status;
}

/* result->data = the contraction. `semiring` may be NULL. */
static inline t4a_status t4a_contract_f64(const char *semiring, const t4a_array *operands, size_t count,
                                          const t4a_array *result, t4a_error **error) {
  return t4a_contract_(0, semiring, operands, count, result, NULL, NULL, 2, 64, error);
}
static inline t4a_status t4a_contract_c64(const t4a_array *operands, size_t count, const t4a_array *result,
                                          t4a_error **error) {
  return t4a_contract_(0, NULL, operands, count, result, NULL, NULL, 5, 128, error);
}

/* cotangents[i] = that of operand i, of `cotangent` of the result. */
static inline t4a_status t4a_contract_f64_vjp(const char *semiring, const t4a_array *operands, size_t count,
                                              const t4a_array *result, const double *cotangent,
                                              double *const *cotangents, t4a_error **error) {
  void *given[1], *out[T4A_MAX_OPERANDS];
  size_t i;
  given[0] = (void *)(uintptr_t)cotangent;
  for (i = 0; i < count && i < T4A_MAX_OPERANDS; i++) out[i] = cotangents[i];
  return t4a_contract_(1, semiring, operands, count, result, given, out, 2, 64, error);
}
static inline t4a_status t4a_contract_c64_vjp(const t4a_array *operands, size_t count, const t4a_array *result,
                                              const double *cotangent, double *const *cotangents,
                                              t4a_error **error) {
  void *given[1], *out[T4A_MAX_OPERANDS];
  size_t i;
  given[0] = (void *)(uintptr_t)cotangent;
  for (i = 0; i < count && i < T4A_MAX_OPERANDS; i++) out[i] = cotangents[i];
  return t4a_contract_(1, NULL, operands, count, result, given, out, 5, 128, error);
}

/* result->data = the contraction, tangent = its tangent, of tangents of all operands. */
static inline t4a_status t4a_contract_f64_jvp(const char *semiring, const t4a_array *operands, size_t count,
                                              const t4a_array *result, const double *const *tangents,
                                              double *tangent, t4a_error **error) {
  void *given[T4A_MAX_OPERANDS], *out[1];
  size_t i;
  for (i = 0; i < count && i < T4A_MAX_OPERANDS; i++) given[i] = (void *)(uintptr_t)tangents[i];
  out[0] = tangent;
  return t4a_contract_(2, semiring, operands, count, result, given, out, 2, 64, error);
}
static inline t4a_status t4a_contract_c64_jvp(const t4a_array *operands, size_t count, const t4a_array *result,
                                              const double *const *tangents, double *tangent,
                                              t4a_error **error) {
  void *given[T4A_MAX_OPERANDS], *out[1];
  size_t i;
  for (i = 0; i < count && i < T4A_MAX_OPERANDS; i++) given[i] = (void *)(uintptr_t)tangents[i];
  out[0] = tangent;
  return t4a_contract_(2, NULL, operands, count, result, given, out, 5, 128, error);
}

#ifdef __cplusplus
}
#endif
#endif
