/* Memory and queues that a program shares with other libraries of the same device: the address of a
 * buffer, a buffer over memory that others own, a queue in a stream of theirs. DLPack
 * and __cuda_array_interface__ are made of these (python/kiln/_dlpack.py).
 *
 *     backend   an address is                    a queue is
 *     cuda      a CUdeviceptr                    a CUstream of the primary context; 0 and 1 are the
 *                                                legacy default stream, 2 the calling thread's own
 *     cpu       a pointer of this process        (nothing: KILN_E_UNSUPPORTED)
 *
 * opencl, vulkan and opengl have memory without an address, and give KILN_E_UNSUPPORTED. */
#ifndef KILN_UNSTABLE_NATIVE_H
#define KILN_UNSTABLE_NATIVE_H

#include "kiln/launch.h"

KILN_BEGIN_DECLS

/* The address of a buffer's first byte. Work that was put into a queue may still be under way
 * there: the user of the address waits for it, or comes after it (kiln_queue_wait_queue).
 * Threads: any.   Blocks: never.
 * Owns: *out_address is valid until the buffer is destroyed.
 * Fails: KILN_E_UNSUPPORTED. */
KILN_API KILN_MUST_CHECK kiln_status kiln_buffer_address(const kiln_buffer *buffer,
                                                         uint64_t *out_address, kiln_diag *diag);

/* A buffer over `size` bytes (at least 1) at `address`, for every call that takes a buffer. On the
 * cpu backend an argument must be aligned for its type.
 * Threads: any.   Blocks: driver.
 * Owns: *out_buffer is yours, kiln_buffer_destroy(), which neither frees the memory nor waits. The
 * memory stays its owner's, and must outlive the buffer and all work that uses it.
 * Fails: KILN_E_INVALID (no address, no size, memory that the device does not know or that lies on
 * another device), KILN_E_UNSUPPORTED, KILN_E_NOMEM, KILN_E_DEVICE_LOST. */
KILN_API KILN_MUST_CHECK kiln_status kiln_buffer_wrap(kiln_device *device, uint64_t address,
                                                      size_t size, kiln_buffer **out_buffer,
                                                      kiln_diag *diag);

/* What the device's own interface calls a queue.
 * Threads: any.   Blocks: never.
 * Owns: *out_native is valid until the queue is destroyed.
 * Fails: KILN_E_UNSUPPORTED. */
KILN_API KILN_MUST_CHECK kiln_status kiln_queue_native(const kiln_queue *queue,
                                                       uint64_t *out_native, kiln_diag *diag);

/* A queue that puts its work into a stream that others made, between the owner's own. The
 * driver cannot say whether `native` is a stream: one that is not, or is gone, is undefined.
 * Threads: any.   Blocks: driver.
 * Owns: *out_queue is yours, kiln_queue_destroy(), which leaves the stream as it is and does not
 * wait. The stream must outlive the queue.
 * Fails: KILN_E_UNSUPPORTED, KILN_E_NOMEM, KILN_E_DEVICE_LOST. */
KILN_API KILN_MUST_CHECK kiln_status kiln_queue_wrap(kiln_device *device, uint64_t native,
                                                     kiln_queue **out_queue, kiln_diag *diag);

/* Orders two queues of one device: what is put into `queue` from now on begins when all that is in
 * `before` by now is done.
 * Threads: any.
 * Blocks: never on cuda; elsewhere until `before` is done.
 * Owns: nothing; `before` may be destroyed right after.
 * Fails: KILN_E_INVALID (queues of two devices), KILN_E_DEVICE_LOST, KILN_E_NOMEM; where it waits,
 * as kiln_queue_finish. */
KILN_API KILN_MUST_CHECK kiln_status kiln_queue_wait_queue(kiln_queue *queue, kiln_queue *before,
                                                           kiln_diag *diag);

/* --- for bindings of other languages ---------------------------------------------------------- */

/* What has been handed to others by DLPack. A consumer calls a tensor's deleter on any thread, in
 * the middle of anything, perhaps while an error of the binding's language is being raised: code of
 * that language must not run there. So the deleter is kiln_export_end, which only notes that the
 * tensor is done with, and asks for a call later. */
typedef struct kiln_exports kiln_exports; /* create/destroy */

/* Calls for run(user) at a time when it may run, 0 if that will be: Py_AddPendingCall is one. */
typedef int kiln_exports_run_fn(void *user);
typedef int kiln_exports_wake_fn(kiln_exports_run_fn *run, void *user);

/* A list of exports. `wake` (may be NULL) is called with `run` and NULL when one ends while no call
 * is on its way; what it cannot take stays in the list for the next kiln_exports_take.
 * Threads: any.   Blocks: never.
 * Owns: *out_exports is yours, kiln_exports_destroy(), when each tensor has been taken.
 * Fails: KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_exports_create(kiln_exports_wake_fn *wake,
                                                         kiln_exports_run_fn *run,
                                                         kiln_exports **out_exports,
                                                         kiln_diag *diag);
KILN_API void kiln_exports_destroy(kiln_exports *exports);
/* Calls `wake` no more: the binding's language is about to end.
 * Threads: any.   Blocks: never.   Owns: nothing.   Fails: never. */
KILN_API void kiln_exports_silence(kiln_exports *exports);

/* `size` bytes for a DLManagedTensor and what it points to, zeroed; its deleter is to be
 * kiln_export_end.
 * Threads: any.   Blocks: never.
 * Owns: *out_managed is the consumer's until the deleter is called, and then the list's until it is
 * taken.
 * Fails: KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_exports_add(kiln_exports *exports, size_t size,
                                                      void **out_managed, kiln_diag *diag);
KILN_API void kiln_export_end(void *managed);

/* Takes a tensor that is done with from the list, or gives NULL; and frees one that was taken.
 * Threads: any.   Blocks: never.
 * Owns: the result is yours, kiln_export_free().   Fails: never. */
KILN_API void *kiln_exports_take(kiln_exports *exports);
KILN_API void kiln_export_free(void *managed);

/* The device that a buffer is on.
 * Threads: any.   Blocks: never.   Owns: borrowed from the runtime.   Fails: never. */
KILN_API kiln_device *kiln_buffer_device(const kiln_buffer *buffer);

KILN_END_DECLS

#endif
