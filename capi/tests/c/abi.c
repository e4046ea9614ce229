/* Against the header of an earlier version: every struct, and functions of every group. No layouts of the sources here,
   which may have grown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t4a.h"

#define CHECK(condition)                                      \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      exit(1);                                                \
    }                                                         \
  } while (0)

static int deleted;
static void deleter(DLManagedTensorVersioned *self) {
  deleted++;
  free(self);
}

static DLTensor matrix(double *data, int64_t *shape) {
  DLTensor t;
  memset(&t, 0, sizeof t);
  t.data = data;
  t.device.device_type = 1;
  t.ndim = 2;
  t.dtype.code = 2;
  t.dtype.bits = 64;
  t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

int main(void) {
  double a[] = {1, 2, 3, 4}, out[4];
  int64_t ij[] = {1, 2}, jk[] = {2, 3}, ik[] = {1, 3}, shape[] = {2, 2};
  uint8_t yes[] = {1, 1};
  t4a_operand operands[] = {{sizeof(t4a_operand), ij, shape, 2}, {sizeof(t4a_operand), jk, shape, 2}};
  t4a_einsum_options options;
  struct {
    t4a_einsum_options known;
    char later[64];
  } longer;
  t4a_meta metas[2], found[2];
  t4a_op *op = NULL, *vjp = NULL, *jvp = NULL, *batch = NULL, *parsed = NULL;
  t4a_tensor *x = NULL, *results[2];
  t4a_saved *saved = NULL;
  t4a_error *error = NULL;
  DLTensor in = matrix(a, shape), place = matrix(out, shape);
  const DLTensor *both[2];
  DLTensor *to[1];
  DLManagedTensorVersioned *managed = (DLManagedTensorVersioned *)calloc(1, sizeof *managed);
  char text[4096];
  size_t count = 0;

  CHECK(t4a_abi() >> 16 == T4A_ABI_MAJOR && t4a_abi() + 1 > (T4A_ABI_MAJOR << 16 | T4A_ABI_MINOR));
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.semiring = "max_plus";
  options.dtype = in.dtype;
  CHECK(t4a_op_einsum(operands, 2, ik, 2, &options, &op, NULL) == T4A_OK);
  t4a_op_free(op);
  /* The header of a later version has longer structs. */
  memset(&longer, 0, sizeof longer);
  longer.known = options;
  longer.known.size = sizeof longer;
  CHECK(t4a_op_einsum(operands, 2, ik, 2, &longer.known, &op, NULL) == T4A_OK);
  options.size = 8;
  CHECK(t4a_op_einsum(operands, 2, ik, 2, &options, &parsed, &error) == T4A_ARGUMENT);
  CHECK(t4a_error_status(error) == T4A_ARGUMENT && strstr(t4a_error_text(error), "8 bytes") && t4a_error_batch(error) == -1);
  t4a_error_free(error);

  both[0] = both[1] = &in;
  to[0] = &place;
  CHECK(t4a_run_into(op, both, 2, to, 1, NULL) == T4A_OK);
  /* max_j a_ij + a_jk: row 0 is (5, 6) by j = 1, row 1 (7, 8). */
  CHECK(out[0] == 5 && out[1] == 6 && out[2] == 7 && out[3] == 8);

  memset(metas, 0, sizeof metas);
  metas[0].size = sizeof metas[0];
  metas[0].rank = 2;
  metas[0].dtype = in.dtype;
  metas[0].shape[0] = metas[0].shape[1] = 2;
  metas[1] = metas[0];
  CHECK(t4a_op_results(op, metas, 2, found, 2, &count, NULL) == T4A_OK && count == 1 && found[0].shape[1] == 2);
  CHECK(t4a_op_text(op, text, sizeof text) < sizeof text);
  CHECK(t4a_op_parse(text, strlen(text), &parsed, NULL) == T4A_OK);
  CHECK(t4a_op_vjp(op, yes, 1, yes, 2, &vjp, NULL) == T4A_OK && t4a_op_jvp(op, yes, 2, &jvp, NULL) == T4A_OK);
  CHECK(t4a_op_batch(op, 3, yes, 2, &batch, NULL) == T4A_OK);

  managed->version.major = 1;
  managed->deleter = deleter;
  managed->dl_tensor = in;
  CHECK(t4a_tensor_take(managed, &x, NULL) == T4A_OK && deleted == 0);
  {
    t4a_tensor *handles[2];
    const DLTensor *cotangent[1];
    handles[0] = x;
    handles[1] = x;
    CHECK(t4a_run_saved(op, handles, 2, yes, results, 2, &count, &saved, NULL) == T4A_OK && count == 1);
    cotangent[0] = t4a_tensor_view(results[0]);
    t4a_tensor_release(t4a_tensor_retain(results[0]));
    {
      t4a_tensor *back[2];
      CHECK(t4a_saved_vjp(saved, cotangent, 1, back, 2, &count, NULL) == T4A_OK && count == 2);
      t4a_tensor_release(back[0]);
      t4a_tensor_release(back[1]);
    }
    t4a_tensor_release(results[0]);
  }
  t4a_saved_free(saved);
  CHECK(t4a_tensor_give(x, T4A_WRITABLE | T4A_COLUMN_MAJOR, &managed, NULL) == T4A_OK);
  CHECK(managed->dl_tensor.strides[0] == 1 && ((double *)managed->dl_tensor.data)[1] == 3);
  managed->deleter(managed);
  CHECK(deleted == 1);
  t4a_op_free(batch);
  t4a_op_free(jvp);
  t4a_op_free(vjp);
  t4a_op_free(parsed);
  t4a_op_free(op);
  puts("all is well");
  return 0;
}
