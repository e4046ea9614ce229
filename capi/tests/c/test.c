/* The interface as callers use it: C11 and C++17, under the address sanitizer. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "t4a_contract.h"

static const DLDataType F64 = {2, 64, 1}, F32 = {2, 32, 1}, C128 = {5, 128, 1};

static DLTensor tensor(void *data, DLDataType dtype, int32_t rank, int64_t *shape, int64_t *strides) {
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

static t4a_op *product(const char *semiring, DLDataType dtype) {
  int64_t ij[] = {1, -2}, jk[] = {-2, 3}, ik[] = {1, 3}, left[] = {2, 3}, right[] = {3, 2};
  t4a_operand operands[] = {{sizeof(t4a_operand), ij, left, 2}, {sizeof(t4a_operand), jk, right, 2}};
  t4a_einsum_options options = {sizeof(t4a_einsum_options), semiring, 0, {0, 0, 0}};
  t4a_op *op = NULL;
  options.dtype = dtype;
  OK(t4a_op_einsum(operands, 2, ik, 2, &options, &op, &error));
  return op;
}

static t4a_op *parse(const char *text) {
  t4a_op *op = NULL;
  OK(t4a_op_parse(text, strlen(text), &op, &error));
  return op;
}

static int deleted;
static void count_and_free(DLManagedTensorVersioned *self) {
  deleted++;
  free(self->dl_tensor.data);
  free(self);
}

/* A vector of two numbers on the heap. */
static int64_t two[] = {2};
static DLManagedTensorVersioned *managed(void) {
  DLManagedTensorVersioned *x = (DLManagedTensorVersioned *)calloc(1, sizeof *x);
  double *data = (double *)malloc(2 * sizeof *data);
  data[0] = 5;
  data[1] = 7;
  x->version.major = 1;
  x->version.minor = 1;
  x->deleter = count_and_free;
  x->dl_tensor = tensor(data, F64, 1, two, NULL);
  return x;
}

static void versions(void) {
  CHECK(t4a_abi() == (T4A_ABI_MAJOR << 16 | T4A_ABI_MINOR));
  CHECK(strlen(t4a_version()) >= 5);
  FAILS(T4A_ARGUMENT, "0 threads", t4a_set_threads(0, &error));
  OK(t4a_set_threads(2, &error));
  CHECK(t4a_threads() == 2);
  FAILS(T4A_UNSUPPORTED, "", t4a_set_threads(1, &error));
  CHECK(t4a_error_status(NULL) == T4A_OK && t4a_error_batch(NULL) == -1 && !*t4a_error_text(NULL));
  t4a_error_free(NULL);
}

/* Layouts in: row-major, column-major, negative, repeated, unaligned. Out: given, and into strided memory. */
static void layouts(void) {
  double a[] = {1, 2, 3, 4, 5, 6}, by_columns[] = {1, 4, 2, 5, 3, 6}, backwards[] = {6, 5, 4, 3, 2, 1};
  double b[] = {1, 0, 0, 1, 1, 1}, one = 1;
  int64_t left[] = {2, 3}, right[] = {3, 2}, columns[] = {1, 2}, negative[] = {-3, -1}, zero[] = {0, 0};
  double want[] = {4, 5, 10, 11};
  unsigned char bytes[sizeof a + 1];
  DLTensor forms[5], y = tensor(b, F64, 2, right, NULL);
  t4a_op *op = product(NULL, F64);
  size_t i, k;
  forms[0] = tensor(a, F64, 2, left, NULL);
  forms[1] = tensor(by_columns, F64, 2, left, columns);
  forms[2] = tensor(backwards, F64, 2, left, negative);
  forms[2].byte_offset = 5 * sizeof(double);
  memcpy(bytes + 1, a, sizeof a);
  forms[3] = tensor(bytes + 1, F64, 2, left, NULL);
  forms[4] = tensor(&one, F64, 2, left, zero);
  for (i = 0; i < 5; i++) {
    const DLTensor *in[2];
    double into[8] = {0};
    int64_t shape[] = {2, 2}, strides[] = {1, 3};
    DLTensor place = tensor(into, F64, 2, shape, strides), *out[1];
    t4a_tensor *result = NULL;
    const DLTensor *view;
    size_t n = 0;
    in[0] = &forms[i];
    in[1] = &y;
    out[0] = &place;
    OK(t4a_run(op, in, 2, &result, 1, &n, &error));
    CHECK(n == 1);
    view = t4a_tensor_view(result);
    CHECK(view->ndim == 2 && view->shape[0] == 2 && view->shape[1] == 2);
    OK(t4a_run_into(op, in, 2, out, 1, &error));
    for (k = 0; k < 4; k++) {
      double wanted = i == 4 ? 2 : want[k];
      CHECK(((double *)view->data)[k] == wanted);
      CHECK(into[k / 2 + 3 * (k % 2)] == wanted);
    }
    CHECK(into[2] == 0 && into[5] == 0);
    t4a_tensor_release(result);
  }
  {
    /* Places that do not fit. */
    const DLTensor *in[2];
    double into[4];
    int64_t shape[] = {2, 2}, wrong[] = {2, 3}, same[] = {1, 1}, nothing[] = {-1, 2};
    DLTensor place = tensor(into, F64, 2, shape, NULL), *out[2];
    t4a_tensor *results[1];
    in[0] = &forms[0];
    in[1] = &y;
    out[0] = &place;
    out[1] = &place;
    FAILS(T4A_ARGUMENT, "places", t4a_run_into(op, in, 2, out, 2, &error));
    place.shape = wrong;
    FAILS(T4A_SHAPE, "[2, 2]", t4a_run_into(op, in, 2, out, 1, &error));
    place.shape = shape;
    place.strides = same;
    FAILS(T4A_SHAPE, "overlap", t4a_run_into(op, in, 2, out, 1, &error));
    place.strides = NULL;
    place.dtype = F32;
    FAILS(T4A_DTYPE, "f64, its place f32", t4a_run_into(op, in, 2, out, 1, &error));
    place.dtype = F64;
    place.data = a;
    FAILS(T4A_ARGUMENT, "overlaps", t4a_run_into(op, in, 2, out, 1, &error));
    FAILS(T4A_ARGUMENT, "room for 0", t4a_run(op, in, 2, results, 0, NULL, &error));
    in[0] = NULL;
    FAILS(T4A_ARGUMENT, "operand 0 is a null pointer", t4a_run(op, in, 2, results, 1, NULL, &error));
    in[0] = &y;
    FAILS(T4A_SHAPE, "", t4a_run(op, in, 2, results, 1, NULL, &error));
    CHECK(t4a_run(op, in, 2, results, 1, NULL, NULL) == T4A_SHAPE);
    FAILS(T4A_ARGUMENT, "", t4a_run(op, in, 1, results, 1, NULL, &error));
    FAILS(T4A_ARGUMENT, "the operation is a null pointer", t4a_run(NULL, in, 2, results, 1, NULL, &error));
    y.shape = nothing;
    FAILS(T4A_SHAPE, "impossible shape", t4a_run(op, in, 2, results, 1, NULL, &error));
    y.shape = NULL;
    FAILS(T4A_ARGUMENT, "shape of operand 0", t4a_run(op, in, 2, results, 1, NULL, &error));
    y.shape = right;
    y.ndim = 65;
    FAILS(T4A_SHAPE, "65 axes", t4a_run(op, in, 2, results, 1, NULL, &error));
    y.ndim = 2;
    y.data = NULL;
    FAILS(T4A_ARGUMENT, "memory of operand 0", t4a_run(op, in, 2, results, 1, NULL, &error));
  }
  t4a_op_free(op);
}

/* A view of an operand does not outlive the call. */
static void views_are_copied(void) {
  int64_t ij[] = {1, 2}, ji[] = {2, 1}, size[] = {40, 30};
  t4a_operand operand = {sizeof(t4a_operand), ij, size, 2};
  double *data = (double *)malloc(1200 * sizeof *data);
  DLTensor x = tensor(data, F64, 2, size, NULL);
  const DLTensor *in = &x;
  t4a_tensor *out = NULL;
  t4a_op *op = NULL;
  size_t i;
  for (i = 0; i < 1200; i++) data[i] = (double)i;
  OK(t4a_op_einsum(&operand, 1, ji, 2, NULL, &op, &error));
  OK(t4a_run(op, &in, 1, &out, 1, NULL, &error));
  free(data);
  CHECK(((double *)t4a_tensor_view(out)->data)[t4a_tensor_view(out)->strides[0]] == 1);
  t4a_tensor_release(out);
  t4a_op_free(op);
}

static void ownership(void) {
  t4a_tensor *x = NULL;
  DLManagedTensorVersioned *given = NULL, *m;
  double expect[] = {5, 7};
  int64_t negative[] = {-1};
  deleted = 0;
  OK(t4a_tensor_take(managed(), &x, &error));
  CHECK(deleted == 0 && t4a_tensor_retain(x) == x);
  t4a_tensor_release(x);
  CHECK(deleted == 0 && memcmp(t4a_tensor_view(x)->data, expect, sizeof expect) == 0);
  t4a_tensor_release(x);
  CHECK(deleted == 1);
  /* Refusals, each with one call of the deleter. */
  m = managed();
  m->version.major = 2;
  FAILS(T4A_UNSUPPORTED, "DLPack 2.1", t4a_tensor_take(m, &x, &error));
  m = managed();
  m->dl_tensor.device.device_type = 2;
  FAILS(T4A_UNSUPPORTED, "device", t4a_tensor_take(m, &x, &error));
  m = managed();
  m->dl_tensor.dtype.bits = 4;
  FAILS(T4A_DTYPE, "4 bits", t4a_tensor_take(m, &x, &error));
  m = managed();
  m->dl_tensor.dtype.lanes = 2;
  FAILS(T4A_DTYPE, "2 lanes", t4a_tensor_take(m, &x, &error));
  m = managed();
  m->dl_tensor.shape = negative;
  FAILS(T4A_SHAPE, "-1", t4a_tensor_take(m, &x, &error));
  m = managed();
  m->dl_tensor.ndim = -1;
  FAILS(T4A_SHAPE, "-1 axes", t4a_tensor_take(m, &x, &error));
  FAILS(T4A_ARGUMENT, "place", t4a_tensor_take(managed(), NULL, &error));
  CHECK(deleted == 8);
  FAILS(T4A_ARGUMENT, "null", t4a_tensor_take(NULL, &x, &error));
  m = managed();
  m->deleter = NULL;
  OK(t4a_tensor_take(m, &x, &error));
  t4a_tensor_release(x);
  CHECK(deleted == 8);
  count_and_free(m);
  /* A tensor given away is released by the consumer, and a foreign deleter comes with it. */
  deleted = 0;
  OK(t4a_tensor_take(managed(), &x, &error));
  OK(t4a_tensor_give(x, T4A_STRIDED, &given, &error));
  CHECK(deleted == 0 && given->version.major == 1 && (given->flags & 1) == 1);
  given->deleter(given);
  CHECK(deleted == 1);
  OK(t4a_tensor_take(managed(), &x, &error));
  OK(t4a_tensor_give(x, T4A_WRITABLE, &given, &error));
  CHECK(deleted == 2 && (given->flags & 1) == 0);
  ((double *)given->dl_tensor.data)[0] = 9;
  given->deleter(given);
  OK(t4a_tensor_take(managed(), &x, &error));
  FAILS(T4A_ARGUMENT, "flags", t4a_tensor_give(x, 64, &given, &error));
  OK(t4a_tensor_take(managed(), &x, &error));
  FAILS(T4A_ARGUMENT, "place", t4a_tensor_give(x, 0, NULL, &error));
  CHECK(deleted == 4);
  FAILS(T4A_ARGUMENT, "null", t4a_tensor_give(NULL, 0, &given, &error));
  {
    double data[] = {1, 2, 3, 4, 5, 6};
    int64_t shape[] = {2, 3};
    DLTensor t = tensor(data, F64, 2, shape, NULL);
    OK(t4a_tensor_copy(&t, &x, &error));
    data[0] = 100;
    OK(t4a_tensor_give(x, T4A_COLUMN_MAJOR, &given, &error));
    CHECK(given->dl_tensor.strides[0] == 1 && given->dl_tensor.strides[1] == 2);
    CHECK(((double *)given->dl_tensor.data)[0] == 1 && ((double *)given->dl_tensor.data)[1] == 4);
    /* A handle of a handle's memory. */
    OK(t4a_tensor_take(given, &x, &error));
    OK(t4a_tensor_give(x, 0, &given, &error));
    CHECK(given->dl_tensor.strides[0] == 3 && ((double *)given->dl_tensor.data)[1] == 2);
    given->deleter(given);
  }
  CHECK(t4a_tensor_view(NULL) == NULL && t4a_tensor_retain(NULL) == NULL);
  t4a_tensor_release(NULL);
}

/* Every float dtype: (1 2; 3 4) · (1 1; 1 1) has exact results in each. */
static void dtypes(void) {
  struct { DLDataType dtype; unsigned long long one; size_t bytes; } rows[] = {
      {{2, 64, 1}, 0x3ff0000000000000ull, 8}, {{2, 32, 1}, 0x3f800000ull, 4}, {{2, 16, 1}, 0x3c00, 2},
      {{4, 16, 1}, 0x3f80, 2},
  };
  unsigned long long three[] = {0x4008000000000000ull, 0x40400000ull, 0x4200, 0x4040};
  size_t i, k;
  for (i = 0; i < 4; i++) {
    unsigned char data[48], into[32];
    int64_t left[] = {2, 3}, right[] = {3, 2}, shape[] = {2, 2};
    DLTensor x = tensor(data, rows[i].dtype, 2, left, NULL), y = tensor(data, rows[i].dtype, 2, right, NULL);
    DLTensor place = tensor(into, rows[i].dtype, 2, shape, NULL), *out[1];
    const DLTensor *in[2];
    t4a_op *op = product(NULL, rows[i].dtype);
    in[0] = &x;
    in[1] = &y;
    out[0] = &place;
    for (k = 0; k < 6; k++) memcpy(data + k * rows[i].bytes, &rows[i].one, rows[i].bytes);
    OK(t4a_run_into(op, in, 2, out, 1, &error));
    for (k = 0; k < 4; k++) CHECK(memcmp(into + k * rows[i].bytes, &three[i], rows[i].bytes) == 0);
    t4a_op_free(op);
  }
  {
    /* Indices of several integer types, and an operand of the wrong kind. */
    float logits[] = {0, 0, 0, 0};
    int64_t shape[] = {2, 2}, rows_of[] = {2};
    int64_t wide[] = {0, 1};
    uint8_t narrow[] = {0, 1};
    DLDataType i64 = {0, 64, 1}, u8 = {1, 8, 1};
    DLTensor x = tensor(logits, F32, 2, shape, NULL), index[2];
    t4a_op *op = parse("{\"t4a\":1,\"op\":{\"cross_entropy\":null}}");
    const DLTensor *in[2];
    t4a_tensor *loss = NULL;
    index[0] = tensor(wide, i64, 1, rows_of, NULL);
    index[1] = tensor(narrow, u8, 1, rows_of, NULL);
    in[0] = &x;
    for (i = 0; i < 2; i++) {
      in[1] = &index[i];
      OK(t4a_run(op, in, 2, &loss, 1, NULL, &error));
      CHECK(fabsf(((float *)t4a_tensor_view(loss)->data)[1] - logf(2)) < 1e-6f);
      t4a_tensor_release(loss);
    }
    in[1] = &x;
    FAILS(T4A_DTYPE, "operand 1", t4a_run(op, in, 2, &loss, 1, NULL, &error));
    t4a_op_free(op);
  }
}

/* c = a b of complex matrices, its cotangents dL/dRe + i dL/dIm, in both complex dtypes. */
static void complex_numbers(void) {
  double a[] = {1, 2}, b[] = {3, -1}, c[2], g[] = {1, 1}, ga[2], gb[2], ta[] = {0, 1}, tb[] = {0, 0}, tc[2];
  int64_t i[] = {1}, one[] = {1};
  t4a_array operands[] = {{a, i, one, 1}, {b, i, one, 1}}, result = {c, i, one, 1};
  double *cotangents[2];
  const double *tangents[2];
  cotangents[0] = ga;
  cotangents[1] = gb;
  tangents[0] = ta;
  tangents[1] = tb;
  OK(t4a_contract_c64(operands, 2, &result, &error));
  CHECK(c[0] == 5 && c[1] == 5);
  OK(t4a_contract_c64_vjp(operands, 2, &result, g, cotangents, &error));
  /* g conj(b) = (1 + i)(3 + i), g conj(a) = (1 + i)(1 - 2i). */
  CHECK(ga[0] == 2 && ga[1] == 4 && gb[0] == 3 && gb[1] == -1);
  OK(t4a_contract_c64_jvp(operands, 2, &result, tangents, tc, &error));
  CHECK(tc[0] == 1 && tc[1] == 3);
  {
    /* Shapes of results that are several complex tensors. */
    uint8_t given[] = {1}, both[] = {1, 1};
    t4a_op *op = product(NULL, C128), *vjp = NULL;
    t4a_meta metas[3], found[2];
    int64_t sizes[3][2] = {{2, 3}, {3, 2}, {2, 2}};
    size_t n = 0, k;
    OK(t4a_op_vjp(op, given, 1, both, 2, &vjp, &error));
    memset(metas, 0, sizeof metas);
    for (k = 0; k < 3; k++) {
      metas[k].size = sizeof metas[k];
      metas[k].rank = 2;
      metas[k].dtype = C128;
      memcpy(metas[k].shape, sizes[k], sizeof sizes[k]);
    }
    OK(t4a_op_results(vjp, metas, 3, found, 2, &n, &error));
    CHECK(n == 2);
    for (k = 0; k < 2; k++) {
      CHECK(found[k].rank == 2 && memcmp(found[k].shape, sizes[k], sizeof sizes[k]) == 0 && found[k].dtype.bits == 128);
    }
    t4a_op_free(vjp);
    t4a_op_free(op);
  }
  {
    /* The inverse of i is -i; real operands of a complex operation are refused. */
    double z[] = {0, 1};
    float narrow[] = {0, 1};
    int64_t shape[] = {1, 1};
    DLDataType c64 = {5, 64, 1};
    DLTensor x = tensor(z, C128, 2, shape, NULL);
    const DLTensor *in = &x;
    t4a_tensor *out = NULL;
    t4a_op *op = parse("{\"t4a\":1,\"op\":{\"linalg\":{\"op\":{\"inv\":null},\"complex\":true}}}");
    t4a_meta meta, found;
    size_t n = 0;
    memset(&meta, 0, sizeof meta);
    meta.size = sizeof meta;
    meta.rank = 2;
    meta.dtype = C128;
    meta.shape[0] = meta.shape[1] = 1;
    OK(t4a_op_results(op, &meta, 1, &found, 1, &n, &error));
    CHECK(n == 1 && found.dtype.code == 5 && found.dtype.bits == 128 && found.rank == 2);
    OK(t4a_run(op, &in, 1, &out, 1, NULL, &error));
    CHECK(((double *)t4a_tensor_view(out)->data)[0] == 0 && ((double *)t4a_tensor_view(out)->data)[1] == -1);
    t4a_tensor_release(out);
    x.dtype = c64;
    x.data = narrow;
    OK(t4a_run(op, &in, 1, &out, 1, NULL, &error));
    CHECK(((float *)t4a_tensor_view(out)->data)[1] == -1 && t4a_tensor_view(out)->dtype.bits == 64);
    t4a_tensor_release(out);
    x.dtype = F64;
    x.data = z;
    CHECK(t4a_run(op, &in, 1, &out, 1, NULL, NULL) != T4A_OK);
    t4a_op_free(op);
  }
}

/* Derivatives as operations, to second order; kept values; the helpers. */
static void derivatives(void) {
  double a[] = {1, 2, 3, 4, 5, 6}, b[] = {0, 1, 2, 0, 1, 3}, c[4], g[] = {1, 0, 0, 0}, ga[6], gb[6];
  int64_t ij[] = {1, 2}, jk[] = {2, 3}, ik[] = {1, 3}, left[] = {2, 3}, right[] = {3, 2}, out[] = {2, 2};
  t4a_array operands[] = {{a, ij, left, 2}, {b, jk, right, 2}}, result = {c, ik, out, 2};
  double *cotangents[2], ta[] = {1, 0, 0, 0, 0, 0}, tb[6] = {0}, tc[4];
  const double *tangents[2];
  size_t i;
  cotangents[0] = ga;
  cotangents[1] = gb;
  tangents[0] = ta;
  tangents[1] = tb;
  OK(t4a_contract_f64("max_plus", operands, 2, &result, &error));
  CHECK(c[0] == 4 && c[1] == 6 && c[2] == 7 && c[3] == 9);
  /* 2 + 2 and 3 + 1 are both 4: the first has the derivative. */
  OK(t4a_contract_f64_vjp("max_plus", operands, 2, &result, g, cotangents, &error));
  for (i = 0; i < 6; i++) CHECK(ga[i] == (i == 1) && gb[i] == (i == 2));
  OK(t4a_contract_f64_jvp("max_plus", operands, 2, &result, tangents, tc, &error));
  for (i = 0; i < 4; i++) CHECK(tc[i] == 0);
  FAILS(T4A_ARGUMENT, "max_plus", t4a_contract_f64("maxplus", operands, 2, &result, &error));
  FAILS(T4A_ARGUMENT, "", t4a_contract_f64(NULL, operands, 17, &result, &error));
  {
    /* f = a b: the vjp of the vjp by (a, b), of w for the cotangent of a, is w b for g and g w for b. */
    uint8_t both[] = {1, 1}, three[] = {1, 1, 1}, first[] = {1, 0}, given[] = {1};
    t4a_op *op = product(NULL, F64), *vjp = NULL, *again = NULL, *jvp = NULL, *no = NULL;
    double w[] = {1, 0, 0, 0, 0, 0};
    DLTensor x = tensor(a, F64, 2, left, NULL), y = tensor(b, F64, 2, right, NULL);
    DLTensor z = tensor(g, F64, 2, out, NULL), v = tensor(w, F64, 2, left, NULL);
    const DLTensor *in[4], *of_result[1];
    t4a_tensor *results[3], *handles[2], *saved_results[2];
    t4a_saved *saved = NULL;
    size_t n = 0;
    char text[4096];
    in[0] = &x;
    in[1] = &y;
    in[2] = &z;
    in[3] = &v;
    of_result[0] = &z;
    OK(t4a_op_vjp(op, given, 1, both, 2, &vjp, &error));
    OK(t4a_op_vjp(vjp, first, 2, three, 3, &again, &error));
    OK(t4a_run(again, in, 4, results, 3, &n, &error));
    CHECK(n == 3);
    for (i = 0; i < 6; i++) CHECK(((double *)t4a_tensor_view(results[0])->data)[i] == 0);
    for (i = 0; i < 6; i++) CHECK(((double *)t4a_tensor_view(results[1])->data)[i] == (i == 0));
    /* w b has the first row of b. */
    CHECK(((double *)t4a_tensor_view(results[2])->data)[0] == 0);
    CHECK(((double *)t4a_tensor_view(results[2])->data)[1] == 1);
    for (i = 0; i < 3; i++) t4a_tensor_release(results[i]);
    OK(t4a_op_jvp(vjp, three, 3, &jvp, &error));
    FAILS(T4A_ARGUMENT, "no operand moves", t4a_op_jvp(op, (const uint8_t *)"\0\0", 2, &no, &error));
    FAILS(T4A_ARGUMENT, "flags", t4a_op_jvp(vjp, both, 2, &no, &error));
    /* Text, and back. */
    CHECK(t4a_op_text(again, text, sizeof text) == strlen(text) && strlen(text) < sizeof text);
    t4a_op_free(again);
    again = parse(text);
    n = t4a_op_text(again, NULL, 0);
    CHECK(n == strlen(text));
    CHECK(t4a_op_text(again, text, 8) == n && strlen(text) == 7);
    /* Kept values have the same cotangents as the operation. */
    OK(t4a_tensor_copy(&x, &handles[0], &error));
    OK(t4a_tensor_copy(&y, &handles[1], &error));
    OK(t4a_run_saved(op, handles, 2, both, results, 1, &n, &saved, &error));
    CHECK(n == 1);
    t4a_tensor_release(results[0]);
    t4a_tensor_release(handles[0]);
    t4a_tensor_release(handles[1]);
    OK(t4a_run(vjp, in, 3, results, 2, &n, &error));
    OK(t4a_saved_vjp(saved, of_result, 1, saved_results, 2, &n, &error));
    CHECK(n == 2);
    for (i = 0; i < 2; i++) {
      CHECK(memcmp(t4a_tensor_view(results[i])->data, t4a_tensor_view(saved_results[i])->data, sizeof a) == 0);
      t4a_tensor_release(results[i]);
      t4a_tensor_release(saved_results[i]);
    }
    of_result[0] = NULL;
    OK(t4a_saved_vjp(saved, of_result, 1, saved_results, 2, &n, &error));
    for (i = 0; i < 2; i++) {
      CHECK(((double *)t4a_tensor_view(saved_results[i])->data)[1] == 0);
      t4a_tensor_release(saved_results[i]);
    }
    of_result[0] = &x;
    FAILS(T4A_SHAPE, "cotangent 0", t4a_saved_vjp(saved, of_result, 1, saved_results, 2, &n, &error));
    FAILS(T4A_ARGUMENT, "what was saved", t4a_saved_vjp(NULL, of_result, 1, saved_results, 2, &n, &error));
    t4a_saved_free(saved);
    t4a_saved_free(NULL);
    t4a_op_free(again);
    t4a_op_free(jvp);
    t4a_op_free(vjp);
    t4a_op_free(op);
    t4a_op_free(NULL);
  }
}

static void failures_of_matrices(void) {
  /* The second matrix is singular. */
  double a[] = {1, 0, 0, 1, 1, 1, 1, 1};
  int64_t shape[] = {2, 2, 2};
  DLTensor x = tensor(a, F64, 3, shape, NULL);
  const DLTensor *in = &x;
  t4a_tensor *out = NULL;
  t4a_error *error = NULL;
  t4a_op *op = parse("{\"t4a\":1,\"op\":{\"linalg\":{\"op\":{\"inv\":null},\"complex\":false}}}"), *no = NULL, *batch = NULL;
  uint8_t differ[] = {1};
  const char *text = "{\"t4a\":2,\"op\":{\"cross_entropy\":null}}";
  t4a_meta meta;
  size_t n = 0;
  CHECK(t4a_run(op, &in, 1, &out, 1, NULL, &error) == T4A_SINGULAR);
  CHECK(t4a_error_batch(error) == 1 && strstr(t4a_error_text(error), "matrix 1 is singular") != NULL);
  t4a_error_free(error);
  FAILS(T4A_ARGUMENT, "version 2", t4a_op_parse(text, strlen(text), &no, &error));
  FAILS(T4A_ARGUMENT, "utf-8", t4a_op_parse("\xff", 1, &no, &error));
  FAILS(T4A_ARGUMENT, "null", t4a_op_parse(NULL, 1, &no, &error));
  OK(t4a_op_batch(op, 3, differ, 1, &batch, &error));
  t4a_op_free(batch);
  memset(&meta, 0, sizeof meta);
  meta.size = 8;
  FAILS(T4A_ARGUMENT, "8 bytes", t4a_op_results(op, &meta, 1, NULL, 0, &n, &error));
  meta.size = sizeof meta;
  meta.dtype = F64;
  meta.rank = 2;
  meta.shape[0] = 2;
  meta.shape[1] = 3;
  FAILS(T4A_SHAPE, "square", t4a_op_results(op, &meta, 1, NULL, 0, &n, &error));
  meta.shape[1] = 2;
  OK(t4a_op_results(op, &meta, 1, NULL, 0, &n, &error));
  CHECK(n == 1);
  FAILS(T4A_ARGUMENT, "room for 0", t4a_op_results(op, &meta, 1, &meta, 0, &n, &error));
  CHECK(t4a_op_text(NULL, NULL, 0) == 0);
  t4a_op_free(op);
}

static void *work(void *given) {
  t4a_op *op = (t4a_op *)given;
  double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 1, 1};
  int64_t left[] = {2, 3}, right[] = {3, 2};
  DLTensor x = tensor(a, F64, 2, left, NULL), y = tensor(b, F64, 2, right, NULL);
  const DLTensor *in[2];
  t4a_tensor *out = NULL;
  int i;
  in[0] = &x;
  in[1] = &y;
  for (i = 0; i < 200; i++) {
    t4a_tensor_release(out);
    OK(t4a_run(op, in, 2, &out, 1, NULL, &error));
    CHECK(((double *)t4a_tensor_view(out)->data)[3] == 11);
  }
  return out;
}

static void threads(void) {
  t4a_op *op = product(NULL, F64);
  pthread_t all[4];
  int i;
  for (i = 0; i < 4; i++) CHECK(pthread_create(&all[i], NULL, work, op) == 0);
  for (i = 0; i < 4; i++) {
    void *out = NULL;
    CHECK(pthread_join(all[i], &out) == 0);
    /* Released on another thread than the one that made it. */
    t4a_tensor_release((t4a_tensor *)out);
  }
  {
    /* A child of a process that has run operations is told so. */
    int state = 0;
    pid_t child = fork();
    if (child == 0) {
      t4a_error *error = NULL;
      t4a_tensor *out = NULL;
      t4a_status status = t4a_run(op, NULL, 0, &out, 1, NULL, &error);
      _exit(status == T4A_UNSUPPORTED && strstr(t4a_error_text(error), "forked") != NULL ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0);
  }
  t4a_op_free(op);
}

int main(void) {
  versions();
  layouts();
  views_are_copied();
  ownership();
  dtypes();
  complex_numbers();
  derivatives();
  failures_of_matrices();
  threads();
  puts("all is well");
  return 0;
}
