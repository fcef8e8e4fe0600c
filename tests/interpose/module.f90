! SPDX-License-Identifier: MIT
! use mpi; MPI_BOTTOM with a type of absolute addresses, and a broadcast in place of nothing.
program module_mpi
  use mpi
  implicit none
  integer, parameter :: most = 64
  integer :: ierr, rank, ranks, i, k, bad, request, absolute, flag_count
  ! What MPI reads and writes behind the back of the compiler.
  integer, asynchronous :: gathered(most), mine(2), all(2 * most)
  integer(kind=MPI_ADDRESS_KIND) :: address
  logical :: flag
  integer :: status(MPI_STATUS_SIZE), indices(2), requests(2), statuses(MPI_STATUS_SIZE, 2)
  bad = 0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Get_address(mine, address, ierr)
  call MPI_Type_create_hindexed(1, [2], [address], MPI_INTEGER, absolute, ierr)
  call MPI_Type_commit(absolute, ierr)
  do k = 1, 4
    mine = [1000 * k + rank, 2000 * k + rank]
    all = -1
    call MPI_Allgather(MPI_BOTTOM, 1, absolute, all, 2, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    do i = 0, ranks - 1
      if (all(2 * i + 1) /= 1000 * k + i .or. all(2 * i + 2) /= 2000 * k + i) bad = bad + 1
    end do
  end do
  call MPI_Type_free(absolute, ierr)
  mine = merge([5, 6], [0, 0], rank == ranks - 1)
  call MPI_Bcast(mine, 2, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, ierr)
  if (any(mine /= [5, 6])) bad = bad + 1
  call MPI_Allgather_init(rank, 1, MPI_INTEGER, gathered, 1, MPI_INTEGER, MPI_COMM_WORLD, &
                          MPI_INFO_NULL, request, ierr)
  do k = 1, 4
    gathered = -1
    requests(1) = request
    call MPI_Startall(1, requests, ierr)
    call MPI_Ibcast(mine, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(2), ierr)
    if (k == 1) then
      call MPI_Waitall(2, requests, statuses, ierr)
    else if (k == 2) then
      flag = .false.
      do while (.not. flag)
        call MPI_Testall(2, requests, flag, statuses, ierr)
      end do
    else
      flag_count = 0
      do while (flag_count < 2)
        call MPI_Waitsome(2, requests, i, indices, MPI_STATUSES_IGNORE, ierr)
        flag_count = flag_count + i
      end do
    end if
    if (requests(2) /= MPI_REQUEST_NULL) bad = bad + 1
    do i = 1, ranks
      if (gathered(i) /= i - 1) bad = bad + 1
    end do
  end do
  call MPI_Wait(request, status, ierr)
  call MPI_Request_free(request, ierr)
  ! In place (case 12).
  mine(1) = rank + 1
  call MPI_Allreduce(MPI_IN_PLACE, mine, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (mine(1) /= ranks * (ranks + 1) / 2) bad = bad + 1
  gathered(1:ranks) = [(100 * rank + i, i = 1, ranks)]
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, 1, MPI_INTEGER, &
                    MPI_COMM_WORLD, ierr)
  if (any(gathered(1:ranks) /= [(100 * (i - 1) + rank + 1, i = 1, ranks)])) bad = bad + 1
  gathered = -1
  gathered(rank + 1) = 7 * rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, 1, MPI_INTEGER, &
                     MPI_COMM_WORLD, ierr)
  if (any(gathered(1:ranks) /= [(7 * (i - 1), i = 1, ranks)])) bad = bad + 1
  call MPI_Finalize(ierr)
  if (bad /= 0) then
    print *, 'rank', rank, ':', bad, 'faults'
    stop 1
  end if
end program module_mpi
