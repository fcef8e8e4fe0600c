! SPDX-License-Identifier: MIT
! mpif.h, fixed form.
      program fixed
      implicit none
      include 'mpif.h'
      integer most
      parameter (most = 64)
      integer ierr, rank, ranks, request, i, k, bad, total
      integer sent(most), received(most)
      volatile sent, received
      integer status(MPI_STATUS_SIZE)
      bad = 0
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
      do i = 1, ranks
        sent(i) = 100 * rank + i
      end do
      call MPI_ALLTOALL(sent, 1, MPI_INTEGER, received, 1,
     &  MPI_INTEGER, MPI_COMM_WORLD, ierr)
      do i = 1, ranks
        if (received(i) .ne. 100 * (i - 1) + rank + 1) bad = bad + 1
      end do
      received = -1
      received(rank + 1) = 7 * rank
      call MPI_ALLGATHER(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
     &  received, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
      do i = 1, ranks
        if (received(i) .ne. 7 * (i - 1)) bad = bad + 1
      end do
      call MPI_ALLTOALL_INIT(sent, 1, MPI_INTEGER, received, 1,
     &  MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
      do k = 1, 5
        do i = 1, ranks
          sent(i) = 10000 * k + 100 * rank + i
        end do
        call MPI_START(request, ierr)
        call MPI_WAIT(request, status, ierr)
        if (status(MPI_SOURCE) .ne. MPI_ANY_SOURCE) bad = bad + 1
        do i = 1, ranks
          if (received(i) .ne. 10000 * k + 100 * (i - 1) + rank + 1)
     &      bad = bad + 1
        end do
      end do
      call MPI_REQUEST_FREE(request, ierr)
      if (request .ne. MPI_REQUEST_NULL) bad = bad + 1
      call MPI_IALLGATHER(rank, 1, MPI_INTEGER, received, 1,
     &  MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
      call MPI_WAITALL(1, request, MPI_STATUSES_IGNORE, ierr)
      do i = 1, ranks
        if (received(i) .ne. i - 1) bad = bad + 1
      end do
!     In place (case 12).
      total = rank + 1
      call MPI_ALLREDUCE(MPI_IN_PLACE, total, 1, MPI_INTEGER,
     &  MPI_SUM, MPI_COMM_WORLD, ierr)
      if (total .ne. ranks * (ranks + 1) / 2) bad = bad + 1
      do i = 1, ranks
        received(i) = 100 * rank + i
      end do
      call MPI_ALLTOALL(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, received,
     &  1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
      do i = 1, ranks
        if (received(i) .ne. 100 * (i - 1) + rank + 1) bad = bad + 1
      end do
      call MPI_BARRIER(MPI_COMM_WORLD, ierr)
      call MPI_FINALIZE(ierr)
      if (bad .ne. 0) then
        print *, 'rank', rank, ':', bad, 'faults'
        stop 1
      end if
      end
