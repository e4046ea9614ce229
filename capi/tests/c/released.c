/* Handles that were released, in a library with debug assertions: nothing reads their memory. */
#include <math.h>

#include "check.h"

int main(void) {
  double data[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 3};
  DLTensor t = tensor(data, F64, 2, shape, NULL);
  const DLTensor *in[1];
  t4a_op *op = parse("{\"t4a\":1,\"op\":{\"softmax\":{\"axis\":1}}}"), *other = NULL;
  t4a_tensor *x = NULL, *out[1];
  t4a_saved *saved = NULL;
  t4a_error *failure = NULL;
  DLManagedTensorVersioned *given = NULL;
  const uint8_t yes[] = {1};
  in[0] = &t;
  /* Tensors are counted: two handles are released twice. */
  OK(t4a_tensor_copy(&t, &x, &error));
  CHECK(t4a_tensor_retain(x) == x);
  t4a_tensor_release(x);
  CHECK(t4a_tensor_view(x) != NULL);
  OK(t4a_run_saved(op, &x, 1, yes, out, 1, NULL, &saved, &error));
  t4a_tensor_release(out[0]);
  t4a_tensor_release(out[0]);
  t4a_tensor_release(x);
  t4a_tensor_release(x);
  CHECK(t4a_tensor_view(x) == NULL && t4a_tensor_retain(x) == NULL);
  FAILS(T4A_ARGUMENT, "released", t4a_tensor_give(x, 0, &given, &error));
  FAILS(T4A_ARGUMENT, "operand 0 is a handle that was released",
        t4a_run_saved(op, &x, 1, yes, out, 1, NULL, &saved, &error));
  t4a_saved_free(saved);
  t4a_saved_free(saved);
  FAILS(T4A_ARGUMENT, "released", t4a_saved_vjp(saved, in, 1, out, 1, NULL, &error));
  t4a_op_free(op);
  t4a_op_free(op);
  FAILS(T4A_ARGUMENT, "the operation is a handle that was released", t4a_run(op, in, 1, out, 1, NULL, &error));
  FAILS(T4A_ARGUMENT, "released", t4a_op_jvp(op, yes, 1, &other, &error));
  CHECK(t4a_op_text(op, NULL, 0) == 0);
  /* A tensor is no operation. */
  OK(t4a_tensor_copy(&t, &x, &error));
  FAILS(T4A_ARGUMENT, "released", t4a_run((t4a_op *)(void *)x, in, 1, out, 1, NULL, &error));
  t4a_tensor_release(x);
  CHECK(t4a_op_parse("{", 1, &op, &failure) == T4A_ARGUMENT);
  t4a_error_free(failure);
  t4a_error_free(failure);
  CHECK(t4a_error_status(failure) == T4A_OK && !*t4a_error_text(failure));
  puts("all is well");
  return 0;
}
