/* Tensors and their owners, as C11 and C++17, under the address sanitizer. */
#include <math.h>

#include "check.h"

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
  OK(t4a_set_threads(1, &error));
  CHECK(t4a_threads() == 1);
  OK(t4a_set_threads(2, &error));
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
    FAILS(T4A_DTYPE, "float64, its place float32", t4a_run_into(op, in, 2, out, 1, &error));
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

int main(void) {
  versions();
  layouts();
  views_are_copied();
  ownership();
  dtypes();
  puts("all is well");
  return 0;
}
