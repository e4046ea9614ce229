/* Ground states, trains of functions, callbacks that fail, and vjps of given results. */
#include <math.h>

#include "check.h"

static int sweeps;
static int32_t counting(void *context, size_t state, size_t sweep, double energy, double truncation, size_t bond) {
  (void)energy, (void)truncation, (void)bond;
  CHECK(state == 0 && sweep == (size_t)++sweeps);
  return *(int32_t *)context;
}

/* The singlet of two spins 1/2 has the energy -3/4. */
static void ground_states(void) {
  const char *problem =
      "{\"site\":\"spin_half\",\"count\":2,\"start\":[\"Up\",\"Dn\"],\"expect\":[\"Sz\"],\"terms\":["
      "{\"coefficient\":[0.5,0],\"factors\":[[\"S+\",0],[\"S-\",1]],\"with_adjoint\":true},"
      "{\"coefficient\":[1,0],\"factors\":[[\"Sz\",0],[\"Sz\",1]]}]}";
  int32_t answer = 0;
  t4a_tensor *out[1];
  size_t n = 0, length = strlen(problem);
  char text[4096];
  const char *at;
  const DLTensor *view;
  OK(t4a_ground_states(problem, length, counting, &answer, out, 1, &n, &error));
  CHECK(n == 1 && sweeps > 0);
  view = t4a_tensor_view(out[0]);
  CHECK(view->dtype.code == 1 && view->dtype.bits == 8 && view->shape[0] < (int64_t)sizeof text);
  memcpy(text, view->data, (size_t)view->shape[0]);
  text[view->shape[0]] = 0;
  at = strstr(text, "\"energy\":");
  CHECK(at != NULL && fabs(atof(at + 9) + 0.75) < 1e-12);
  t4a_tensor_release(out[0]);
  OK(t4a_ground_states(problem, length, NULL, NULL, out, 1, NULL, &error));
  t4a_tensor_release(out[0]);
  sweeps = 0;
  answer = 1;
  OK(t4a_ground_states(problem, length, counting, &answer, out, 1, NULL, &error));
  CHECK(sweeps == 1);
  t4a_tensor_release(out[0]);
  sweeps = 0;
  answer = -3;
  FAILS(T4A_ARGUMENT, "-3", t4a_ground_states(problem, length, counting, &answer, out, 1, NULL, &error));
  FAILS(T4A_ARGUMENT, "problem", t4a_ground_states(NULL, 4, NULL, NULL, out, 1, NULL, &error));
  FAILS(T4A_ARGUMENT, "missing field", t4a_ground_states("{}", 2, NULL, NULL, out, 1, NULL, &error));
  FAILS(T4A_ARGUMENT, "room", t4a_ground_states(problem, length, NULL, NULL, out, 0, NULL, &error));
}

/* x + 10 y + 100 z, or that times i. */
static int32_t digits(void *context, const int64_t *points, size_t count, double *values) {
  int32_t parts = *(int32_t *)context;
  size_t k;
  if (parts > 2) return parts;
  for (k = 0; k < count; k++, points += 3, values += parts) {
    values[0] = 0;
    values[parts - 1] = 1 + (double)points[0] + 10 * (double)points[1] + 100 * (double)points[2];
  }
  return 0;
}

static void trains(void) {
  int64_t sizes[] = {2, 3, 2}, bad[] = {2, -1};
  int32_t parts;
  const char *options = "{\"tolerance\":1e-12,\"search\":\"full\"}";
  for (parts = 1; parts <= 2; parts++) {
    t4a_tensor *out[4];
    const DLTensor *cores[3];
    size_t n = 0, k;
    OK(t4a_cross_interpolation(sizes, 3, parts - 1, digits, &parts, options, strlen(options), out, 4, &n, &error));
    CHECK(n == 4);
    for (k = 0; k < 3; k++) {
      cores[k] = t4a_tensor_view(out[k + 1]);
      CHECK(cores[k]->ndim == 3 && cores[k]->shape[1] == sizes[k] && cores[k]->dtype.code == (parts == 1 ? 2 : 5));
    }
    CHECK(cores[0]->shape[0] == 1 && cores[0]->shape[2] == 2 && cores[2]->shape[2] == 1);
    for (k = 0; k < 4; k++) t4a_tensor_release(out[k]);
  }
  {
    t4a_tensor *out[4];
    FAILS(T4A_ARGUMENT, "returned 3", t4a_cross_interpolation(sizes, 3, 0, digits, &parts, NULL, 0, out, 4, NULL, &error));
    FAILS(T4A_SHAPE, "-1", t4a_cross_interpolation(bad, 2, 0, digits, &parts, NULL, 0, out, 4, NULL, &error));
    FAILS(T4A_ARGUMENT, "function", t4a_cross_interpolation(sizes, 3, 0, NULL, NULL, NULL, 0, out, 4, NULL, &error));
    FAILS(T4A_ARGUMENT, "tolerence",
          t4a_cross_interpolation(sizes, 3, 0, digits, &parts, "{\"tolerence\":1}", 15, out, 4, NULL, &error));
    parts = 1;
    FAILS(T4A_ARGUMENT, "room", t4a_cross_interpolation(sizes, 3, 0, digits, &parts, NULL, 0, out, 3, NULL, &error));
  }
}

/* The cotangent of 1 / x is -g y y for the y that is given: of the true one, and of another. */
static void vjps_of_results(void) {
  t4a_op *op = parse("{\"t4a\":1,\"op\":{\"linalg\":{\"op\":{\"inv\":null},\"complex\":true}}}"), *vjp = NULL;
  t4a_op *max = product("max_plus", F64);
  uint8_t yes[] = {1, 1};
  double x[] = {0, 2}, y[] = {0, -0.5}, other[] = {1, 0}, g[] = {1, 0};
  int64_t shape[] = {1, 1};
  DLTensor operand = tensor(x, C128, 2, shape, NULL), result = tensor(y, C128, 2, shape, NULL);
  DLTensor cotangent = tensor(g, C128, 2, shape, NULL);
  const DLTensor *in[3];
  t4a_tensor *out = NULL;
  const double *found;
  in[0] = &operand;
  in[1] = &result;
  in[2] = &cotangent;
  OK(t4a_op_vjp_of_results(op, yes, 1, yes, 1, &vjp, &error));
  OK(t4a_run(vjp, in, 3, &out, 1, NULL, &error));
  found = (const double *)t4a_tensor_view(out)->data;
  /* -conj(y)^2 = 1/4. */
  CHECK(found[0] == 0.25 && found[1] == 0);
  t4a_tensor_release(out);
  result.data = other;
  OK(t4a_run(vjp, in, 3, &out, 1, NULL, &error));
  CHECK(((const double *)t4a_tensor_view(out)->data)[0] == -1);
  t4a_tensor_release(out);
  CHECK(t4a_run(vjp, in, 2, &out, 1, NULL, NULL) != T4A_OK);
  t4a_op_free(vjp);
  FAILS(T4A_UNSUPPORTED, "does not read", t4a_op_vjp_of_results(max, yes, 1, yes, 2, &vjp, &error));
  FAILS(T4A_ARGUMENT, "null", t4a_op_vjp_of_results(NULL, yes, 1, yes, 1, &vjp, &error));
  t4a_op_free(max);
  t4a_op_free(op);
}

int main(void) {
  CHECK(t4a_python(NULL) == NULL && t4a_capsule_destructor(NULL, NULL) == NULL);
  ground_states();
  trains();
  vjps_of_results();
  puts("all is well");
  return 0;
}
