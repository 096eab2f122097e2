/* The words that CUDA C++ and OpenCL C spell differently, for the headers of native/ and the kernels here; native/words.h is C's
 * counterpart. A kernel has local memory of a size given at its launch: `KERNEL void f(… LOCAL_ARGUMENT) { LOCAL_MEMORY … }`, there
 * `local_words`. An APART_FN is not inlined in OpenCL: PoCL 3.0 gets loops between barriers wrong from which items part ways. In CUDA it
 * is, which would forget otherwise that pointers are to shared memory. The whole program is one text: no header is included. */
#ifdef __OPENCL_VERSION__
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef long i64;
#define FN static inline
#define OUTLINE_FN static __attribute__((noinline))
#define APART_FN OUTLINE_FN
#define CONSTANT __constant
#define GLOBAL __global
#define LOCAL __local
#define KERNEL __kernel
#define LOCAL_ARGUMENT , __local u64 *local_words
#define LOCAL_MEMORY
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define ITEM ((u32)get_local_id(0))
#define ITEMS ((u32)get_local_size(0))
#define GROUP ((u32)get_group_id(0))
#define ALL_ITEM ((u64)get_global_id(0))
#define ALL_ITEMS ((u64)get_global_size(0))
#define ATOMIC_ADD(p, v) atomic_add(p, v)
#define ATOMIC_OR(p, v) atomic_or(p, v)
#define ATOMIC_MIN(p, v) atomic_min(p, v)
FN u64 mulhi64(u64 a, u64 b) { return mul_hi(a, b); }
FN u32 popcount64(u64 x) { return (u32)popcount(x); }
FN u32 leading_zeros64(u64 x) { return (u32)clz(x); }
FN u32 load32(GLOBAL const u8 *p) { return as_uint(vload4(0, p)); }
FN u64 load64(GLOBAL const u8 *p) { return as_ulong(vload8(0, p)); }
#else
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define FN static __device__ __forceinline__ __attribute__((unused))
#define OUTLINE_FN static __device__ __noinline__
#define APART_FN FN
#define CONSTANT static __device__ __constant__ const
#define GLOBAL
#define LOCAL
#define KERNEL extern "C" __global__
#define LOCAL_ARGUMENT
#define LOCAL_MEMORY extern __shared__ u64 local_words[];
#define BARRIER() __syncthreads()
#define ITEM threadIdx.x
#define ITEMS blockDim.x
#define GROUP blockIdx.x
#define ALL_ITEM ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define ALL_ITEMS ((u64)gridDim.x * blockDim.x)
#define ATOMIC_ADD(p, v) atomicAdd(p, v)
#define ATOMIC_OR(p, v) atomicOr(p, v)
#define ATOMIC_MIN(p, v) atomicMin(p, v)
FN u64 mulhi64(u64 a, u64 b) { return __umul64hi(a, b); }
FN u32 popcount64(u64 x) { return (u32)__popcll((long long)x); }
FN u32 leading_zeros64(u64 x) { return (u32)__clzll((long long)x); }

/* No load here may be unaligned: two words, or three, that hold what is asked for, and nothing beyond the last of them. */
FN u32 load32(const u8 *p)
{
    u32 by = (u32)(u64)p & 3;
    const u32 *w = (const u32 *)(p - by);
    return by ? __funnelshift_r(w[0], w[1], 8 * by) : w[0];
}
FN u64 load64(const u8 *p)
{
    u32 by = (u32)(u64)p & 3;
    const u32 *w = (const u32 *)(p - by);
    u32 low = w[0], high = w[1];
    if (by) {
        low = __funnelshift_r(low, high, 8 * by);
        high = __funnelshift_r(high, w[2], 8 * by);
    }
    return (u64)high << 32 | low;
}
#endif
FN bool same_bytes(GLOBAL const u8 *a, GLOBAL const u8 *b, u64 length)
{
    for (u64 i = 0; i < length; i++)
        if (a[i] != b[i])
            return false;
    return true;
}
FN u32 trailing_zeros64(u64 x) { return popcount64((x & (0 - x)) - 1); } /* x != 0 */
#define UNLIKELY(x) (x)
#define line_sum plain_line_sum
