/*
 * A substitute for the CUDA driver with one device, for tests of the host side of libt4a_cuda on machines without CUDA.
 *
 * Real: memory, on the host and filled with the byte 0x55 when it is allocated; copies, at once; the stack of contexts of a
 * thread; counters and failures on request (struct driver). Accepted without effect: kernels, streams and events.
 * Refused with CUDA's status, a line on stderr and a count in driver.refused: what a device of compute capability 9.0
 * refuses. These are launches of grids without cubes, of too many cubes or threads, or with more shared memory than the
 * function has or the device permits; copies outside of live memory of the device, or with rows that overlap; releases of
 * memory that is not live; work on a thread without a context.
 *
 * T4A_DRIVER_TRACE=1    prints each launch on stderr
 * T4A_DRIVER_PTX=FOLDER writes the PTX of each module to the folder, as 00001.ptx and so on
 *
 *     cc -std=c2x -shared -fPIC -pthread -Wl,-soname,libnvcuda.so driver.c -o libnvcuda.so
 *
 * The name is libnvcuda.so, the second one under which cudarc searches for the driver: NVRTC opens libcuda.so itself and
 * requires more of it than this file has.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  LAUNCH_OUT_OF_RESOURCES = 701,
};

enum limits {
  MAX_THREADS = 1024,
  MAX_BLOCK_Z = 64,
  MAX_GRID_X = 2147483647,
  MAX_GRID_YZ = 65535,
  SHARED_MEMORY = 48 << 10,
  SHARED_MEMORY_ON_REQUEST = 227 << 10,
};

/* Address of memory of the device. */
typedef unsigned long long address;

/* State that tests read and write; host.py has the same fields. */
struct driver {
  _Atomic long started;      /* calls of cuInit */
  _Atomic long live;         /* bytes of memory of the device */
  _Atomic long limit;        /* maximum of live */
  _Atomic long copied;       /* bytes copied between memory of the device */
  _Atomic long unfinished;   /* such copies without a synchronisation of their stream afterwards */
  _Atomic long launches;     /* accepted launches */
  _Atomic long waits;        /* synchronisations of the context */
  _Atomic long contexts;     /* pushed and not popped contexts */
  _Atomic long refused;      /* refused calls */
  _Atomic long capturing;    /* 1: streams are captured as a graph */
  _Atomic long fail_copy;    /* k: the k-th copy between memory of the device from now fails; 0: none */
  _Atomic long fail_launch;  /* the same for launches */
} driver = {.limit = 1l << 40};

static int refuse(int status, const char *call, const char *reason) {
  driver.refused++;
  fprintf(stderr, "driver.c: %s: %s\n", call, reason);
  return status;
}

/* Returns true for the call that is to fail. */
static int counts_down(_Atomic long *left) {
  long value = *left;
  while (value > 0)
    if (__atomic_compare_exchange_n((long *)left, &value, value - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return value == 1;
  return 0;
}

/* Devices. */

int cuInit(unsigned) {
  driver.started++;
  return SUCCESS;
}

int cuDriverGetVersion(int *version) {
  *version = 13000;
  return SUCCESS;
}

int cuDeviceGetCount(int *count) {
  *count = 1;
  return SUCCESS;
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? SUCCESS : INVALID_DEVICE;
}

int cuDeviceTotalMem_v2(size_t *bytes, int) {
  *bytes = 8ull << 30;
  return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int) {
  switch (attribute) {
  case 1: /* threads per block */
  case 2: /* block, x */
  case 3: /* block, y */
    *value = MAX_THREADS;
    break;
  case 4: /* block, z */
    *value = MAX_BLOCK_Z;
    break;
  case 5: /* grid, x */
    *value = MAX_GRID_X;
    break;
  case 6: /* grid, y */
  case 7: /* grid, z */
    *value = MAX_GRID_YZ;
    break;
  case 8: /* shared memory per block */
    *value = SHARED_MEMORY;
    break;
  case 10: /* warp size */
    *value = 32;
    break;
  case 16: /* multiprocessors */
    *value = 132;
    break;
  case 75: /* compute capability, major */
    *value = 9;
    break;
  case 76: /* compute capability, minor */
    *value = 0;
    break;
  case 97: /* shared memory per block on request */
    *value = SHARED_MEMORY_ON_REQUEST;
    break;
  default:
    return refuse(INVALID_VALUE, "cuDeviceGetAttribute", "this attribute has no value here");
  }
  return SUCCESS;
}

/* Contexts: a stack per thread, of which only the height is kept. */

static _Thread_local int height;

static int has_context(const char *call) {
  return height > 0 ? SUCCESS : refuse(INVALID_CONTEXT, call, "the thread has no context");
}

int cuDevicePrimaryCtxRetain(void **context, int) {
  *context = &driver;
  return SUCCESS;
}

int cuCtxSetCurrent(void *) {
  if (height == 0)
    height = 1;
  return SUCCESS;
}

int cuCtxPushCurrent_v2(void *) {
  height++;
  driver.contexts++;
  return SUCCESS;
}

int cuCtxPopCurrent_v2(void **context) {
  int status = has_context("cuCtxPopCurrent");
  if (status == SUCCESS) {
    *context = &driver;
    height--;
    driver.contexts--;
  }
  return status;
}

/* Streams and events. */

/* Stream of the last copy between memory of the device. */
static void *_Atomic copying;

int cuStreamCreate(void **stream, unsigned) {
  /* 0, 1 and 2 are the default streams. */
  static _Atomic intptr_t last = 2;
  *stream = (void *)++last;
  return has_context("cuStreamCreate");
}

int cuStreamSynchronize(void *stream) {
  if (stream == copying)
    driver.unfinished = 0;
  return has_context("cuStreamSynchronize");
}

int cuCtxSynchronize(void) {
  driver.waits++;
  driver.unfinished = 0;
  return has_context("cuCtxSynchronize");
}

int cuStreamIsCapturing(void *, int *status) {
  *status = driver.capturing;
  return SUCCESS;
}

int cuStreamWaitEvent(void *, void *, unsigned) { return has_context("cuStreamWaitEvent"); }

int cuEventCreate(void **event, unsigned) {
  *event = &driver;
  return has_context("cuEventCreate");
}

int cuEventRecord(void *, void *) { return has_context("cuEventRecord"); }

int cuEventSynchronize(void *) { return SUCCESS; }

int cuEventDestroy_v2(void *) { return SUCCESS; }

/* Memory. */

enum { ALIGNMENT = 512 };

struct block {
  address start;
  size_t bytes;
  struct block *next;
};

static struct block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *allocated(size_t bytes) {
  size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  void *memory = aligned_alloc(ALIGNMENT, rounded);
  if (memory)
    memset(memory, 0x55, rounded);
  return memory;
}

int cuMemAlloc_v2(address *out, size_t bytes) {
  int status = has_context("cuMemAlloc");
  if (status != SUCCESS)
    return status;
  if (bytes == 0)
    return refuse(INVALID_VALUE, "cuMemAlloc", "no bytes");
  if (driver.live + (long)bytes > driver.limit)
    return OUT_OF_MEMORY;
  void *memory = allocated(bytes);
  struct block *made = malloc(sizeof *made);
  if (!memory || !made) {
    free(memory);
    free(made);
    return OUT_OF_MEMORY;
  }
  pthread_mutex_lock(&lock);
  *made = (struct block){(address)(uintptr_t)memory, bytes, blocks};
  blocks = made;
  driver.live += bytes;
  pthread_mutex_unlock(&lock);
  *out = made->start;
  return SUCCESS;
}

int cuMemAllocAsync(address *out, size_t bytes, void *) { return cuMemAlloc_v2(out, bytes); }

int cuMemFree_v2(address start) {
  struct block *found = NULL;
  pthread_mutex_lock(&lock);
  for (struct block **at = &blocks; *at; at = &(*at)->next)
    if ((*at)->start == start) {
      found = *at;
      *at = found->next;
      driver.live -= found->bytes;
      break;
    }
  pthread_mutex_unlock(&lock);
  if (!found)
    return refuse(INVALID_VALUE, "cuMemFree", "the memory is not live");
  free((void *)(uintptr_t)start);
  free(found);
  return SUCCESS;
}

int cuMemFreeAsync(address start, void *) { return cuMemFree_v2(start); }

int cuMemAllocHost_v2(void **out, size_t bytes) {
  *out = allocated(bytes);
  return *out ? SUCCESS : OUT_OF_MEMORY;
}

int cuMemFreeHost(void *memory) {
  free(memory);
  return SUCCESS;
}

/* Copies. Memory that they read as memory of the device may be any memory of the host: tests give it as operands. */

static int is_live(const char *call, address start, size_t bytes) {
  int found = 0;
  pthread_mutex_lock(&lock);
  for (struct block *x = blocks; x && !found; x = x->next)
    found = x->start <= start && start - x->start <= x->bytes && bytes <= x->bytes - (start - x->start);
  pthread_mutex_unlock(&lock);
  return found ? has_context(call) : refuse(INVALID_VALUE, call, "the memory is not live");
}

int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *) {
  int status = is_live("cuMemcpyHtoD", to, bytes);
  if (status == SUCCESS)
    memcpy((void *)(uintptr_t)to, from, bytes);
  return status;
}

int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *) {
  int status = is_live("cuMemcpyDtoH", from, bytes);
  if (status == SUCCESS)
    memcpy(to, (void *)(uintptr_t)from, bytes);
  return status;
}

/* Start of a copy between memory of the device. */
static int copies(const char *call, address to, size_t span, size_t bytes, void *stream) {
  if (counts_down(&driver.fail_copy))
    return INVALID_VALUE;
  int status = is_live(call, to, span);
  if (status == SUCCESS) {
    driver.copied += bytes;
    driver.unfinished++;
    copying = stream;
  }
  return status;
}

int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *stream) {
  int status = copies("cuMemcpyDtoD", to, bytes, bytes, stream);
  if (status == SUCCESS)
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
  return status;
}

/* CUDA_MEMCPY2D, without offsets. */
struct side {
  size_t x, y;
  int kind; /* 1: host, 2: device */
  const void *host;
  address device;
  void *array;
  size_t pitch;
};

struct rows {
  struct side from, to;
  size_t width, height;
};

static char *start_of(const struct side *side) {
  return side->kind == 2 ? (char *)(uintptr_t)side->device : (char *)side->host;
}

int cuMemcpy2DAsync_v2(const struct rows *rows, void *stream) {
  const struct side *from = &rows->from, *to = &rows->to;
  if (from->x || from->y || to->x || to->y || from->pitch < rows->width || to->pitch < rows->width || !rows->height)
    return refuse(INVALID_VALUE, "cuMemcpy2D", "rows that overlap, no rows, or offsets");
  size_t span = (rows->height - 1) * to->pitch + rows->width;
  int status = SUCCESS;
  if (from->kind == 2 && to->kind == 2)
    status = copies("cuMemcpy2D", to->device, span, rows->height * rows->width, stream);
  else if (to->kind == 2)
    status = is_live("cuMemcpy2D", to->device, span);
  else
    status = is_live("cuMemcpy2D", from->device, (rows->height - 1) * from->pitch + rows->width);
  for (size_t i = 0; status == SUCCESS && i < rows->height; i++)
    memcpy(start_of(to) + i * to->pitch, start_of(from) + i * from->pitch, rows->width);
  return status;
}

/* Kernels. */

struct kernel {
  char name[256];
  long module;
  long shared; /* maximum of dynamic shared memory */
};

int cuModuleLoadData(void **module, const void *text) {
  static _Atomic intptr_t last;
  intptr_t number = ++last;
  *module = (void *)number;
  const char *folder = getenv("T4A_DRIVER_PTX");
  if (folder) {
    char name[4096];
    snprintf(name, sizeof name, "%s/%05ld.ptx", folder, (long)number);
    FILE *file = fopen(name, "w");
    if (!file)
      return refuse(INVALID_VALUE, "cuModuleLoadData", "the folder T4A_DRIVER_PTX cannot be written to");
    fputs(text, file);
    fclose(file);
  }
  return has_context("cuModuleLoadData");
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  struct kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel)
    return OUT_OF_MEMORY;
  snprintf(kernel->name, sizeof kernel->name, "%s", name);
  kernel->module = (intptr_t)module;
  kernel->shared = SHARED_MEMORY;
  *function = kernel;
  return SUCCESS;
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
  if (attribute != 8) /* maximum of dynamic shared memory */
    return SUCCESS;
  if (value < 0 || value > SHARED_MEMORY_ON_REQUEST)
    return refuse(INVALID_VALUE, "cuFuncSetAttribute", "more shared memory than the device has");
  ((struct kernel *)function)->shared = value;
  return SUCCESS;
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void *, void **, void **) {
  const struct kernel *kernel = function;
  if (getenv("T4A_DRIVER_TRACE"))
    fprintf(stderr, "driver.c: module %ld, %s: grid %u %u %u, block %u %u %u, %u bytes of shared memory\n", kernel->module,
            kernel->name, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared);
  if (counts_down(&driver.fail_launch))
    return LAUNCH_OUT_OF_RESOURCES;
  int status = has_context("cuLaunchKernel");
  if (status != SUCCESS)
    return status;
  if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z)
    return refuse(INVALID_VALUE, kernel->name, "a grid or a block without elements");
  if (grid_x > MAX_GRID_X || grid_y > MAX_GRID_YZ || grid_z > MAX_GRID_YZ)
    return refuse(INVALID_VALUE, kernel->name, "a grid that is too large");
  if (block_x > MAX_THREADS || block_y > MAX_THREADS || block_z > MAX_BLOCK_Z ||
      (unsigned long)block_x * block_y * block_z > MAX_THREADS)
    return refuse(INVALID_VALUE, kernel->name, "a block that is too large");
  if (shared > kernel->shared)
    return refuse(INVALID_VALUE, kernel->name, "more shared memory than the function has");
  driver.launches++;
  return SUCCESS;
}

/* Texts of errors. */

int cuGetErrorName(int, const char **name) {
  *name = "an error of driver.c";
  return SUCCESS;
}

int cuGetErrorString(int, const char **text) {
  *text = "an error of driver.c";
  return SUCCESS;
}
