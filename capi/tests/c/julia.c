/* Calls as T4A.jl makes them: column-major arrays by strides, stacks of matrices with the batch behind, places that the
   host allocates, labels from 1, texts without a zero behind them, release from a finalizer's thread. */
#include <math.h>
#include <pthread.h>

#include "check.h"

/* A column-major array, and its view with the axes behind the first two in front. */
typedef struct {
  int64_t sizes[4], steps[4];
  DLTensor tensor;
} described;

static void describe(described *to, double *data, int32_t rank, const int64_t *sizes, int matrices) {
  int64_t own[4], step = 1;
  int32_t i, shift = matrices && rank > 2 ? 2 : 0;
  for (i = 0; i < rank; i++) {
    own[i] = step;
    step *= sizes[i];
  }
  for (i = 0; i < rank; i++) {
    int32_t from = (i + shift) % rank;
    to->sizes[i] = sizes[from];
    to->steps[i] = own[from];
  }
  to->tensor = tensor(data, F64, rank, to->sizes, to->steps);
}

static t4a_meta meta_of(const described *x) {
  t4a_meta meta;
  int32_t i;
  memset(&meta, 0, sizeof meta);
  meta.size = sizeof meta;
  meta.rank = x->tensor.ndim;
  meta.dtype = x->tensor.dtype;
  for (i = 0; i < meta.rank; i++) meta.shape[i] = x->sizes[i];
  return meta;
}

static t4a_op *matrix_product(void) {
  const char semiring[] = "standard";
  int64_t ij[] = {1, 2}, jk[] = {2, 3}, ik[] = {1, 3}, left[] = {2, 3}, right[] = {3, 2};
  t4a_operand operands[2];
  t4a_einsum_options options;
  t4a_op *op = NULL;
  operands[0].size = operands[1].size = sizeof operands[0];
  operands[0].labels = ij;
  operands[0].shape = left;
  operands[1].labels = jk;
  operands[1].shape = right;
  operands[0].rank = operands[1].rank = 2;
  options.size = sizeof options;
  options.semiring = semiring;
  options.memory = 0;
  options.optimize = NULL;
  options.dtype = F64;
  OK(t4a_op_einsum(operands, 2, ik, 2, &options, &op, &error));
  return op;
}

static void contraction(void) {
  /* (1 2 3; 4 5 6) (1 0; 0 1; 1 1) = (4 5; 10 11), by columns. */
  double a[] = {1, 4, 2, 5, 3, 6}, b[] = {1, 0, 1, 0, 1, 1}, c[4], g[] = {1, 0, 0, 0}, to_a[6];
  const int64_t left[] = {2, 3}, right[] = {3, 2}, square[] = {2, 2};
  const double want[] = {4, 10, 5, 11}, want_a[] = {1, 0, 0, 0, 1, 0};
  const uint8_t given[] = {1}, wanted[] = {1, 0};
  described x, y, z, cotangent, back;
  const DLTensor *in[3];
  DLTensor *out[1];
  t4a_op *op = matrix_product(), *vjp = NULL;
  describe(&x, a, 2, left, 0);
  describe(&y, b, 2, right, 0);
  describe(&z, c, 2, square, 0);
  in[0] = &x.tensor;
  in[1] = &y.tensor;
  out[0] = &z.tensor;
  OK(t4a_run_into(op, in, 2, out, 1, &error));
  CHECK(memcmp(c, want, sizeof want) == 0);
  describe(&cotangent, g, 2, square, 0);
  describe(&back, to_a, 2, left, 0);
  in[2] = &cotangent.tensor;
  out[0] = &back.tensor;
  OK(t4a_op_vjp(op, given, 1, wanted, 2, &vjp, &error));
  OK(t4a_run_into(vjp, in, 3, out, 1, &error));
  /* The first row is that of b's first column. */
  CHECK(memcmp(to_a, want_a, sizeof want_a) == 0);
  t4a_op_free(vjp);
  t4a_op_free(op);
}

/* q, r of a stack [rows, columns, batch], in places of the same order. */
static void stack(void) {
  const char text[] = {'{', '"', 't', '4', 'a', '"', ':', '1', ',', '"', 'o', 'p', '"', ':', '{', '"', 'l', 'i',
                       'n', 'a', 'l', 'g', '"', ':', '{', '"', 'o', 'p', '"', ':', '{', '"', 'q', 'r', '"', ':',
                       '{', '"', 'c', 'o', 'l', 'u', 'm', 'n', 's', '"', ':', '"', 't', 'h', 'i', 'n', '"', '}',
                       '}', ',', '"', 'c', 'o', 'm', 'p', 'l', 'e', 'x', '"', ':', 'f', 'a', 'l', 's', 'e', '}',
                       '}', '}'};
  double a[12], q[12], r[8];
  const int64_t tall[] = {3, 2, 2}, small[] = {2, 2, 2};
  described x, to_q, to_r;
  const DLTensor *in[1];
  DLTensor *out[2];
  t4a_meta operand, found[2];
  size_t count = 0;
  t4a_op *op = NULL;
  int i, j, k, b;
  for (i = 0; i < 12; i++) a[i] = sin(1.0 + i * i);
  describe(&x, a, 3, tall, 1);
  CHECK(x.sizes[0] == 2 && x.sizes[1] == 3 && x.steps[0] == 6 && x.steps[1] == 1 && x.steps[2] == 3);
  OK(t4a_op_parse(text, sizeof text, &op, &error));
  operand = meta_of(&x);
  OK(t4a_op_results(op, &operand, 1, NULL, 0, &count, &error));
  CHECK(count == 2);
  OK(t4a_op_results(op, &operand, 1, found, 2, &count, &error));
  CHECK(found[0].shape[0] == 2 && found[0].shape[1] == 3 && found[0].shape[2] == 2 && found[1].shape[1] == 2);
  describe(&to_q, q, 3, tall, 1);
  describe(&to_r, r, 3, small, 1);
  in[0] = &x.tensor;
  out[0] = &to_q.tensor;
  out[1] = &to_r.tensor;
  OK(t4a_run_into(op, in, 1, out, 2, &error));
  for (b = 0; b < 2; b++)
    for (i = 0; i < 3; i++)
      for (j = 0; j < 2; j++) {
        double sum = 0;
        for (k = 0; k < 2; k++) sum += q[i + 3 * k + 6 * b] * r[k + 2 * j + 4 * b];
        CHECK(fabs(sum - a[i + 3 * j + 6 * b]) < 1e-12);
      }
  CHECK(r[0] >= 0 && r[1] == 0 && r[3] >= 0);
  t4a_op_free(op);
}

static void *finalize(void *op) {
  t4a_op_free((t4a_op *)op);
  return NULL;
}

/* An error is read on another thread than the call's: a task may move between the two. */
static void *read_error(void *error) {
  CHECK(t4a_error_status((t4a_error *)error) == T4A_ARGUMENT && *t4a_error_text((t4a_error *)error));
  t4a_error_free((t4a_error *)error);
  return NULL;
}

static void threads(void) {
  pthread_t all[8];
  t4a_error *error = NULL;
  t4a_op *op = NULL;
  int i;
  for (i = 0; i < 8; i++) CHECK(pthread_create(&all[i], NULL, finalize, matrix_product()) == 0);
  contraction();
  for (i = 0; i < 8; i++) CHECK(pthread_join(all[i], NULL) == 0);
  CHECK(t4a_op_parse("{}", 2, &op, &error) == T4A_ARGUMENT);
  CHECK(pthread_create(&all[0], NULL, read_error, error) == 0);
  CHECK(pthread_join(all[0], NULL) == 0);
}

int main(void) {
  contraction();
  stack();
  threads();
  puts("all is well");
  return 0;
}
