/* Calls as T4A.jl makes them: column-major arrays by strides, stacks of matrices with the batch behind, places that the
   host allocates, labels from 1, texts without a zero behind them, release from a finalizer's thread. */
#include <math.h>
#include <pthread.h>

#include "check.h"

/* A column-major array, and its view with the axes behind those of an example in front: two of a matrix, one of a permutation. */
typedef struct {
  int64_t sizes[4], steps[4];
  DLTensor tensor;
} described;

static void describe_as(described *to, void *data, DLDataType dtype, int32_t rank, const int64_t *sizes, int matrices) {
  int64_t own[4], step = 1;
  int32_t i, axes = dtype.code == 0 ? 1 : 2, shift = matrices && rank > axes ? axes : 0;
  for (i = 0; i < rank; i++) {
    own[i] = step;
    step *= sizes[i];
  }
  for (i = 0; i < rank; i++) {
    int32_t from = (i + shift) % rank;
    to->sizes[i] = sizes[from];
    to->steps[i] = own[from];
  }
  to->tensor = tensor(data, dtype, rank, to->sizes, to->steps);
}

static void describe(described *to, double *data, int32_t rank, const int64_t *sizes, int matrices) {
  describe_as(to, data, F64, rank, sizes, matrices);
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

/* Sum of the products of indices and steps. */
static int64_t place(const int64_t *index, const int64_t *steps, int32_t rank) {
  int64_t at = 0;
  int32_t i;
  for (i = 0; i < rank; i++) at += index[i] * steps[i];
  return at;
}

static void row_major(int64_t *steps, const int64_t *sizes, int32_t rank) {
  int64_t step = 1;
  int32_t i;
  for (i = rank - 1; i >= 0; i--) {
    steps[i] = step;
    step *= sizes[i];
  }
}

/* Copies or compares the elements of an array in both layouts. */
static void both(const described *x, char *columns, char *rows, size_t bytes, int copy) {
  int64_t index[4] = {0, 0, 0, 0}, steps[4];
  int32_t i, rank = x->tensor.ndim;
  row_major(steps, x->sizes, rank);
  do {
    char *from = columns + bytes * place(index, x->steps, rank), *to = rows + bytes * place(index, steps, rank);
    if (copy) memcpy(to, from, bytes);
    CHECK(memcmp(to, from, bytes) == 0);
    for (i = rank - 1; i >= 0 && ++index[i] == x->sizes[i]; i--) index[i] = 0;
  } while (i >= 0);
}

/* Results in column-major places are those of row-major operands and places, bit for bit. */
static void same(const char *text, int count, const int64_t sizes[][4], const int32_t *ranks, int matrices) {
  static double data[7][64], rows[7][64], out_columns[4][128], out_rows[4][128];
  int64_t steps[4];
  described x[7], y[7], to[4], plain[4];
  const DLTensor *in[7];
  DLTensor *out[4];
  t4a_meta operands[7], found[4];
  t4a_op *op = parse(text);
  size_t results = 0, r;
  int i, j;
  for (i = 0; i < count; i++) {
    for (j = 0; j < 64; j++) data[i][j] = sin(1.0 + i + j * j) / 2 + (ranks[i] > 1 && j % (sizes[i][0] * sizes[i][1]) % (sizes[i][0] + 1) == 0 ? 3 : 0);
    describe(&x[i], data[i], ranks[i], sizes[i], matrices);
    both(&x[i], (char *)data[i], (char *)rows[i], sizeof(double), 1);
    y[i] = x[i];
    row_major(steps, y[i].sizes, ranks[i]);
    memcpy(y[i].steps, steps, sizeof steps);
    y[i].tensor = tensor(rows[i], F64, ranks[i], y[i].sizes, y[i].steps);
    operands[i] = meta_of(&x[i]);
  }
  OK(t4a_op_results(op, operands, count, found, 4, &results, &error));
  CHECK(results > 0 && results <= 4);
  for (r = 0; r < results; r++) {
    /* Sizes in the order of Julia. */
    int64_t own[4];
    int32_t rank = found[r].rank, axes = found[r].dtype.code == 0 ? 1 : 2, shift = matrices && rank > axes ? axes : 0;
    for (i = 0; i < rank; i++) own[(i + shift) % rank] = found[r].shape[i];
    describe_as(&to[r], out_columns[r], found[r].dtype, rank, own, matrices);
    for (i = 0; i < rank; i++) CHECK(to[r].sizes[i] == found[r].shape[i]);
    plain[r] = to[r];
    row_major(plain[r].steps, plain[r].sizes, rank);
    plain[r].tensor = tensor(out_rows[r], found[r].dtype, rank, plain[r].sizes, plain[r].steps);
  }
  for (i = 0; i < count; i++) in[i] = &x[i].tensor;
  for (r = 0; r < results; r++) out[r] = &to[r].tensor;
  OK(t4a_run_into(op, in, count, out, results, &error));
  for (i = 0; i < count; i++) in[i] = &y[i].tensor;
  for (r = 0; r < results; r++) out[r] = &plain[r].tensor;
  OK(t4a_run_into(op, in, count, out, results, &error));
  for (r = 0; r < results; r++)
    both(&to[r], (char *)out_columns[r], (char *)out_rows[r], found[r].dtype.bits / 8, 0);
  t4a_op_free(op);
}

/* The functions of matrices of julia/src/functions.jl with their defaults: operation, and number of operands. */
static const struct {
  const char *text;
  int arrays;
} functions[] = {
#define MATRICES(text, arrays) {"{\"t4a\":1,\"op\":{\"linalg\":{\"op\":" text ",\"complex\":false}}}", arrays},
    MATRICES("{\"svd\":{\"vectors\":\"thin\",\"degeneracy\":{\"tolerance\":null,\"broadening\":null,\"check_gauge\":true,\"separable\":false}}}", 1)
    MATRICES("{\"svdvals\":null}", 1)
    MATRICES("{\"svd_function\":{\"function\":\"exp\"}}", 1)
    MATRICES("{\"qr\":{\"columns\":\"thin\"}}", 1)
    MATRICES("{\"qr_pivoted\":{\"columns\":\"thin\"}}", 1)
    MATRICES("{\"lq\":null}", 1)
    MATRICES("{\"lu_factor\":{\"pivoting\":\"partial\"}}", 1)
    MATRICES("{\"polar\":{\"side\":\"right\"}}", 1)
    MATRICES("{\"low_rank\":{\"rank\":1}}", 1)
    MATRICES("{\"eigh\":{\"degeneracy\":{\"tolerance\":null,\"broadening\":null,\"check_gauge\":true,\"separable\":false}}}", 1)
    MATRICES("{\"eigvalsh\":null}", 1)
    MATRICES("{\"eig\":{\"degeneracy\":{\"tolerance\":null,\"broadening\":null,\"check_gauge\":true,\"separable\":false}}}", 1)
    MATRICES("{\"eigvals\":null}", 1)
    MATRICES("{\"hermitian_function\":{\"function\":\"exp\"}}", 1)
    MATRICES("{\"inv\":null}", 1)
    MATRICES("{\"det\":null}", 1)
    MATRICES("{\"slogdet\":null}", 1)
    MATRICES("{\"pinv\":{\"rtol\":null}}", 1)
    MATRICES("{\"expm\":null}", 1)
    MATRICES("{\"sqrtm\":null}", 1)
    MATRICES("{\"logm\":null}", 1)
    MATRICES("{\"solve\":null}", 2)
    MATRICES("{\"solve_triangular\":{\"triangle\":{\"upper\":false,\"unit\":false,\"op\":\"none\"}}}", 2)
    MATRICES("{\"lstsq\":null}", 2)
    MATRICES("{\"lstsq_min_norm\":{\"rtol\":null}}", 2)
    MATRICES("{\"lyapunov_positive\":null}", 2)
    MATRICES("{\"sylvester\":null}", 3)
};

static void all_functions(void) {
  const int64_t squares[3][4] = {{3, 3, 2, 2}, {3, 3, 2, 2}, {3, 3, 2, 2}}, pair[2][4] = {{2, 2, 5, 1}, {2, 3, 5, 1}};
  const int64_t layer[3][4] = {{3, 2, 8, 1}, {2, 8, 1, 1}, {8, 1, 1, 1}};
  const int64_t filter[7][4] = {{2, 2}, {2, 2}, {1, 2}, {1, 1}, {3, 4, 1}, {2}, {2, 2}};
  const int32_t ranks[] = {4, 4, 4}, threes[] = {3, 3}, of_layer[] = {3, 2, 1}, of_filter[] = {2, 2, 2, 2, 3, 1, 2};
  size_t i;
  for (i = 0; i < sizeof functions / sizeof *functions; i++) same(functions[i].text, functions[i].arrays, squares, ranks, 1);
  same("{\"t4a\":1,\"op\":{\"linalg\":{\"op\":{\"cholesky\":null},\"complex\":false}}}", 1, squares, ranks, 1);
  same("{\"t4a\":1,\"op\":{\"matrix_recurrence\":{\"reverse\":false,\"initial\":false}}}", 2, pair, threes, 1);
  same("{\"t4a\":1,\"op\":{\"associative_scan\":{\"monoid\":{\"matrix\":\"standard\"},\"axis\":0,\"reverse\":false,"
       "\"exclusive\":false}}}", 1, pair, threes, 1);
  same("{\"t4a\":1,\"op\":{\"recurrent\":{\"cell\":\"lstm\",\"reverse\":false,\"bias\":true,\"initial\":false}}}", 3, layer, of_layer, 0);
  same("{\"t4a\":1,\"op\":{\"kalman_filter\":null}}", 7, filter, of_filter, 0);
}

/* The argmax of a contraction, whose text is that of the contraction with another name and a field. */
static void argmax(void) {
  double a[] = {1, 3, 5, 0}, value[4];
  int64_t index[4], steps[] = {1, 2}, shape[] = {2, 2}, ij[] = {105, 106}, jk[] = {106, 107}, ik[] = {105, 107};
  t4a_operand operands[] = {{sizeof(t4a_operand), ij, shape, 2}, {sizeof(t4a_operand), jk, shape, 2}};
  t4a_einsum_options options = {sizeof(t4a_einsum_options), "max_plus", 0, {2, 64, 1}, "greedy"};
  DLTensor x = tensor(a, F64, 2, shape, steps), to = tensor(value, F64, 2, shape, steps);
  DLTensor at = tensor(index, t4a_dtype(0, 64), 2, shape, steps);
  const DLTensor *in[2];
  DLTensor *out[2];
  const char from[] = "\"einsum\":{", name[] = "\"optimal_assignments\":{\"of\":\"argmax\",";
  char text[2048], changed[4352];
  char *start;
  t4a_op *op = NULL;
  OK(t4a_op_einsum(operands, 2, ik, 2, &options, &op, &error));
  CHECK(t4a_op_text(op, text, sizeof text) < sizeof text);
  t4a_op_free(op);
  start = strstr(text, from);
  CHECK(start != NULL);
  *start = 0;
  snprintf(changed, sizeof changed, "%s%s%s", text, name, start + strlen(from));
  op = parse(changed);
  in[0] = in[1] = &x;
  out[0] = &to;
  out[1] = &at;
  OK(t4a_run_into(op, in, 2, out, 2, &error));
  /* (1 5; 3 0) times itself: the maxima are 8, 6; 4, 8, of the terms 1, 0; 0, 1. */
  CHECK(value[0] == 8 && value[1] == 4 && value[2] == 6 && value[3] == 8);
  CHECK(index[0] == 1 && index[1] == 0 && index[2] == 0 && index[3] == 0);
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
  all_functions();
  argmax();
  threads();
  puts("all is well");
  return 0;
}
