/* Operations, derivatives, failures, threads, as C11 and C++17, under the address sanitizer. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "t4a_contract.h"

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
    FAILS(T4A_ARGUMENT, "1 flags for 2 operands", t4a_op_jvp(op, both, 1, &no, &error));
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

static void orders(void) {
  int64_t ab[] = {0, 1}, bc[] = {1, 2}, cd[] = {2, 3}, ad[] = {0, 3}, a[] = {2, 9}, b[] = {9, 3}, c[] = {3, 8};
  t4a_operand operands[] = {
      {sizeof(t4a_operand), ab, a, 2}, {sizeof(t4a_operand), bc, b, 2}, {sizeof(t4a_operand), cd, c, 2}};
  t4a_einsum_options options = {sizeof(t4a_einsum_options), NULL, 0, {0, 0, 0}, NULL};
  const char *given[] = {"greedy", "annealing", "[[1,2],[0,1]]"};
  const char *want[][2] = {{"\"path\":[[0,1]", "\"path\":[[1,0]"}, {"\"path\":[[0,1]", "\"path\":[[1,0]"}, {"\"path\":[[1,2]", "none"}};
  t4a_op *op = NULL;
  char text[4096];
  int i;
  for (i = 0; i < 3; i++) {
    options.optimize = given[i];
    OK(t4a_op_einsum(operands, 3, ad, 2, &options, &op, &error));
    CHECK(t4a_op_text(op, text, sizeof text) < sizeof text && (strstr(text, want[i][0]) || strstr(text, want[i][1])));
    t4a_op_free(op);
  }
  options.optimize = "[[0,3]]";
  FAILS(T4A_ARGUMENT, "0", t4a_op_einsum(operands, 3, ad, 2, &options, &op, &error));
  options.optimize = "[[0,-1]]";
  FAILS(T4A_ARGUMENT, "nonnegative positions", t4a_op_einsum(operands, 3, ad, 2, &options, &op, &error));
  options.optimize = "best";
  FAILS(T4A_ARGUMENT, "annealing", t4a_op_einsum(operands, 3, ad, 2, &options, &op, &error));
}

int main(void) {
  orders();
  complex_numbers();
  derivatives();
  failures_of_matrices();
  threads();
  puts("all is well");
  return 0;
}
