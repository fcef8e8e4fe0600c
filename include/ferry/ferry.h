/* SPDX-License-Identifier: MIT */
/* Ferry: collectives of an MPI communicator, compiled once and started as often as you like.
 *
 * Signatures have the shape of MPI; counts are MPI_Count (64 bit). Every function returns an MPI
 * error class (MPI_SUCCESS = 0), after it was given to the communicator's error handler (that of
 * MPI_COMM_SELF where there is no communicator). ferry_error_text() then names function, rank,
 * cause and remedy, in the handler as well; a fatal handler finds the text on stderr. Buffers may
 * be any memory; memory from ferry_alloc is mapped by peers, which saves one copy.
 */
#pragma once

#include <mpi.h>
#include <stddef.h>

#if defined(__GNUC__)
#define FERRY_API __attribute__((visibility("default")))
#else
#define FERRY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FERRY_VERSION_MAJOR 0
#define FERRY_VERSION_MINOR 1
#define FERRY_VERSION_PATCH 0

/** Handle of a non-blocking or persistent collective. */
typedef struct ferry_request_s* ferry_request;
#define FERRY_REQUEST_NULL ((ferry_request)0)

/* ---- blocking -------------------------------------------------------------------------------
 */

/** Block i of sendbuf goes to rank i; block j of recvbuf comes from rank j. MPI_IN_PLACE as sendbuf
 *  on all ranks: blocks are taken from and replaced in recvbuf. */
FERRY_API int ferry_alltoall(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm);

/** The same with a count for each rank, and displacements in extents of the type. What one rank
 *  sends to another is as long as what that one receives. */
FERRY_API int ferry_alltoallv(
    const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    MPI_Datatype recvtype, MPI_Comm comm);

/** The same with a type for each rank, and displacements in bytes. */
FERRY_API int ferry_alltoallw(
    const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
    const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm);

/** sendbuf of rank j arrives as block j of recvbuf on every rank. MPI_IN_PLACE as sendbuf: the own
 *  block lies in recvbuf already. */
FERRY_API int ferry_allgather(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm);

/** The same with a count and a displacement for each rank, alike on all ranks. */
FERRY_API int ferry_allgatherv(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm);

/** buffer of root is copied to buffer on every rank. */
FERRY_API int ferry_bcast(
    void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm);

/** sendbuf of rank j arrives as block j of recvbuf of the root; other ranks' recv arguments are not
 *  looked at. MPI_IN_PLACE as sendbuf of the root: its block lies in recvbuf already. */
FERRY_API int ferry_gather(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);

FERRY_API int ferry_gatherv(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
    MPI_Comm comm);

/** Block i of sendbuf of the root arrives in recvbuf of rank i; other ranks' send arguments are not
 *  looked at. MPI_IN_PLACE as recvbuf of the root: its block stays where it is. */
FERRY_API int ferry_scatter(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);

FERRY_API int ferry_scatterv(
    const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
    MPI_Comm comm);

/** Complete when all ranks have entered. */
FERRY_API int ferry_barrier(MPI_Comm comm);

/** recvcounts[i] elements of the result of all ranks' sendbuf arrive at rank i. Of all reductions:
 *  predefined operations on the types that MPI defines them for; a0 op (a1 op (a2 op ...)) by rank
 *  for every element. MPI_IN_PLACE as sendbuf: the operand lies in recvbuf. */
FERRY_API int ferry_reduce_scatter(
    const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm);

/** The same with recvcount elements for each rank. */
FERRY_API int ferry_reduce_scatter_block(
    const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm);

/** The whole result arrives at every rank. */
FERRY_API int ferry_allreduce(
    const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm);

/** The whole result arrives at the root; others' recvbuf is not looked at. MPI_IN_PLACE as sendbuf
 *  of the root. */
FERRY_API int ferry_reduce(
    const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm);

/* ---- non-blocking: complete with ferry_test or ferry_wait, which set *request to NULL ----------
 */

FERRY_API int ferry_ialltoall(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, ferry_request* request);
FERRY_API int ferry_ialltoallv(
    const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    MPI_Datatype recvtype, MPI_Comm comm, ferry_request* request);
FERRY_API int ferry_ialltoallw(
    const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
    const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
    ferry_request* request);
FERRY_API int ferry_iallgather(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, ferry_request* request);
FERRY_API int ferry_iallgatherv(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
    ferry_request* request);
FERRY_API int ferry_ibcast(
    void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
    ferry_request* request);
FERRY_API int ferry_igather(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, ferry_request* request);
FERRY_API int ferry_igatherv(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
    MPI_Comm comm, ferry_request* request);
FERRY_API int ferry_iscatter(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, ferry_request* request);
FERRY_API int ferry_iscatterv(
    const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
    MPI_Comm comm, ferry_request* request);
FERRY_API int ferry_ibarrier(MPI_Comm comm, ferry_request* request);
FERRY_API int ferry_ireduce_scatter(
    const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm, ferry_request* request);
FERRY_API int ferry_ireduce_scatter_block(
    const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, ferry_request* request);
FERRY_API int ferry_iallreduce(
    const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, ferry_request* request);
FERRY_API int ferry_ireduce(
    const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm, ferry_request* request);

/* ---- persistent: *_init is collective and may block; the handle starts inactive. Arrays are read
 * by *_init only. ---- */

FERRY_API int ferry_alltoall_init(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    ferry_request* request);
FERRY_API int ferry_alltoallv_init(
    const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, ferry_request* request);
FERRY_API int ferry_alltoallw_init(
    const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
    const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
    const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
    ferry_request* request);
FERRY_API int ferry_allgather_init(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
    ferry_request* request);
FERRY_API int ferry_allgatherv_init(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
    MPI_Info info, ferry_request* request);
FERRY_API int ferry_bcast_init(
    void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
    ferry_request* request);
FERRY_API int ferry_gather_init(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
    ferry_request* request);
FERRY_API int ferry_gatherv_init(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
    MPI_Comm comm, MPI_Info info, ferry_request* request);
FERRY_API int ferry_scatter_init(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
    ferry_request* request);
FERRY_API int ferry_scatterv_init(
    const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
    MPI_Comm comm, MPI_Info info, ferry_request* request);
FERRY_API int ferry_barrier_init(MPI_Comm comm, MPI_Info info, ferry_request* request);
FERRY_API int ferry_reduce_scatter_init(
    const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype,
    MPI_Op op, MPI_Comm comm, MPI_Info info, ferry_request* request);
FERRY_API int ferry_reduce_scatter_block_init(
    const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Info info, ferry_request* request);
FERRY_API int ferry_allreduce_init(
    const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm, MPI_Info info, ferry_request* request);
FERRY_API int ferry_reduce_init(
    const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm, MPI_Info info, ferry_request* request);

/** Start an inactive persistent handle. Buffers are read and written only between start and
 *  completion. MPI_ERR_REQUEST when the handle is active or not persistent. */
FERRY_API int ferry_start(ferry_request* request);
FERRY_API int ferry_startall(int count, ferry_request requests[]);

/** Start a persistent handle on a stream of the GPU's runtime (a cudaStream_t or hipStream_t), also
 *  while the stream is captured into a graph: work queued before comes first, work queued after
 * sees the result. The handle stays inactive for ferry_test and ferry_wait: completion is a matter
 * of the stream. MPI_ERR_REQUEST when the handle does not run on a GPU (ferry_explain tells why).
 */
FERRY_API int ferry_start_on_stream(ferry_request request, void* stream);

/** Progress; *flag = 1 when complete. A completed non-blocking handle is freed and set to NULL, a
 *  persistent one becomes inactive. An inactive or null handle is complete at once. */
FERRY_API int ferry_test(ferry_request* request, int* flag);
FERRY_API int ferry_wait(ferry_request* request);
FERRY_API int ferry_testall(int count, ferry_request requests[], int* flag);
FERRY_API int ferry_waitall(int count, ferry_request requests[]);

/** Free an inactive persistent handle and set it to NULL. Local: other ranks may free later.
 *  MPI_ERR_REQUEST when it is active. */
FERRY_API int ferry_request_free(ferry_request* request);

/* ---- for kernels (ferry/device.hpp) ----------------------------------------------------------
 */

/** A team of ranks whose kernels put into each other's memory. */
typedef struct ferry_device_team_s* ferry_device_team;
#define FERRY_DEVICE_TEAM_NULL ((ferry_device_team)0)

/** Collective over the ranks of one machine: kernels of every rank may put into the windows of all,
 *  from their own window, and from source (NULL and 0: none). Device memory of this rank's GPU,
 * each within one allocation, window_bytes alike on all ranks; it must live as long as the team. */
FERRY_API int ferry_device_team_create(
    MPI_Comm comm, void* window, MPI_Aint window_bytes, const void* source, MPI_Aint source_bytes,
    ferry_device_team* team);
/** *handle, of size bytes, becomes the ferry::device::TeamHandle that is passed to kernels by
 * value. MPI_ERR_ARG when size is not that of this version. */
FERRY_API int ferry_device_team_handle(ferry_device_team team, void* handle, size_t size);
/** The error of a packet that was refused, since it leads out of windows and sources: its queue
 * then stands still. MPI_SUCCESS: there was none so far. */
FERRY_API int ferry_device_team_check(ferry_device_team team);
/** Local; sets *team to NULL. No kernel of this rank uses the team any more, and no put of a peer
 * is on its way: a barrier of the program comes before. */
FERRY_API int ferry_device_team_free(ferry_device_team* team);

/** Arm `starts` more starts of an inactive persistent handle. *handle, of size bytes, becomes the
 *  ferry::device::StartHandle through which a kernel makes them, with one store each and without
 * the host; ferry_start takes the next armed start too. What was armed is started before the handle
 * is freed, alike on all ranks. MPI_ERR_REQUEST when the handle does not run on a GPU, or has no
 * such starts (ferry_explain tells how it runs). */
FERRY_API int ferry_arm(ferry_request request, int starts, void* handle, size_t size);

/* ---- memory --------------------------------------------------------------------------------- */

/** Local call: size bytes (page aligned, zeroed) that ranks of this node can map; *(void**)baseptr
 *  is set. MPI_ERR_NO_MEM with a text when the machine has no shared memory left; like all errors
 * of these two functions it is only returned, no error handler is called. */
FERRY_API int ferry_alloc(MPI_Aint size, void* baseptr);
/** Free memory of ferry_alloc. No plan that uses it may be active. */
FERRY_API int ferry_free(void* base);

/* ---- introspection -------------------------------------------------------------------------- */

/** One line "<path>: <why>" about a handle; path is slots, engine, mpi or local. At most size
 *  bytes with the final 0 are written. */
FERRY_API int ferry_explain(ferry_request request, char* text, size_t size);
/** The same for the last blocking or non-blocking collective that this rank ran on comm. */
FERRY_API int ferry_comm_explain(MPI_Comm comm, char* text, size_t size);
/** The steps of a persistent handle on this rank, one a line, for people. *needed (may be NULL) is
 *  the size that the whole text takes with its final 0. */
FERRY_API int ferry_print(ferry_request request, char* text, size_t size, size_t* needed);

enum ferry_topic {
  FERRY_TOPIC_MACHINE = 1, /* what this machine offers */
  FERRY_TOPIC_ENVIRONMENT = 2, /* the configuration variables */
  FERRY_TOPIC_TABLE = 3, /* the sizes at which plans change; as JSON a file for FERRY_TABLE */
  FERRY_TOPIC_SELF_TEST = 4, /* tries the GPUs of this machine, up to a minute; text only */
  FERRY_TOPIC_RANK = 5, /* a line: machine, cores and GPUs of this process; text only */
};
enum ferry_format {
  FERRY_FORMAT_TEXT = 1,
  FERRY_FORMAT_JSON = 2,
  FERRY_FORMAT_MARKDOWN = 3, /* FERRY_TOPIC_ENVIRONMENT only */
};
/** Text about a topic; needs no MPI_Init. *needed (may be NULL) is the size that the whole text
 *  takes with its final 0; when it exceeds size the text is cut. */
FERRY_API int ferry_describe(
    enum ferry_topic topic, enum ferry_format format, char* text, size_t size, size_t* needed);

/** Text of the last error that a Ferry function returned on this thread; "" if there was none. */
FERRY_API const char* ferry_error_text(void);

/* ---- one description for all calls (what the functions above and ferry.hpp are made of) --------
 */

enum ferry_operation {
  FERRY_ALLTOALL = 1,
  FERRY_ALLGATHER = 2,
  FERRY_BCAST = 3,
  FERRY_ALLTOALLV = 4,
  FERRY_ALLTOALLW = 5,
  FERRY_ALLGATHERV = 6,
  FERRY_GATHER = 7,
  FERRY_GATHERV = 8,
  FERRY_SCATTER = 9,
  FERRY_SCATTERV = 10,
  FERRY_BARRIER = 11,
  FERRY_REDUCE_SCATTER = 12,
  FERRY_REDUCE_SCATTER_BLOCK = 13,
  FERRY_ALLREDUCE = 14,
  FERRY_REDUCE = 15,
};
enum ferry_form {
  FERRY_BLOCKING = 1,
  FERRY_NONBLOCKING = 2,
  FERRY_PERSISTENT = 3,
};
enum ferry_flag {
  FERRY_NO_ERROR_HANDLER = 1, /* return errors only, do not call the communicator's handler */
};

/** A call as data; what the operation has no argument for is not looked at. size is
 *  sizeof(struct ferry_call). FERRY_BCAST has recv* and root; reductions have the count and type of
 *  recv*. Where a side has a count for each rank, sendcounts (recvcounts) stands for sendcount
 *  (recvcount); in FERRY_ALLTOALLW sendtypes (recvtypes) for sendtype (recvtype). */
struct ferry_call {
  size_t size;
  enum ferry_operation operation;
  enum ferry_form form;
  int flags;
  int root;
  const void* sendbuf;
  MPI_Count sendcount;
  MPI_Datatype sendtype;
  void* recvbuf;
  MPI_Count recvcount;
  MPI_Datatype recvtype;
  MPI_Comm comm;
  MPI_Op op;
  const MPI_Count* sendcounts;
  const MPI_Aint* sdispls;
  const MPI_Datatype* sendtypes;
  const MPI_Count* recvcounts;
  const MPI_Aint* rdispls;
  const MPI_Datatype* recvtypes;
};
/** Run, start or initialise the call by its form. request may be NULL for FERRY_BLOCKING. */
FERRY_API int ferry_collective(const struct ferry_call* call, ferry_request* request);

#ifdef __cplusplus
}
#endif
