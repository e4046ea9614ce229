/* Layouts of structs against those of the library, and what the tests check with. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "t4a.h"

#ifdef __cplusplus
#define STATIC_ASSERT static_assert
#else
#define STATIC_ASSERT _Static_assert
#endif
#define FIELD(type, field) STATIC_ASSERT(offsetof(type, field) == RUST_##type##_##field, #type "." #field)
#define SIZE(type) STATIC_ASSERT(sizeof(type) == RUST_##type, #type)
SIZE(DLTensor);
FIELD(DLTensor, data);
FIELD(DLTensor, device);
FIELD(DLTensor, ndim);
FIELD(DLTensor, dtype);
FIELD(DLTensor, shape);
FIELD(DLTensor, strides);
FIELD(DLTensor, byte_offset);
SIZE(DLManagedTensorVersioned);
FIELD(DLManagedTensorVersioned, version);
FIELD(DLManagedTensorVersioned, manager_ctx);
FIELD(DLManagedTensorVersioned, deleter);
FIELD(DLManagedTensorVersioned, flags);
FIELD(DLManagedTensorVersioned, dl_tensor);
SIZE(t4a_operand);
FIELD(t4a_operand, labels);
FIELD(t4a_operand, shape);
FIELD(t4a_operand, rank);
SIZE(t4a_einsum_options);
FIELD(t4a_einsum_options, semiring);
FIELD(t4a_einsum_options, memory);
FIELD(t4a_einsum_options, dtype);
SIZE(t4a_meta);
FIELD(t4a_meta, rank);
FIELD(t4a_meta, dtype);
FIELD(t4a_meta, shape);

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);               \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

static void ok(t4a_status status, t4a_error *error, int line) {
  if (status != T4A_OK || error != NULL) {
    fprintf(stderr, "line %d: status %d: %s\n", line, status, t4a_error_text(error));
    exit(1);
  }
}
#define OK(call)                  \
  do {                            \
    t4a_error *error = NULL;      \
    t4a_status status_ = call;    \
    ok(status_, error, __LINE__); \
  } while (0)
/* A failure with this status and these words. */
static void fails(t4a_status wanted, const char *text, t4a_status status, t4a_error *error, int line) {
  if (status != wanted || error == NULL || t4a_error_status(error) != wanted ||
      strstr(t4a_error_text(error), text) == NULL) {
    fprintf(stderr, "line %d: status %d, wanted %d: %s\n", line, status, wanted, t4a_error_text(error));
    exit(1);
  }
  t4a_error_free(error);
}
#define FAILS(wanted, text, call)                     \
  do {                                                \
    t4a_error *error = NULL;                          \
    t4a_status status_ = call;                        \
    fails(wanted, text, status_, error, __LINE__);    \
  } while (0)

