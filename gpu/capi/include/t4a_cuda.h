/*
 * t4a_cuda: operations of t4a.h on CUDA tensors of DLPack.
 *
 * The library contains libt4a: all functions of t4a.h are exported too, and a t4a_op or t4a_error of this library belongs
 * to these functions. Operations are made by t4a_op_parse or t4a_op_einsum, and derivatives by t4a_op_jvp and t4a_op_vjp.
 *
 * Conventions of t4a.h hold, except:
 *   Operands are on one CUDA device, and are copied once on it. Results have memory of their own there.
 *   One operation runs at a time. A function returns when all work of the device that belongs to the call is complete.
 *   T4A_UNSUPPORTED without a driver or a device, for operands on several devices, and on a stream that is captured.
 *   Operands and results have at most 2^31 - 1 elements. Integers beyond 32 bits become the ends of their range.
 */
#ifndef T4A_CUDA_H
#define T4A_CUDA_H

#include "t4a.h"

#ifdef __cplusplus
extern "C" {
#endif

#define T4A_CUDA_ABI_MAJOR 1
#define T4A_CUDA_ABI_MINOR 0

/* major << 16 | minor. The majors must agree. */
uint32_t t4a_cuda_abi(void);
/* The number of devices, at least 1. */
t4a_status t4a_cuda_devices(int32_t *count, t4a_error **error);

/* Runs an operation. `stream`, of the device of the operands, is numbered as in DLPack: 1 is the legacy default stream, 2 that
   of the thread, other numbers are CUstreams, -1 means that the operands are complete. Operands are read in the order of this
   stream. Results are released by their deleters. Their memory is used again after all work of the device that was started
   before, so that consumers need not wait before they release it. */
t4a_status t4a_cuda_run(const t4a_op *op, const DLTensor *const *operands, size_t count, int64_t stream,
                        DLManagedTensorVersioned **out, size_t room, size_t *results, t4a_error **error);
/* One more export of the memory of a result, row-major with this shape of as many elements. */
t4a_status t4a_cuda_share(const DLManagedTensorVersioned *tensor, const int64_t *shape, int32_t rank,
                          DLManagedTensorVersioned **out, t4a_error **error);
/* Gives memory that no tensor and no operation uses back to the driver. */
t4a_status t4a_cuda_free_memory(int32_t device, t4a_error **error);

#ifdef __cplusplus
}
#endif
#endif
