! SPDX-License-Identifier: MIT
! use mpi_f08: sections of arrays, in place, requests and statuses as types.
program module_f08
  use mpi_f08
  implicit none
  integer, parameter :: most = 64
  integer :: rank, ranks, i, k, bad
  ! What MPI reads and writes behind the back of the compiler.
  integer, asynchronous :: table(8, most), wide(8, most), received(most), sent(most)
  type(MPI_Request) :: request, more
  type(MPI_Status) :: status
  logical :: flag
  bad = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  ! One row of two columns of each rank is gathered, and a row of the root's table is broadcast. (A
  ! strided section as target of a gather is placed wrongly by the bindings of the MPI below.)
  do k = 1, 3
    table = 1000 * k + rank
    received = -1
    call MPI_Allgather(table(3, 1:2), 2, MPI_INTEGER, received, 2, MPI_INTEGER, MPI_COMM_WORLD)
    do i = 1, 2 * ranks
      if (received(i) /= 1000 * k + (i - 1) / 2) bad = bad + 1
    end do
    call MPI_Bcast(table(2, 1:7:2), 4, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD)
    do i = 1, 8
      if (table(2, i) /= 1000 * k + merge(rank, ranks - 1, mod(i, 2) == 0 .or. i > 7)) bad = bad + 1
      if (table(1, i) /= 1000 * k + rank .or. table(3, i) /= 1000 * k + rank) bad = bad + 1
    end do
  end do
  wide = -1
  wide(:, rank + 1) = 7 * rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, wide(:, 1:ranks), 8, MPI_INTEGER, &
                     MPI_COMM_WORLD)
  do i = 1, ranks
    if (any(wide(:, i) /= 7 * (i - 1))) bad = bad + 1
  end do
  call MPI_Alltoall_init(sent, 1, MPI_INTEGER, received, 1, MPI_INTEGER, MPI_COMM_WORLD, &
                         MPI_INFO_NULL, request)
  do k = 1, 5
    do i = 1, ranks
      sent(i) = 10000 * k + 100 * rank + i
    end do
    received = -1
    call MPI_Start(request)
    call MPI_Iallgather(rank, 1, MPI_INTEGER, table(:, 1), 1, MPI_INTEGER, MPI_COMM_WORLD, more)
    if (mod(k, 2) == 0) then
      call MPI_Wait(request, status)
      if (status%MPI_SOURCE /= MPI_ANY_SOURCE) bad = bad + 1
    else
      flag = .false.
      do while (.not. flag)
        call MPI_Test(request, flag, MPI_STATUS_IGNORE)
      end do
    end if
    call MPI_Wait(more, MPI_STATUS_IGNORE)
    if (more /= MPI_REQUEST_NULL) bad = bad + 1
    do i = 1, ranks
      if (received(i) /= 10000 * k + 100 * (i - 1) + rank + 1) bad = bad + 1
      if (table(i, 1) /= i - 1) bad = bad + 1
    end do
  end do
  call MPI_Request_free(request)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Ibarrier(MPI_COMM_WORLD, more)
  call MPI_Wait(more, MPI_STATUS_IGNORE)
  ! In place (case 12).
  sent(1) = rank + 1
  call MPI_Allreduce(MPI_IN_PLACE, sent, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (sent(1) /= ranks * (ranks + 1) / 2) bad = bad + 1
  received(1:ranks) = [(100 * rank + i, i = 1, ranks)]
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, received, 1, MPI_INTEGER, MPI_COMM_WORLD)
  if (any(received(1:ranks) /= [(100 * (i - 1) + rank + 1, i = 1, ranks)])) bad = bad + 1
  call MPI_Finalize()
  if (bad /= 0) then
    print *, 'rank', rank, ':', bad, 'faults'
    stop 1
  end if
end program module_f08
