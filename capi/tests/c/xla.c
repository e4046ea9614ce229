/* The handler of custom calls, called as XLA calls it. */
#include "check.h"

typedef struct extension { size_t size; int32_t type; struct extension *next; } extension;
typedef struct { size_t size; extension *ext; int32_t major, minor; } api_version;
typedef struct { size_t size; api_version version; uint32_t traits; int64_t state; } metadata;
typedef struct { extension base; metadata *data; } metadata_extension;
typedef struct { size_t size; extension *ext; const char *message; int32_t code; } error_create;
typedef struct {
  size_t size;
  extension *ext;
  api_version version;
  const void *internal;
  void *(*create)(error_create *);
  void *others[16];
} api_table;
typedef struct { size_t size; extension *ext; int32_t dtype; void *data; int64_t rank; int64_t *dims; } buffer;
typedef struct { size_t size; extension *ext; int64_t count; int32_t *types; void **items; } list;
typedef struct { const char *at; size_t len; } span;
typedef struct { size_t size; extension *ext; int64_t count; int32_t *types; span **names; void **values; } attributes;
typedef struct {
  size_t size;
  extension *ext;
  const api_table *api;
  void *context;
  int32_t stage;
  list args, rets;
  attributes attrs;
  void *future;
} call_frame;

static char message[400];
static int32_t code;
static void *create(error_create *error) {
  snprintf(message, sizeof message, "%s", error->message);
  code = error->code;
  return message;
}

enum { S32 = 4, S64 = 5, F32_ = 11, F64_ = 12, C128_ = 18 };

static void *call(const char *text, buffer *in, int64_t n, buffer *out, int64_t m) {
  static api_table table;
  int32_t types[] = {1, 1, 1, 1}, strings[] = {3, 4};
  void *args[4], *rets[4], *values[2];
  span other, name, value, *names[2];
  call_frame frame;
  int64_t i;
  for (i = 0; i < n; i++) args[i] = &in[i];
  for (i = 0; i < m; i++) rets[i] = &out[i];
  table.create = create;
  memset(&frame, 0, sizeof frame);
  frame.size = sizeof frame;
  frame.api = &table;
  frame.stage = 3;
  frame.args.count = n;
  frame.args.types = types;
  frame.args.items = args;
  frame.rets.count = m;
  frame.rets.types = types;
  frame.rets.items = rets;
  other.at = "more";
  other.len = 4;
  name.at = "text";
  name.len = 4;
  value.at = text;
  value.len = strlen(text);
  names[0] = &other;
  names[1] = &name;
  values[0] = NULL;
  values[1] = &value;
  frame.attrs.count = text[0] ? 2 : 1;
  frame.attrs.types = strings;
  frame.attrs.names = names;
  frame.attrs.values = values;
  return t4a_xla_execute(&frame);
}

static buffer array(int32_t dtype, void *data, int64_t rank, int64_t *dims) {
  buffer b;
  memset(&b, 0, sizeof b);
  b.size = sizeof b;
  b.dtype = dtype;
  b.data = data;
  b.rank = rank;
  b.dims = dims;
  return b;
}

static int refused(void *error, int32_t wanted, const char *text) {
  return error != NULL && code == wanted && strstr(message, text) != NULL;
}

int main(void) {
  const char *inverse = "{\"t4a\":1,\"op\":{\"linalg\":{\"op\":{\"inv\":null},\"complex\":false}}}";
  const char *complex_inverse = "{\"t4a\":1,\"op\":{\"linalg\":{\"op\":{\"inv\":null},\"complex\":true}}}";
  const char *pivoted = "{\"t4a\":1,\"op\":{\"linalg\":{\"op\":{\"qr_pivoted\":{\"columns\":\"thin\"}},\"complex\":false}}}";
  int64_t one[] = {1, 1}, two[] = {2, 2}, pair[] = {2};
  double x[] = {4}, y[1], z[] = {0, 2}, w[2], a[] = {0, 3, 0, 4}, q[4], r[4];
  int32_t order[] = {-1, -1};
  float narrow[] = {4}, out[1];
  buffer in, results[3];
  int i;
  {
    metadata found;
    metadata_extension question;
    call_frame frame;
    memset(&found, 0xff, sizeof found);
    memset(&question, 0, sizeof question);
    memset(&frame, 0, sizeof frame);
    question.base.size = sizeof question;
    question.base.type = 1;
    question.data = &found;
    frame.ext = &question.base;
    CHECK(t4a_xla_execute(&frame) == NULL && found.version.major == 0 && found.version.minor == 1);
    CHECK(t4a_xla_execute(NULL) == NULL);
  }
  for (i = 0; i < 3; i++) {
    in = array(F64_, x, 2, one);
    results[0] = array(F64_, y, 2, one);
    CHECK(call(inverse, &in, 1, results, 1) == NULL && y[0] == 0.25);
  }
  in = array(F32_, narrow, 2, one);
  results[0] = array(F32_, out, 2, one);
  CHECK(call(inverse, &in, 1, results, 1) == NULL && out[0] == 0.25f);
  in = array(C128_, z, 2, one);
  results[0] = array(C128_, w, 2, one);
  CHECK(call(complex_inverse, &in, 1, results, 1) == NULL && w[0] == 0 && w[1] == -0.5);
  /* Indices as integers of 32 bits, as JAX has them. */
  in = array(F64_, a, 2, two);
  results[0] = array(F64_, q, 2, two);
  results[1] = array(F64_, r, 2, two);
  results[2] = array(S32, order, 1, pair);
  CHECK(call(pivoted, &in, 1, results, 3) == NULL);
  CHECK(order[0] == 1 && order[1] == 0);
  /* Refusals. */
  a[1] = a[3] = 0;
  results[0] = array(F64_, q, 2, two);
  CHECK(refused(call(inverse, &in, 1, results, 1), 3, "singular"));
  CHECK(refused(call("", &in, 1, results, 1), 3, "attribute text"));
  CHECK(refused(call("{}", &in, 1, results, 1), 3, "missing field"));
  CHECK(refused(call(inverse, &in, 1, results, 2), 3, "places"));
  results[0] = array(F64_, a, 2, two);
  CHECK(refused(call(inverse, &in, 1, results, 1), 3, "overlaps"));
  results[0] = array(33, q, 2, two);
  CHECK(refused(call(inverse, &in, 1, results, 1), 3, "dtype 33"));
  puts("all is well");
  return 0;
}
